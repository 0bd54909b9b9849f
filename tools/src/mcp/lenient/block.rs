//! Repairs the blocks of a result's content.

use serde_json::{Map, Value, json};

use super::{field::drop_unless, flaws::Flaws};

/// The begins of images in base64, with the types of the images.
const IMAGES: [(&str, &str); 5] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("SUQz", "audio/mpeg"),
];

/// Repairs a block of content. An unknown block becomes a text, because its content may matter to the model.
pub(super) fn mend(block: Value, flaws: &mut Flaws) -> Option<Value> {
    let mut fields = match block {
        Value::Object(fields) => fields,
        other => return mend_bare(other, flaws),
    };
    for optional in ["annotations", "_meta", "icons"] {
        fields.remove(optional);
    }
    if let Some(media_type) = fields.remove("mime_type") {
        fields.entry("mimeType").or_insert(media_type);
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
        Some("image" | "audio") if has_text("data") => {
            mend_data(&mut fields, "data");
            let data = text_in(&fields, "data");
            default_text(&mut fields, "mimeType", media_type_of(&data), flaws);
        }
        Some("resource") if fields.get("resource").is_some_and(Value::is_object) => {
            let resource = fields.get_mut("resource").and_then(Value::as_object_mut)?;
            default_text(resource, "uri", "", flaws);
            mend_data(resource, "blob");
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
            let uri = text_in(&fields, "uri");
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
fn mend_bare(block: Value, flaws: &mut Flaws) -> Option<Value> {
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

fn text_in(fields: &Map<String, Value>, name: &str) -> String {
    let text = fields.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Repairs data in base64: data in a URL (`data:image/png;base64,…`), and data in lines.
fn mend_data(fields: &mut Map<String, Value>, name: &str) {
    let data = text_in(fields, name);
    let (media_type, base64) = data
        .strip_prefix("data:")
        .and_then(|url| url.split_once(";base64,"))
        .unwrap_or(("", &data));
    if media_type.is_empty() && !base64.contains(char::is_whitespace) {
        return;
    }
    if !media_type.is_empty() {
        fields.entry("mimeType").or_insert(json!(media_type));
    }
    let base64: String = base64.split_whitespace().collect();
    fields.insert(name.to_owned(), json!(base64));
}

/// Returns the type of data whose server names no type.
fn media_type_of(base64: &str) -> &'static str {
    let known = IMAGES.iter().find(|(begin, _)| base64.starts_with(begin));
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ContentBlock, JsonRpcMessage, ServerResult};

    use super::{super::read, *};

    fn blocks(content: &Value) -> Vec<ContentBlock> {
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).to_string();
        match read(&text).messages.remove(0) {
            JsonRpcMessage::Response(response) => match response.result {
                ServerResult::CallToolResult(result) => result.content,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_bad_block_takes_no_other_block_away() {
        let found = blocks(&json!([
            {"type": "text", "text": "a", "annotations": 5}, null, "b", {"text": "c"}, {"type": "hologram", "x": 1},
            {"type": "image", "data": "iVBORw0KGgo="}, {"type": "resource", "resource": {"uri": "x:y"}},
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
    fn data_in_a_url_or_in_lines_is_plain_base64() {
        let found = blocks(&json!([
            {"type": "image", "data": "data:image/jpeg;base64,AAAA"},
            {"type": "image", "data": "AA\r\nAA\n", "mime_type": "image/gif"},
            {"type": "audio", "data": "AAAA"},
        ]));
        let parts = found.iter().map(|block| match block {
            ContentBlock::Image(image) => (&*image.data, &*image.mime_type),
            ContentBlock::Audio(audio) => (&*audio.data, &*audio.mime_type),
            other => panic!("{other:?}"),
        });
        let expected = [
            ("AAAA", "image/jpeg"),
            ("AAAA", "image/gif"),
            ("AAAA", "application/octet-stream"),
        ];
        assert_eq!(parts.collect::<Vec<_>>(), expected);
    }
}
