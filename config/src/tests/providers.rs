//! `[providers.NAME]`: the profile and the headers of a provider.

use everturn_models::{
    Cache, CallIds, Dialect, MaxTokens, ProfileSettings, PropertyNames, Roles, Thoughts, ToolNames,
    ToolSchemas,
};

use super::{assert_errors, parse};

/// A file with a provider of this kind and this profile.
fn file(kind: &str, profile: &str) -> String {
    format!(
        "[providers.main]\nkind = \"{kind}\"\nbase_url = \"http://localhost:1/v1/\"\n\
         [providers.main.profile]\n{profile}\n\
         [agents.default]\nprovider = \"main\"\nmodel = \"m\"\n"
    )
}

#[test]
fn every_field_of_a_profile_has_a_key() {
    let read = |kind: &str, profile: &str| {
        let config = parse(&file(kind, profile), &[]).unwrap();
        config.providers["main"].profile
    };
    let chat = "call_ids = \"nine\"\nroles = \"any\"\nthoughts = \"reasoning_content\"\nthink_tags = false\n\
                stream_options = false\nmax_tokens = \"max_completion_tokens\"\ndialect = \"mistral\"\n\
                tool_schemas = \"typed\"\nproperty_names = \"words\"\ntool_names = \"letter_first\"\nmax_tools = 64";
    let expected = ProfileSettings {
        call_ids: Some(CallIds::Nine),
        roles: Some(Roles::Any),
        thoughts: Some(Thoughts::ReasoningContent),
        think_tags: Some(false),
        stream_options: Some(false),
        max_tokens: Some(MaxTokens::MaxCompletionTokens),
        dialect: Some(Dialect::Mistral),
        cache: None,
        tool_schemas: Some(ToolSchemas::Typed),
        property_names: Some(PropertyNames::Words),
        tool_names: Some(ToolNames::LetterFirst),
        max_tools: Some(64),
    };
    for kind in ["openai", "azure"] {
        assert_eq!(read(kind, chat), expected, "{kind}");
    }
    let anthropic = "call_ids = \"short\"\nthink_tags = true\ncache = \"own\"";
    let expected = ProfileSettings {
        call_ids: Some(CallIds::Short),
        think_tags: Some(true),
        cache: Some(Cache::Own),
        ..ProfileSettings::default()
    };
    assert_eq!(read("anthropic", anthropic), expected);
    assert_eq!(read("gemini", ""), ProfileSettings::default());
}

#[test]
fn a_profile_has_only_the_fields_of_its_kind() {
    assert_errors(&[
        (
            file("anthropic", "roles = \"any\""),
            "`roles` of a profile means nothing for a provider of kind `anthropic`, only for kind `openai` or `azure`",
        ),
        (
            file("openai", "cache = \"marks\""),
            "a provider of kind `openai` has no cache with \"marks\"",
        ),
        (
            file("gemini", "cache = \"own\""),
            "`cache` of a profile means nothing for a provider of kind `gemini`, only for kind `openai` or \
             `openai_responses` or `azure` or `anthropic`",
        ),
        (
            file("openai_responses", "think_tags = true"),
            "`think_tags` of a profile means nothing for a provider of kind `openai_responses`",
        ),
        (
            file("gemini", "stream_options = false"),
            "`stream_options` of a profile means nothing for a provider of kind `gemini`",
        ),
    ]);
}

#[test]
fn a_wrong_word_is_refused_with_the_known_words() {
    assert_errors(&[
        (
            file("openai", "call_ids = \"long\""),
            "`call_ids` cannot be \"long\": unknown variant `long`, expected one of `short`, `words`, `nine`",
        ),
        (
            file("openai", "dialect = \"OpenAI\""),
            "`dialect` cannot be \"OpenAI\": unknown variant `OpenAI`, expected `openai` or `mistral`",
        ),
        (file("openai", "role = \"any\""), "unknown field `role`"),
        (file("openai", "think_tags = \"yes\""), "expected a boolean"),
    ]);
}

#[test]
fn headers_may_stand_in_the_file_unless_they_are_secret() {
    let file = |headers: &str| {
        format!(
            "[providers.main]\nkind = \"openai\"\nheaders_env = {{ x-token = \"KEY\" }}\nheaders = {{ {headers} }}\n\
             [agents.default]\nprovider = \"main\"\nmodel = \"m\"\n"
        )
    };
    let config = parse(&file("x-title = \"Everturn\""), &[("KEY", "secret")]).unwrap();
    let provider = &config.providers["main"];
    let header = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    assert_eq!(provider.fixed_headers, header("x-title", "Everturn"));
    assert_eq!(provider.headers, header("x-token", "secret"));
    assert_errors(&[
        (
            file("Authorization = \"Bearer x\""),
            "`Authorization` holds a secret: write the header into `headers_env`",
        ),
        (file("host = \"x\""), "`host` belongs to the connection"),
        (
            file("X-Token = \"x\""),
            "`X-Token` is in `headers` and in `headers_env`",
        ),
        (file("\"a b\" = \"x\""), "`a b` is no name of a header"),
        (
            file("x-a = \"a\\nb\""),
            "the value holds characters that no header has",
        ),
    ]);
}
