//! Repairs the fields of a message that almost have their type.

use rmcp::model::RequestId;
use serde_json::{Map, Value, json};

use super::{
    block,
    field::{drop_unless, id_of},
    flaws::Flaws,
};

/// The code of an error whose own code is no number: "internal error" of JSON-RPC.
const INTERNAL_ERROR: i32 = -32603;
/// The text of an error without a text.
const NO_TEXT: &str = "the server gave no reason";

/// Repairs the fields of a message.
pub(super) fn mend(message: &mut Value, flaws: &mut Flaws) {
    let Some(message) = message.as_object_mut() else {
        return;
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        flaws.note("`jsonrpc` is not \"2.0\"");
        message.insert("jsonrpc".to_owned(), json!("2.0"));
    }
    if message.contains_key("method") {
        return;
    }
    if let Some(id) = message.get("id").and_then(id_of) {
        message.insert("id".to_owned(), id.into_json_value());
    }
    let has_result = message
        .get("result")
        .is_some_and(|result| !result.is_null());
    match message.get_mut("error") {
        Some(Value::Null) => {
            flaws.note("`error` is null");
            message.remove("error");
            // A result of null is an answer without content.
            message.entry("result").or_insert(Value::Null);
        }
        Some(error) if !has_result => {
            mend_error(error, flaws);
            message.remove("result");
        }
        Some(_) => {
            flaws.note("`error` stands beside a result");
            message.remove("error");
        }
        None => {}
    }
    match message.get_mut("result") {
        Some(Value::Object(result)) => mend_result(result, flaws),
        Some(Value::Null) => {
            flaws.note("the result is null");
            message.insert("result".to_owned(), json!({}));
        }
        Some(Value::String(text)) => {
            flaws.note("the result is a text");
            let content = json!({"content": [{"type": "text", "text": text}]});
            message.insert("result".to_owned(), content);
        }
        _ => {}
    }
}

/// Returns the id of an answer; `None` for a request or a notification of the server.
pub(super) fn id_of_answer(message: &Value) -> Option<RequestId> {
    let is_answer = message.get("method").is_none();
    let id = message.get("id").filter(|_| is_answer)?;
    id_of(id)
}

fn mend_error(error: &mut Value, flaws: &mut Flaws) {
    let Some(fields) = error.as_object_mut() else {
        flaws.note("the error is no object");
        let text = match &*error {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        *error = json!({"code": INTERNAL_ERROR, "message": text});
        return;
    };
    let code = match fields.get("code") {
        Some(Value::String(code)) => code.trim().parse().ok(),
        Some(code) => code.as_i64().and_then(|code| i32::try_from(code).ok()),
        None => None,
    };
    if fields.get("code").and_then(Value::as_i64) != code.map(i64::from) || code.is_none() {
        flaws.note("the code of the error is no number of 32 bits");
    }
    let name = fields
        .get("code")
        .and_then(Value::as_str)
        .map(str::to_owned);
    fields.insert("code".to_owned(), json!(code.unwrap_or(INTERNAL_ERROR)));
    if !fields.get("message").is_some_and(Value::is_string) {
        flaws.note("the error has no text");
        let text = match fields.get("message") {
            None | Some(Value::Null) => name.unwrap_or_else(|| NO_TEXT.to_owned()),
            Some(other) => other.to_string(),
        };
        fields.insert("message".to_owned(), json!(text));
    }
}

fn mend_result(result: &mut Map<String, Value>, flaws: &mut Flaws) {
    if result.contains_key("protocolVersion") {
        mend_handshake(result, flaws);
    }
    if let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain_mut(|tool| mend_tool(tool, flaws));
        if let Some(Value::Number(cursor)) = result.get("nextCursor") {
            let cursor = cursor.to_string();
            result.insert("nextCursor".to_owned(), json!(cursor));
        }
    }
    if result.contains_key("content") || result.contains_key("structuredContent") {
        mend_answer(result, flaws);
    }
}

/// Repairs the answer to `initialize`.
fn mend_handshake(result: &mut Map<String, Value>, flaws: &mut Flaws) {
    if let Some(version) = result.get_mut("protocolVersion")
        && !version.is_string()
    {
        flaws.note("the version of the protocol is no text");
        *version = json!(version.to_string());
    }
    let objects = ["capabilities", "serverInfo"];
    for name in objects {
        if !result.get(name).is_some_and(Value::is_object) {
            flaws.note(format!("the server tells no `{name}`"));
            result.insert(name.to_owned(), json!({}));
        }
    }
    if let Some(Value::Object(capabilities)) = result.get_mut("capabilities") {
        capabilities.retain(|_, value| !matches!(value, Value::Null | Value::Bool(false)));
        // Some languages write an empty object as an empty list.
        for capability in capabilities.values_mut().filter(|value| !value.is_object()) {
            *capability = json!({});
        }
    }
    if let Some(Value::Object(info)) = result.get_mut("serverInfo") {
        for name in ["name", "version"] {
            match info.get(name) {
                Some(Value::String(_)) => {}
                Some(Value::Number(number)) => {
                    let number = number.to_string();
                    info.insert(name.to_owned(), json!(number));
                }
                _ => {
                    info.insert(name.to_owned(), json!("unknown"));
                }
            }
        }
        info.retain(|name, _| matches!(name.as_str(), "name" | "version"));
    }
    drop_unless(result, "instructions", Value::is_string);
    drop_unless(result, "_meta", Value::is_object);
}

/// Repairs a tool in a list. Returns false for a tool that cannot be offered.
fn mend_tool(tool: &mut Value, flaws: &mut Flaws) -> bool {
    let Some(tool) = tool.as_object_mut() else {
        flaws.note("an entry of the list of tools is no tool, and is left out");
        return false;
    };
    let Some(name) = tool.get("name").and_then(Value::as_str) else {
        flaws.note("a tool without a name is left out");
        return false;
    };
    let name = name.to_owned();
    if !tool.get("inputSchema").is_some_and(Value::is_object) {
        flaws.note(format!("the schema of tool `{name}` is no object"));
        tool.insert("inputSchema".to_owned(), json!({"type": "object"}));
    }
    for text in ["title", "description"] {
        drop_unless(tool, text, Value::is_string);
    }
    for object in ["outputSchema", "annotations", "_meta"] {
        drop_unless(tool, object, Value::is_object);
    }
    // Nobody shows them.
    tool.remove("icons");
    if let Some(hints) = tool.get_mut("annotations").and_then(Value::as_object_mut) {
        drop_unless(hints, "title", Value::is_string);
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            drop_unless(hints, hint, Value::is_boolean);
        }
    }
    true
}

/// Repairs the result of a tool.
fn mend_answer(result: &mut Map<String, Value>, flaws: &mut Flaws) {
    let content = match result.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        None => Vec::new(),
        Some(Value::Null) => {
            flaws.note("the content is null");
            Vec::new()
        }
        Some(other) => {
            flaws.note("the content is no list");
            vec![other]
        }
    };
    let blocks = content
        .into_iter()
        .filter_map(|block| block::mend(block, flaws));
    result.insert("content".to_owned(), Value::Array(blocks.collect()));
    match result.get("isError") {
        Some(Value::String(word)) => {
            let is_error = word.eq_ignore_ascii_case("true");
            result.insert("isError".to_owned(), json!(is_error));
        }
        Some(Value::Bool(_)) | None => {}
        Some(other) => {
            let is_error = other.as_f64().is_some_and(|number| number != 0.0);
            result.insert("isError".to_owned(), json!(is_error));
        }
    }
    drop_unless(result, "_meta", Value::is_object);
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonRpcMessage, ServerResult};

    use super::{super::read, *};

    fn result_of(result: &Value) -> (ServerResult, String) {
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
        let mut reading = read(&text);
        match reading.messages.remove(0) {
            JsonRpcMessage::Response(response) => (response.result, reading.flaws.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_bad_tool_takes_no_other_tool_away() {
        let tools = json!([
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "null", "inputSchema": null},
            {"name": "missing"},
            {"name": "boolean", "inputSchema": true, "outputSchema": 1},
            {"name": "odd", "inputSchema": {}, "title": 1, "annotations": {"readOnlyHint": "yes", "idempotentHint": true},
             "icons": "x.png", "_meta": null},
            {"inputSchema": {}}, null, 7,
        ]);
        let (result, flaws) = result_of(&json!({"tools": tools, "nextCursor": 2}));
        let ServerResult::ListToolsResult(list) = result else {
            panic!("{result:?}")
        };
        let names: Vec<_> = list.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good", "null", "missing", "boolean", "odd"]);
        let hints = list.tools[4].annotations.as_ref().unwrap();
        assert_eq!(
            (hints.read_only_hint, hints.idempotent_hint),
            (None, Some(true))
        );
        assert_eq!(list.next_cursor.as_deref(), Some("2"));
        assert!(
            flaws.contains("`boolean`") && flaws.contains("without a name"),
            "{flaws}"
        );
    }

    #[test]
    fn the_answer_to_a_handshake_may_lack_parts() {
        for (version, capabilities, info) in [
            (json!(1), json!({"tools": []}), json!(null)),
            (json!("2024-11-05"), json!(null), json!({"name": "x"})),
            (
                json!("x"),
                json!({"tools": true, "logging": null}),
                json!({"name": "x", "version": 1.5, "icons": 1}),
            ),
        ] {
            let answer = json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info, "instructions": null});
            let (result, flaws) = result_of(&answer);
            assert!(
                matches!(result, ServerResult::InitializeResult(_)),
                "{result:?}"
            );
            assert_eq!(flaws.is_empty(), info["version"] == 1.5, "{flaws}");
        }
    }

    #[test]
    fn an_answer_that_is_almost_json_rpc_ends_its_request() {
        for (text, code, message) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":"-32001","message":"no"}}"#,
                -32001,
                "no",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":"E_DENIED"}}"#,
                INTERNAL_ERROR,
                "E_DENIED",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":"no","result":null}"#,
                INTERNAL_ERROR,
                "no",
            ),
            (
                r#"{"id":1,"error":{"code":-32000,"message":{"a":1}}}"#,
                -32000,
                r#"{"a":1}"#,
            ),
        ] {
            let mut reading = read(text);
            assert!(!reading.flaws.is_empty(), "{text}");
            let JsonRpcMessage::Error(error) = reading.messages.remove(0) else {
                panic!("{text}")
            };
            assert_eq!(
                (error.error.code.0, &*error.error.message),
                (code, message),
                "{text}"
            );
            assert_eq!(error.id.unwrap().to_string(), "1");
        }
        let both = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]},"error":null}"#;
        let first = |text: &str| read(text).messages.into_iter().next();
        assert!(matches!(first(both), Some(JsonRpcMessage::Response(_))));
        let text = first(r#"{"jsonrpc":"2.0","id":"1","result":"done"}"#);
        assert!(matches!(text, Some(JsonRpcMessage::Response(_))));
        let number = first(r#"{"jsonrpc":"2.0","id":1,"result":7}"#);
        assert!(matches!(number, Some(JsonRpcMessage::Error(_))));
        assert!(first(r#"{"jsonrpc":"2.0","id":null,"result":7}"#).is_none());
        let float = first(r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#);
        assert!(matches!(float, Some(JsonRpcMessage::Response(it)) if it.id.to_string() == "1"));
        let broken = first(r#"{"jsonrpc":"2.0","id":1,"result":{"text":"say "no""}}"#);
        assert!(matches!(broken, Some(JsonRpcMessage::Error(it)) if it.id.is_some()));
    }
}
