//! The demands of OpenAI's Responses API.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    found::Problems,
    rules::{self, is_data_url, is_object_text, is_text, is_word, list},
    schemas::SchemaReader,
};

const MAX_ID_CHARS: usize = 64;

pub(super) fn problems(body: &Value) -> Vec<String> {
    let mut found = Problems::default();
    fields(&mut found, body);
    let items = list(&body["input"]);
    found.unless(!items.is_empty(), || "input: no items".to_owned());
    Items {
        found: &mut found,
        is_stored: body["store"] != false,
        seen: BTreeSet::new(),
        open: BTreeSet::new(),
    }
    .check(items);
    found.into_vec()
}

/// Checks the fields beside the items.
fn fields(found: &mut Problems, body: &Value) {
    let has = |field: &str| body.get(field).is_some();
    found.unless(is_text(&body["model"]), || "model: none".to_owned());
    found.unless(body["background"] != true || body["store"] == true, || {
        "background: not stored".to_owned()
    });
    let fits = !has("instructions") || is_text(&body["instructions"]);
    found.unless(fits, || "instructions: an empty text".to_owned());
    let tools = list(&body["tools"]).iter();
    rules::tools(
        found,
        SchemaReader::OpenAi,
        tools.map(|tool| (&tool["name"], &tool["parameters"])),
        has("tools"),
    );
    found.unless(!has("tool_choice") || has("tools"), || {
        "tool_choice: without tools".to_owned()
    });
    for field in ["stop", "seed", "max_tokens"] {
        found.unless(!has(field), || format!("{field}: unknown"));
    }
    let choice = &body["tool_choice"];
    let names = list(&body["tools"]).iter().map(|tool| &tool["name"]);
    rules::tool_choice(found, choice, &choice["name"], names);
    let format = body.pointer("/text/format");
    if format.is_some_and(|format| format["type"] == "json_object") {
        found.unless(rules::names_json(&body["input"]), || {
            "text: no item has the word JSON".to_owned()
        });
    } else if let Some(format) = format {
        let is_named = is_word(&format["name"], rules::MAX_NAME_BYTES);
        found.unless(is_named && format["schema"].is_object(), || {
            format!("text: the format {format}")
        });
    }
}

/// The check of the items, in their order.
struct Items<'a> {
    found: &'a mut Problems,
    is_stored: bool,
    /// The ids of all items and calls so far.
    seen: BTreeSet<&'a str>,
    /// The ids of the calls that still need their result.
    open: BTreeSet<&'a str>,
}

impl<'a> Items<'a> {
    fn check(mut self, items: &'a [Value]) {
        let mut is_after_thoughts = false;
        for (at, item) in items.iter().enumerate() {
            let address = format!("input[{at}]");
            let is_thought = item["type"] == "reasoning";
            let is_models =
                is_thought || item["type"] == "function_call" || item["role"] == "assistant";
            self.found.unless(is_models || !is_after_thoughts, || {
                format!("{address}: thoughts without the item that followed them")
            });
            is_after_thoughts = is_thought;
            if let Some(id) = item["id"].as_str() {
                self.found
                    .unless(self.seen.insert(id), || format!("{address}: {id} twice"));
            }
            match item["type"].as_str() {
                Some("message") => self.message(&address, item),
                Some("function_call") => self.call(&address, item),
                Some("function_call_output") => self.result(&address, item),
                Some("reasoning") => {
                    let fits = self.is_stored || is_text(&item["encrypted_content"]);
                    self.found.unless(fits && item["summary"].is_array(), || {
                        format!("{address}: thoughts that nobody can read")
                    });
                }
                _ => self
                    .found
                    .unless(false, || format!("{address}: the type {}", item["type"])),
            }
        }
        let (open, found) = (self.open, self.found);
        found.unless(open.is_empty(), || {
            format!("input: calls without a result: {open:?}")
        });
        found.unless(!is_after_thoughts, || {
            "input: thoughts without an item that follows".to_owned()
        });
    }

    fn message(&mut self, address: &str, item: &Value) {
        let role = item["role"].as_str().unwrap_or_default();
        self.found
            .unless(matches!(role, "user" | "assistant" | "developer"), || {
                format!("{address}: the role {role:?}")
            });
        // A user's message between a call and its result would come before the result that the model awaits.
        self.found
            .unless(role != "user" || self.open.is_empty(), || {
                format!(
                    "{address}: a user's message before the results of {:?}",
                    self.open
                )
            });
        let parts = list(&item["content"]);
        self.found
            .unless(is_text(&item["content"]) || !parts.is_empty(), || {
                format!("{address}: an empty message")
            });
        for part in parts {
            let fits = match part["type"].as_str() {
                Some("input_text") => role == "user" && is_text(&part["text"]),
                Some("output_text") => role == "assistant" && is_text(&part["text"]),
                Some("input_image") => is_data_url(&part["image_url"]),
                Some("input_file") => is_text(&part["filename"]) && is_data_url(&part["file_data"]),
                _ => false,
            };
            self.found
                .unless(fits, || format!("{address}: a part {part}"));
        }
    }

    fn call(&mut self, address: &str, item: &'a Value) {
        let id = item["call_id"].as_str().unwrap_or_default();
        let fits = (1..=MAX_ID_CHARS).contains(&id.chars().count());
        self.found
            .unless(fits, || format!("{address}: the call's id {id:?}"));
        self.found
            .unless(self.seen.insert(id), || format!("{address}: {id} twice"));
        self.open.insert(id);
        rules::name(self.found, address, &item["name"]);
        self.found.unless(is_object_text(&item["arguments"]), || {
            format!("{address}: the arguments {}", item["arguments"])
        });
    }

    fn result(&mut self, address: &str, item: &Value) {
        let id = item["call_id"].as_str().unwrap_or_default();
        self.found.unless(self.open.remove(id), || {
            format!("{address}: a result of {id:?}, which no call before it awaits")
        });
        self.found.unless(is_text(&item["output"]), || {
            format!("{address}: the result {}", item["output"])
        });
    }
}
