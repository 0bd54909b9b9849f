//! The facts about callers that a provider gets.

use super::{assert_errors, parse};

fn provider(kind: &str, lines: &str) -> String {
    format!(
        "[providers.main]\nkind = \"{kind}\"\nheaders = {{ X-Site = \"a\" }}\nheaders_env = {{ X-Team = \"TEAM\" }}\n[providers.main.caller]\n{lines}\n\
             [agents.default]\nprovider = \"main\"\nmodel = \"m\"\n"
    )
}

#[test]
fn a_provider_has_the_facts_of_its_table() {
    let text = provider(
        "openai",
        "user = \"{owner_hash}\"\nmetadata = { plan = \"{metadata.plan}\" }\ntags = [\"a\"]\n\
         headers = { X-Conversation = \"{conversation_id}\" }",
    );
    let config = parse(&text, &[("KEY", "k"), ("TEAM", "t")]).unwrap();
    let caller = &config.providers["main"].caller;
    assert!(caller.user.is_some() && caller.tags.len() == 1);
    assert!(caller.metadata.contains_key("plan"));
    assert!(caller.headers.contains_key("x-conversation"));
}

#[test]
fn wrong_facts_are_named() {
    let many: Vec<_> = (0..17).map(|n| format!("k{n} = \"a\"")).collect();
    let cases = [
        (
            "gemini",
            "user = \"{owner_id}\"",
            "have no field for `user`",
        ),
        ("anthropic", "tags = [\"a\"]", "have no field for `tags`"),
        (
            "openai",
            "user = \"{owner}\"",
            "`{owner}` is no placeholder",
        ),
        ("openai", "user = \"{owner_id\"", "a brace has no pair"),
        (
            "openai",
            "headers = { Authorization = \"a\" }",
            "another value already",
        ),
        (
            "openai",
            "headers = { x-team = \"a\" }",
            "another value already",
        ),
        (
            "openai",
            "headers = { x-site = \"b\" }",
            "another value already",
        ),
        (
            "openai",
            "headers = { Cookie = \"a\" }",
            "another value already",
        ),
        (
            "openai",
            "headers = { \"a b\" = \"a\" }",
            "a header's name has",
        ),
        ("openai", "tags = [\"\"]", "the text has 1 to 256 bytes"),
        (
            "openai",
            &format!("metadata = {{ {} }}", many.join(", ")),
            "`metadata` has at most 16 entries",
        ),
    ];
    let cases = cases.map(|(kind, lines, expected)| (provider(kind, lines), expected));
    assert_errors(&cases);
}
