//! Demands that several wires share.

use std::collections::BTreeSet;

use serde_json::Value;

pub(super) use super::found::list;
use super::{found::Problems, schemas::SchemaReader};

/// The longest name of a tool, and of a format.
pub(super) const MAX_NAME_BYTES: usize = 64;
/// The most tools of a request. Anthropic documents no limit; the profile has 256.
const MAX_TOOLS: usize = 128;
const MAX_TOOLS_OF_ANTHROPIC: usize = 256;

/// True for a text of letters, digits, `_` and `-`, up to a length.
pub(super) fn is_word(value: &Value, max_bytes: usize) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    value
        .as_str()
        .is_some_and(|text| (1..=max_bytes).contains(&text.len()) && text.bytes().all(is_of_word))
}

/// True for a text with more than space.
pub(super) fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// True for a text that is a JSON object.
pub(super) fn is_object_text(value: &Value) -> bool {
    let read = value
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    read.is_some_and(|value| value.is_object())
}

/// True for a URL with data in it.
pub(super) fn is_data_url(value: &Value) -> bool {
    let data = value.as_str().and_then(|url| url.split_once(";base64,"));
    data.is_some_and(|(head, data)| {
        head.starts_with("data:") && head.contains('/') && !data.is_empty()
    })
}

/// Checks the offered tools: their names, the schemas of their arguments, and their number.
pub(super) fn tools<'a>(
    found: &mut Problems,
    reader: SchemaReader,
    tools: impl Iterator<Item = (&'a Value, &'a Value)>,
    is_listed: bool,
) {
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for (name, schema) in tools {
        count += 1;
        found.unless(is_word(name, MAX_NAME_BYTES), || {
            format!("tools: the name {name}")
        });
        found.unless(seen.insert(name.to_string()), || {
            format!("tools: {name} twice")
        });
        for problem in reader.problems(name.as_str().unwrap_or_default(), schema) {
            found.unless(false, || format!("tools: {name}: {problem}"));
        }
    }
    found.unless(!is_listed || count > 0, || {
        "tools: an empty list".to_owned()
    });
    let most = match reader {
        SchemaReader::Anthropic => MAX_TOOLS_OF_ANTHROPIC,
        _ => MAX_TOOLS,
    };
    found.unless(count <= most, || format!("tools: {count} tools"));
}

/// Checks a call's name.
pub(super) fn name(found: &mut Problems, address: &str, name: &Value) {
    found.unless(is_word(name, MAX_NAME_BYTES), || {
        format!("{address}: the tool's name {name}")
    });
}

/// True when a text of the messages has the word JSON. OpenAI takes the format of JSON without a schema only then.
pub(super) fn names_json(messages: &Value) -> bool {
    let text = |content: &Value| content.to_string().to_lowercase();
    list(messages)
        .iter()
        .any(|message| text(&message["content"]).contains("json"))
}

/// Checks the demand on the tool calls on OpenAI's wires: a word, or the name of an offered tool.
pub(super) fn tool_choice<'a>(
    found: &mut Problems,
    choice: &Value,
    named: &Value,
    mut names: impl Iterator<Item = &'a Value>,
) {
    let is_known = match choice {
        Value::Null => true,
        Value::String(word) => matches!(word.as_str(), "auto" | "required" | "none"),
        choice => choice["type"] == "function" && names.any(|name| name == named),
    };
    found.unless(is_known, || format!("tool_choice: {choice}"));
}
