//! Every demand refuses a request that does not meet it, and a good request meets all of them.

use serde_json::{Value, json};

use super::{Who, problems};

/// Changes of a good request, each as a JSON pointer with its new value and a word of the problem. A change of a field
/// that is not there adds the field.
type Changes = &'static [(&'static str, &'static str, &'static str)];

/// A good request for the provider.
fn good(who: Who) -> Value {
    match who {
        Who::OpenAi | Who::Template | Who::Mistral | Who::MistralModel | Who::DeepSeek => {
            chat(who == Who::DeepSeek)
        }
        Who::Anthropic => anthropic(),
        Who::Gemini | Who::Gemini3 => gemini(),
        Who::Responses => responses(),
    }
}

fn chat(has_thoughts: bool) -> Value {
    let mut body = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "See."},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ]},
            {"role": "assistant", "content": "Hm.", "tool_calls": [
                {"id": "a00000001", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "a00000002", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "a00000002", "content": "2"},
            {"role": "tool", "tool_call_id": "a00000001", "content": "1"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "Thanks."},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": "none",
        "stream": true,
        "max_tokens": 9,
    });
    if has_thoughts {
        for at in [2, 5] {
            body["messages"][at]["reasoning_content"] = json!(" ");
        }
    }
    body
}

fn anthropic() -> Value {
    json!({
        "model": "claude",
        "max_tokens": 2000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "See."},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "And?"},
            ]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "none"},
    })
}

fn gemini() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hello."}]},
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"},
                {"functionCall": {"name": "g", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {}}},
                {"functionResponse": {"name": "g", "response": {}}},
            ]},
        ],
        "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g", "parametersJsonSchema": {"type": "object"}}]}],
        "toolConfig": {},
    })
}

fn responses() -> Value {
    json!({
        "model": "m",
        "store": true,
        "background": true,
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "See."},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
            {"type": "message", "role": "assistant", "content": "Hm."},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "b", "output": "2"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}],
        "tool_choice": "none",
    })
}

const ON_CHAT: Changes = &[
    ("/model", "\"\"", "model"),
    ("/messages", "[]", "messages: none"),
    ("/messages/0/content", "\" \"", "an empty system prompt"),
    ("/messages/1/role", "\"system\"", "not the first message"),
    ("/messages/1/role", "\"human\"", "the role"),
    ("/messages/1/content", "[]", "an empty message"),
    ("/messages/1/content/0/text", "\" \"", "a part"),
    (
        "/messages/1/content/1/image_url/url",
        "\"data:image/png;base64,\"",
        "a part",
    ),
    ("/messages/1/content/1/type", "\"audio\"", "a part"),
    ("/messages/2/content", "\"\"", "the content"),
    ("/messages/2/tool_calls", "[]", "an empty list"),
    ("/messages/2/reasoning_content", "7", "reasoning_content"),
    ("/messages/2/prefix", "true", "unknown field"),
    ("/messages/2/tool_calls/0/id", "\"\"", "the call's id"),
    ("/messages/2/tool_calls/0/id", "\"a00000002\"", "twice"),
    ("/messages/2/tool_calls/0/type", "\"tool\"", "type"),
    ("/messages/2/tool_calls/0/function/name", "\"f!\"", "name"),
    (
        "/messages/2/tool_calls/0/function/arguments",
        "\"[]\"",
        "arguments",
    ),
    (
        "/messages/2/tool_calls/0/function/arguments",
        "{}",
        "arguments",
    ),
    ("/messages/3/tool_call_id", "\"x\"", "no call before"),
    (
        "/messages/3/tool_call_id",
        "\"a00000001\"",
        "no call before",
    ),
    ("/messages/3/content", "\"\"", "the result"),
    (
        "/messages/4/role",
        "\"assistant\"",
        "calls without a result",
    ),
    ("/messages/5/content", "null", "neither text nor calls"),
    ("/messages/6/role", "\"assistant\"", "the last message"),
    ("/tools", "[]", "an empty list"),
    ("/tools/0/function/name", "\"\"", "the name"),
    ("/tools/0/function/parameters", "null", "schema"),
    ("/max_completion_tokens", "9", "max_tokens"),
    (
        "/response_format",
        r#"{"json_schema": {"name": "a b", "schema": {}}}"#,
        "the name",
    ),
    (
        "/response_format",
        r#"{"json_schema": {"name": "a"}}"#,
        "no schema",
    ),
];

const ON_ANTHROPIC: Changes = &[
    ("/model", "null", "model"),
    ("/max_tokens", "0", "max_tokens"),
    ("/thinking/budget_tokens", "2000", "budget"),
    ("/thinking/budget_tokens", "1023", "budget"),
    ("/system", "\"\"", "system"),
    ("/system/0/text", "\" \"", "system"),
    ("/messages/0/role", "\"assistant\"", "first or the last"),
    ("/messages/0/role", "\"system\"", "the role"),
    ("/messages/0/content", "\"\"", "an empty message"),
    ("/messages/1/role", "\"user\"", "in a row"),
    ("/messages/1/content/0/signature", "\"\"", "signature"),
    ("/messages/1/content/0/cache_control", "{}", "cache_control"),
    ("/messages/1/content/1/data", "null", "without data"),
    ("/messages/1/content/2/text", "\"\\n\"", "the block"),
    ("/messages/1/content/2/type", "\"image\"", "the block"),
    ("/messages/1/content/3/type", "\"text\"", "the block"),
    ("/messages/1/content/3/id", "\"a.b\"", "id"),
    ("/messages/1/content/3/id", "\"b\"", "twice"),
    ("/messages/1/content/3/input", "\"{}\"", "arguments"),
    ("/messages/1/content/3/name", "\"\"", "name"),
    (
        "/messages/1/content/4",
        r#"{"type": "redacted_thinking", "data": "d"}"#,
        "before the text",
    ),
    (
        "/messages/1/content/0",
        r#"{"type": "text", "text": "x"}"#,
        "before the text",
    ),
    (
        "/messages/2/content/0/tool_use_id",
        "\"x\"",
        "no call before",
    ),
    ("/messages/2/content/0/content", "\"\"", "an empty result"),
    (
        "/messages/2/content/0",
        r#"{"type": "text", "text": "x"}"#,
        "a result after",
    ),
    (
        "/messages/2/content/1",
        r#"{"type": "text", "text": "x"}"#,
        "without a result",
    ),
    ("/messages/2/content/1/content/0/text", "\"\"", "the block"),
    ("/tools", "[]", "an empty list"),
    ("/tools/0/input_schema", "7", "schema"),
];

const ON_GEMINI: Changes = &[
    (
        "/systemInstruction/parts/0/text",
        "\"\"",
        "systemInstruction",
    ),
    ("/contents/0/role", "\"model\"", "first or the last"),
    ("/contents/0/role", "\"system\"", "the role"),
    ("/contents/0/parts", "[]", "no parts"),
    ("/contents/0/parts/0/text", "\"\"", "the text"),
    ("/contents/0/parts/0/inlineData", "{}", "the part"),
    ("/contents/1/role", "\"model\"", "in a row"),
    ("/contents/1/parts/0/inlineData/data", "\"\"", "a file"),
    ("/contents/2/role", "\"user\"", "a user's call"),
    ("/contents/2/parts/0/thoughtSignature", "\"\"", "signature"),
    ("/contents/2/parts/0/functionCall/name", "\"\"", "name"),
    ("/contents/2/parts/0/functionCall/args", "[]", "arguments"),
    (
        "/contents/3/parts/0/functionResponse/name",
        "\"g\"",
        "and results",
    ),
    (
        "/contents/3/parts/0/functionResponse/response",
        "\"\"",
        "the result",
    ),
    ("/contents/3/parts/0", r#"{"text": "x"}"#, "and results"),
    ("/tools", "[]", "an empty list"),
    ("/tools/0/functionDeclarations/0/name", "\"g\"", "twice"),
    (
        "/generationConfig",
        r#"{"responseSchema": {}}"#,
        "beside tools",
    ),
];

const ON_RESPONSES: Changes = &[
    ("/model", "\"\"", "model"),
    ("/store", "false", "not stored"),
    ("/instructions", "\"\"", "instructions"),
    ("/seed", "1", "unknown"),
    ("/input", "[]", "no items"),
    ("/input/0/role", "\"tool\"", "the role"),
    ("/input/0/content", "\"\"", "an empty message"),
    ("/input/0/content/0/text", "\"\"", "a part"),
    ("/input/0/content/1/filename", "null", "a part"),
    ("/input/1/type", "\"thought\"", "the type"),
    ("/input/1/summary", "null", "nobody can read"),
    ("/input/2/role", "\"user\"", "the item that followed"),
    ("/input/3/call_id", "\"\"", "the call's id"),
    ("/input/3/call_id", "\"b\"", "twice"),
    ("/input/3/name", "\"f.g\"", "name"),
    ("/input/3/arguments", "\"{\"", "arguments"),
    ("/input/5/call_id", "\"x\"", "no call before"),
    ("/input/5/output", "\"\"", "the result"),
    ("/input/6/type", "\"message\"", "without a result"),
    ("/tools", "[]", "an empty list"),
    (
        "/text",
        r#"{"format": {"name": "a b", "schema": {}}}"#,
        "the format",
    ),
];

/// Changes that only some providers of chat completions refuse.
const OF_ORDER: Changes = &[
    ("/messages/5/role", "\"user\"", "after a result"),
    ("/messages/5/role", "\"user\"", "in a row"),
];

fn set(body: &mut Value, pointer: &str, value: &str) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap();
    let value = serde_json::from_str(value).unwrap();
    match field.parse::<usize>() {
        Ok(at) => parent[at] = value,
        Err(_) => parent[field] = value,
    }
}

fn assert_refused(who: Who, changes: Changes) {
    for (pointer, value, word) in changes {
        let mut body = good(who);
        set(&mut body, pointer, value);
        let found = problems(who, &body).join("\n");
        let is_found = !found.is_empty() && found.contains(word);
        assert!(is_found, "{who:?}: {pointer} = {value}: {found:?}");
    }
}

#[test]
fn a_good_request_has_no_problems() {
    for who in Who::ALL {
        assert_eq!(problems(who, &good(who)), Vec::<String>::new(), "{who:?}");
        assert_ne!(problems(who, &json!({})), Vec::<String>::new(), "{who:?}");
        assert_ne!(problems(who, &Value::Null), Vec::<String>::new(), "{who:?}");
    }
}

#[test]
fn every_demand_refuses_what_does_not_meet_it() {
    for who in [
        Who::OpenAi,
        Who::Template,
        Who::MistralModel,
        Who::Mistral,
        Who::DeepSeek,
    ] {
        assert_refused(who, ON_CHAT);
    }
    assert_refused(Who::Anthropic, ON_ANTHROPIC);
    assert_refused(Who::Gemini, ON_GEMINI);
    assert_refused(Who::Gemini3, ON_GEMINI);
    assert_refused(Who::Responses, ON_RESPONSES);
}

#[test]
fn some_demands_are_those_of_one_provider() {
    for who in [
        Who::Template,
        Who::MistralModel,
        Who::Mistral,
        Who::DeepSeek,
    ] {
        assert_refused(who, OF_ORDER);
    }
    let mut any = good(Who::OpenAi);
    set(&mut any, "/messages/5/role", "\"user\"");
    assert_eq!(problems(Who::OpenAi, &any), Vec::<String>::new());
    assert_refused(
        Who::OpenAi,
        &[("/model", "\"gpt-5.1\"", "max_completion_tokens")],
    );
    assert_refused(
        Who::OpenAi,
        &[("/messages/2/reasoning_content", "\" \"", "unknown field")],
    );
    assert_refused(Who::Mistral, &[("/stream_options", "{}", "unknown")]);
    assert_refused(
        Who::Mistral,
        &[("/messages/2/tool_calls/0/id", "\"call_1\"", "id")],
    );
    assert_refused(
        Who::DeepSeek,
        &[("/messages/5/reasoning_content", "\"\"", "reasoning_content")],
    );
    assert_refused(
        Who::Gemini3,
        &[("/contents/2/parts/0/thoughtSignature", "null", "first call")],
    );
    let body = good(Who::Responses);
    let stateless = json!({"model": "m", "store": false, "input": body["input"]});
    assert_eq!(problems(Who::Responses, &stateless), Vec::<String>::new());
    let mut marked = good(Who::Anthropic);
    marked["tools"] = (0..4)
        .map(|n| json!({"name": format!("f{n}"), "input_schema": {"type": "object"}, "cache_control": {}}))
        .collect();
    assert_eq!(
        problems(Who::Anthropic, &marked),
        ["cache_control: 5 marks"]
    );
}
