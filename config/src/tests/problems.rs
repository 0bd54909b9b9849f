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

#[test]
fn a_wrong_value_of_any_form_leaves_the_rest_of_the_file_to_read() {
    let text = "[gateway]\nheartbeat = \"soon\"\nmax_streams = -1\ntrusted_proxies = [\"a\", \"10.0.0.0/8\", \"b\"]\n\
                [reconciler]\nlost_turns = \"x\"\n[tenant_budget]\ntokens = 0\n[auth]\npublic_url = \"http://a.b\"\n\
                [[auth.oidc]]\nissuer = \"x\"\naudience = \"\"\nleeway = \"1h\"\n\
                [[auth.oidc]]\nissuer = \"x\"\naudience = \"a\"\ntenants = [\"a\"]\n";
    let message = error(text);
    for expected in [
        "2:13: `heartbeat` must be a duration like",
        "3:15: `max_streams` must be from 1 to 1000000, not -1",
        "4:20: `trusted_proxies` has \"a\", but",
        "4:39: `trusted_proxies` has \"b\", but",
        "6:14: `lost_turns` has \"x\", but the choices are: resume, end",
        "8:10: `tokens` must be from 1",
        "10:14: `public_url` must be an https URL",
        "12:10: `issuer` must be an https URL",
        "12:10: with several issuers",
        "13:12: `audience` must not be empty",
        "14:10: `leeway` must be from 0s to 5m",
        "16:10: `issuer` must be an https URL",
    ] {
        assert!(message.contains(expected), "{expected}\n→ {message}");
    }
    assert_eq!(message.lines().count(), 13, "{message}");
}
