//! Repairs the fields of a message that almost have their type.

use rmcp::model::RequestId;
use serde_json::{Map, Value, json};

use super::flaws::Flaws;

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
    serde_json::from_value(id.clone()).ok()
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

fn drop_unless(fields: &mut Map<String, Value>, name: &str, is_fit: impl Fn(&Value) -> bool) {
    if fields.get(name).is_some_and(|value| !is_fit(value)) {
        fields.remove(name);
    }
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
        .filter_map(|block| mend_block(block, flaws));
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

/// Repairs a block of content. An unknown block becomes a text, because its content may matter to the model.
fn mend_block(block: Value, flaws: &mut Flaws) -> Option<Value> {
    let mut fields = match block {
        Value::Object(fields) => fields,
        other => return mend_bare_block(other, flaws),
    };
    for optional in ["annotations", "_meta", "icons"] {
        fields.remove(optional);
    }
    let kind = fields
        .get("type")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let has_text = |field: &str| fields.get(field).is_some_and(Value::is_string);
    match kind.as_deref() {
        Some("text") if has_text("text") => {}
        None if has_text("text") => {
            fields.insert("type".to_owned(), json!("text"));
        }
        Some(kind @ ("image" | "audio")) if has_text("data") => {
            let mime_type = if kind == "image" {
                "image/png"
            } else {
                "audio/wav"
            };
            default_text(&mut fields, "mimeType", mime_type, flaws);
        }
        Some("resource") if fields.get("resource").is_some_and(Value::is_object) => {
            let resource = fields.get_mut("resource").and_then(Value::as_object_mut)?;
            default_text(resource, "uri", "", flaws);
            drop_unless(resource, "mimeType", Value::is_string);
            drop_unless(resource, "_meta", Value::is_object);
            if !["text", "blob"]
                .iter()
                .any(|field| resource.get(*field).is_some_and(Value::is_string))
            {
                default_text(resource, "text", "", flaws);
            }
        }
        Some("resource_link") if has_text("uri") => {
            let uri = fields
                .get("uri")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            default_text(&mut fields, "name", &uri, flaws);
            for text in ["title", "description", "mimeType"] {
                drop_unless(&mut fields, text, Value::is_string);
            }
            drop_unless(&mut fields, "size", Value::is_u64);
        }
        _ => {
            let kind = kind.unwrap_or_default();
            flaws.note(format!(
                "a block of the unknown type `{kind}` is shown as JSON"
            ));
            return Some(text_block(&Value::Object(fields).to_string()));
        }
    }
    Some(Value::Object(fields))
}

/// Repairs a block that is no object.
fn mend_bare_block(block: Value, flaws: &mut Flaws) -> Option<Value> {
    match block {
        Value::Null => {
            flaws.note("a block of the content is null, and is left out");
            None
        }
        Value::String(text) => {
            flaws.note("a block of the content is a bare text");
            Some(text_block(&text))
        }
        other => {
            flaws.note("a block of the content is no object");
            Some(text_block(&other.to_string()))
        }
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn default_text(fields: &mut Map<String, Value>, name: &str, default: &str, flaws: &mut Flaws) {
    if !fields.get(name).is_some_and(Value::is_string) {
        flaws.note(format!("a block of the content has no `{name}`"));
        fields.insert(name.to_owned(), json!(default));
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ContentBlock, JsonRpcMessage, ServerResult};

    use super::{super::read, *};

    fn result_of(result: &Value) -> (ServerResult, String) {
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
        let reading = read(&text).unwrap();
        match reading.message {
            JsonRpcMessage::Response(response) => (response.result, reading.flaws.to_string()),
            other => panic!("{other:?}"),
        }
    }

    fn blocks(content: &Value) -> Vec<ContentBlock> {
        match result_of(&json!({"content": content})).0 {
            ServerResult::CallToolResult(result) => result.content,
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
    fn a_bad_block_takes_no_other_block_away() {
        let found = blocks(&json!([
            {"type": "text", "text": "a", "annotations": 5}, null, "b", {"text": "c"}, {"type": "hologram", "x": 1},
            {"type": "image", "data": "AAA="}, {"type": "resource", "resource": {"uri": "x:y"}},
            {"type": "resource_link", "uri": "x:z"},
        ]));
        let texts: Vec<_> = found
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["a", "b", "c", r#"{"type":"hologram","x":1}"#]);
        assert!(matches!(&found[4], ContentBlock::Image(image) if image.mime_type == "image/png"));
        assert!(
            matches!(&found[5..], [ContentBlock::Resource(_), ContentBlock::ResourceLink(link)] if link.name == "x:z")
        );
        let texts = [json!("whole"), json!({"type": "text", "text": "whole"})];
        for content in texts {
            assert_eq!(blocks(&content), [ContentBlock::text("whole")]);
        }
        assert!(blocks(&json!(null)).is_empty());
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
            let reading = read(text).unwrap();
            assert!(!reading.flaws.is_empty(), "{text}");
            let JsonRpcMessage::Error(error) = reading.message else {
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
        assert!(matches!(
            read(both).unwrap().message,
            JsonRpcMessage::Response(_)
        ));
        let text = read(r#"{"jsonrpc":"2.0","id":"1","result":"done"}"#).unwrap();
        assert!(matches!(text.message, JsonRpcMessage::Response(_)));
        let number = read(r#"{"jsonrpc":"2.0","id":1,"result":7}"#).unwrap();
        assert!(matches!(number.message, JsonRpcMessage::Error(_)));
        assert!(read(r#"{"jsonrpc":"2.0","id":null,"result":7}"#).is_none());
    }
}
