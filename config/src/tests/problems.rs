//! How problems are reported.

use super::{assert_errors, error};

#[test]
fn errors_name_file_line_key_and_remedy() {
    assert_errors(&[
        ("[agents", "everturn.toml:1:"),
        (
            "[providers.a]\nkind = \"other\"\n",
            "everturn.toml:2:8: unknown variant `other`",
        ),
        (
            "[providers.a]\nkind = \"openai\"\napi_key_env = \"NOPE\"\n",
            "3:15: the environment variable NOPE",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nbase_url = \"ftp://x\"\n",
            "3:12: `base_url` must be an http",
        ),
    ]);
}

#[test]
fn a_key_in_the_file_is_refused_without_repeating_it() {
    let message = error("[providers.a]\nkind = \"openai\"\napi_key_env = \"sk-abc123\"\n");
    assert!(
        message.contains("3:15: `api_key_env` is the name of an environment variable"),
        "{message}"
    );
    assert!(!message.contains("abc123"), "{message}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = "[agents.default]\nprovider = \"x\"\nmodel = \"\"\nmax_steps = 0\n";
    assert_eq!(error(text).lines().count(), 4);
}
