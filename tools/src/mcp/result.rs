//! Turns a server's answer into a tool's output.

use everturn_proto::{Json, TOOL_EVENTS_FIELD, ToolResultEvents};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};
use serde_json::{Value, json};

use crate::error::ToolError;

/// Takes the events out of the metadata of a result.
pub(super) fn events(mut answer: ServerResult) -> (ServerResult, ToolResultEvents) {
    let mut events = ToolResultEvents::default();
    if let ServerResult::CallToolResult(result) = &mut answer
        && let Some(meta) = &mut result.meta
        && let Some(list) = meta.0.remove(TOOL_EVENTS_FIELD)
    {
        events = ToolResultEvents::read(&Json::of(&list));
    }
    (answer, events)
}

/// Returns the output of an answered call. A result marked as an error by the server is a known failure.
pub(super) fn output(answer: ServerResult) -> Result<Json, ToolError> {
    match answer {
        ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
            Err(ToolError::Failed(error_text(&value(result))))
        }
        ServerResult::CallToolResult(result) => Ok(Json::of(&value(result))),
        // The tool has run, so the model gets whatever the server gave.
        other => Ok(Json::of(&unknown(&other))),
    }
}

/// Returns a result without content. Protocol 2024-10-07 has the field `toolResult`.
fn unknown(answer: &ServerResult) -> Value {
    let mut value = json!(answer);
    let fields = value.as_object_mut();
    match fields {
        Some(fields) if fields.is_empty() => json!(""),
        Some(fields) => match fields.remove("toolResult") {
            Some(result) => result,
            None => value,
        },
        None => value,
    }
}

/// Returns the value for the model: the texts and other parts if present, else the structured content. A single part is
/// unchanged, and several parts are a list.
///
/// Servers repeat structured content as text, for clients without support. The text may say more than the structure, so the
/// text counts.
fn value(result: CallToolResult) -> Value {
    let content = result.content;
    let Some(structured) = result.structured_content.filter(|it| !it.is_null()) else {
        return plain(content);
    };
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .filter(|text| !text.trim().is_empty())
        .collect();
    if let [text] = texts.as_slice()
        && content.len() == 1
        && serde_json::from_str::<Value>(text).is_ok_and(|text| text == structured)
    {
        return structured;
    }
    if !texts.is_empty() || content.iter().any(|block| repeats(&structured, block)) {
        return plain(content);
    }
    match plain(content) {
        Value::String(text) if text.trim().is_empty() => structured,
        Value::Array(parts) => json!({"structured": structured, "content": parts}),
        part => json!({"structured": structured, "content": [part]}),
    }
}

fn plain(content: Vec<ContentBlock>) -> Value {
    let mut parts: Vec<Value> = content.into_iter().map(part).collect();
    match parts.len() {
        0 => json!(""),
        1 => parts.remove(0),
        _ => Value::Array(parts),
    }
}

/// True when a structure has the data of a block, too. The model then gets the data once.
fn repeats(structured: &Value, block: &ContentBlock) -> bool {
    let data = match block {
        ContentBlock::Image(image) => &image.data,
        ContentBlock::Audio(audio) => &audio.data,
        _ => return false,
    };
    match structured {
        // The structure has the data as the server wrote it: perhaps in a `data:` URL, or in lines.
        Value::String(text) => {
            let base64 = text.rsplit(";base64,").next().unwrap_or(text);
            let letters = base64.chars().filter(|letter| !letter.is_whitespace());
            letters.eq(data.chars())
        }
        Value::Array(items) => items.iter().any(|item| repeats(item, block)),
        Value::Object(fields) => fields.values().any(|field| repeats(field, block)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Encodes binary parts as base64 with a type, as everywhere in Everturn.
fn part(block: ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => Value::String(text.text),
        ContentBlock::Image(image) => {
            json!({"encoding": "base64", "type": image.mime_type, "data": image.data})
        }
        ContentBlock::Audio(audio) => {
            json!({"encoding": "base64", "type": audio.mime_type, "data": audio.data})
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents {
                uri,
                mime_type,
                text,
                ..
            } => {
                json!({"uri": uri, "type": mime_type, "text": text})
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                json!({"uri": uri, "encoding": "base64", "type": mime_type, "data": blob})
            }
            other => json!(other),
        },
        ContentBlock::ResourceLink(link) => {
            json!({"uri": link.uri, "name": link.name, "type": link.mime_type, "description": link.description})
        }
        other => json!(other),
    }
}

fn error_text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => parts
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("\n"),
        other => Json::of(other).as_str().to_owned(),
    };
    if text.trim().is_empty() {
        return "The tool failed and did not say why.".to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(result: Value) -> Result<Value, ToolError> {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        output(ServerResult::CallToolResult(result)).map(|result| result.to_value())
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn results_are_as_plain_as_they_can_be() {
        assert_eq!(answer(json!({"content": []})).unwrap(), "");
        assert_eq!(answer(json!({"content": [text("42")]})).unwrap(), "42");
        assert_eq!(
            answer(json!({"content": [text("a"), text("b")]})).unwrap(),
            json!(["a", "b"])
        );
        let structured = json!({"content": [text("{\"n\":1}")], "structuredContent": {"n": 1}});
        assert_eq!(answer(structured).unwrap(), json!({"n": 1}));
    }

    #[test]
    fn a_structure_takes_no_text_and_no_image_away() {
        let both = json!({"content": [text("all of the file")], "structuredContent": {"lines": 3}});
        assert_eq!(answer(both).unwrap(), "all of the file");
        for silent in [json!([]), json!([text(" ")]), json!(null)] {
            let structure = json!({"content": silent, "structuredContent": {"n": 1}});
            assert_eq!(answer(structure).unwrap(), json!({"n": 1}), "{silent}");
        }
        let failed = json!({"content": [text("no such order")], "structuredContent": {"code": 7}, "isError": true});
        assert_eq!(
            answer(failed).unwrap_err(),
            ToolError::Failed("no such order".into())
        );
        let image = json!({"type": "image", "data": "AAA=", "mimeType": "image/png"});
        let repeated = json!({"content": [image], "structuredContent": {"content": [image]}});
        let plain = json!({"encoding": "base64", "type": "image/png", "data": "AAA="});
        assert_eq!(answer(repeated).unwrap(), plain);
        let url = json!({"content": [image], "structuredContent": {"url": "data:image/png;base64,AA\nA="}});
        assert_eq!(answer(url).unwrap(), plain);
    }

    #[test]
    fn a_result_without_content_is_whatever_the_server_gave() {
        for (given, expected) in [
            (json!({}), json!("")),
            (json!({"toolResult": {"n": 1}}), json!({"n": 1})),
            (json!({"temperature": 21}), json!({"temperature": 21})),
        ] {
            let result: ServerResult = serde_json::from_value(given).unwrap();
            assert_eq!(output(result).unwrap().to_value(), expected);
        }
    }

    #[test]
    fn binary_parts_are_base64_with_their_type() {
        let image = json!({"type": "image", "data": "AAA=", "mimeType": "image/png"});
        let plain = json!({"encoding": "base64", "type": "image/png", "data": "AAA="});
        assert_eq!(answer(json!({"content": [image]})).unwrap(), plain);
        let both = answer(json!({"content": [image], "structuredContent": 1})).unwrap();
        assert_eq!(both, json!({"structured": 1, "content": [plain]}));
        let resource = json!({"type": "resource", "resource": {"uri": "x:y", "mimeType": "audio/wav", "blob": "AAA="}});
        let expected =
            json!({"uri": "x:y", "encoding": "base64", "type": "audio/wav", "data": "AAA="});
        assert_eq!(answer(json!({"content": [resource]})).unwrap(), expected);
    }

    #[test]
    fn an_error_of_the_tool_is_known() {
        let failed =
            |content: Value| answer(json!({"content": content, "isError": true})).unwrap_err();
        assert_eq!(
            failed(json!([text("no"), text("such file")])),
            ToolError::Failed("no\nsuch file".into())
        );
        let silent = ToolError::Failed("The tool failed and did not say why.".into());
        assert_eq!(failed(json!([])), silent);
        assert_eq!(failed(json!([text(" "), text("")])), silent);
        let structured = json!({"content": [], "structuredContent": [], "isError": true});
        assert_eq!(answer(structured).unwrap_err(), silent);
    }

    /// Results with the fields that the protocol has, and with anything else in them.
    fn results() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "text|image|audio|resource|resource_link|x".prop_map(Value::from),
        ];
        let any_value = leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::hash_map("text|data|mimeType|uri|blob|name|[a-z]", inner, 0..4)
                    .prop_map(|fields| json!(fields)),
            ]
        });
        let block = (
            any_value.clone(),
            "text|image|audio|resource|resource_link|[a-z]{1,4}",
        )
            .prop_map(|(mut block, kind)| {
                if block.is_object() {
                    block["type"] = kind.into();
                    for (name, value) in [
                        ("text", "t"),
                        ("data", "AAA="),
                        ("mimeType", "image/png"),
                        ("uri", "x:y"),
                        ("name", "n"),
                    ] {
                        if block[name].is_null() {
                            block[name] = value.into();
                        }
                    }
                }
                block
            });
        (prop::collection::vec(block, 0..4), proptest::option::of(any_value), any::<Option<bool>>()).prop_map(
            |(content, structured, is_error)| json!({"content": content, "structuredContent": structured, "isError": is_error}),
        )
    }

    proptest! {
        #[test]
        fn any_result_is_an_output_or_an_error_for_the_model(result in results()) {
            let is_error = result["isError"] == true;
            let Ok(result) = serde_json::from_value::<CallToolResult>(result) else { return Ok(()) };
            match output(ServerResult::CallToolResult(result)) {
                Ok(output) => {
                    prop_assert!(!is_error);
                    prop_assert!(Json::parse(output.as_str()).is_ok());
                }
                Err(error) => {
                    prop_assert!(is_error);
                    prop_assert!(matches!(error, ToolError::Failed(text) if !text.is_empty()));
                }
            }
        }
    }
}
