//! The choice of rows, the settings of an operator, and the ids of calls.

mod page;

use super::*;

#[test]
fn rows_are_chosen_by_kind_host_and_model() {
    let of = |host: &str, model: &str| {
        Profile::of(ProviderKind::OpenAi, host, model, ProfileSettings::NONE)
    };
    assert_eq!(
        of("api.openai.com", "gpt-5.1").max_tokens,
        MaxTokens::MaxCompletionTokens
    );
    assert_eq!(
        (of("api.openai.com", "x").roles, of("localhost", "x").roles),
        (Roles::Any, Roles::Alternate)
    );
    assert_eq!(
        (of("api.openai.com", "x").cache, of("localhost", "x").cache),
        (Cache::Key, Cache::Own)
    );
    let mistral = of("api.mistral.ai", "x");
    assert_eq!(
        (mistral.call_ids, mistral.dialect, mistral.stream_options),
        (CallIds::Nine, Dialect::Mistral, false)
    );
    let thoughts = |host: &str, model: &str| of(host, model).thoughts;
    assert_eq!(
        thoughts("api.deepseek.com", "deepseek-chat"),
        Thoughts::Required
    );
    assert_eq!(thoughts("api.openai.com", "x"), Thoughts::None);
    assert_eq!(
        of("notapi.mistral.ai.example", "x").call_ids,
        CallIds::Short
    );
    assert_eq!(
        of("localhost", "Vendor/Mistral-Small").call_ids,
        CallIds::Nine
    );
    assert_eq!(
        of("localhost", "deepseek-v3").thoughts,
        Thoughts::ReasoningContent
    );
    assert_eq!(
        Profile::of(
            ProviderKind::Anthropic,
            "x",
            "mistral",
            ProfileSettings::NONE
        )
        .call_ids,
        CallIds::Words
    );
}

#[test]
fn ids_fit_their_provider() {
    let own = "call_0123456789ab";
    for (ids, id, expected) in [
        (CallIds::Short, "call_1", "call_1"),
        (
            CallIds::Short,
            "chatcmpl-tool-0123456789abcdef0123456789abcdef",
            own,
        ),
        (CallIds::Short, "", own),
        (CallIds::Words, "a.b", own),
        (CallIds::Nine, "aB3xK9mP2", "aB3xK9mP2"),
        (CallIds::Nine, "call_1", "3456789ab"),
        (CallIds::Words, "toolu_1", "toolu_1"),
    ] {
        assert_eq!(ids.fit(id, own), expected, "{ids:?} {id}");
    }
    assert_eq!(CallIds::Nine.fit("", "c_1"), "0000000c1");
}

#[test]
fn settings_of_an_operator_win_over_the_table() {
    let own = ProfileSettings {
        call_ids: Some(CallIds::Words),
        stream_options: Some(true),
        ..ProfileSettings::NONE
    };
    let profile = Profile::of(ProviderKind::OpenAi, "api.mistral.ai", "x", own);
    assert_eq!(
        (profile.call_ids, profile.stream_options, profile.dialect),
        (CallIds::Words, true, Dialect::Mistral)
    );
    let all = ProfileSettings {
        call_ids: Some(CallIds::Nine),
        roles: Some(Roles::Any),
        thoughts: Some(Thoughts::Required),
        think_tags: Some(true),
        stream_options: Some(false),
        max_tokens: Some(MaxTokens::MaxCompletionTokens),
        dialect: Some(Dialect::Mistral),
        cache: Some(Cache::Marks),
        tool_schemas: Some(ToolSchemas::Own),
        property_names: Some(PropertyNames::Identifiers),
        tool_names: Some(ToolNames::LetterFirst),
        max_tools: Some(9),
    };
    let expected = Profile {
        kind: ProviderKind::Azure,
        call_ids: CallIds::Nine,
        roles: Roles::Any,
        thoughts: Thoughts::Required,
        think_tags: true,
        stream_options: false,
        max_tokens: MaxTokens::MaxCompletionTokens,
        dialect: Dialect::Mistral,
        cache: Cache::Marks,
        tool_schemas: ToolSchemas::Own,
        property_names: PropertyNames::Identifiers,
        tool_names: ToolNames::LetterFirst,
        max_tools: 9,
    };
    assert_eq!(Profile::of(ProviderKind::Azure, "x", "x", all), expected);
}
