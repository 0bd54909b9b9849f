//! The demands of Anthropic's messages.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    found::Problems,
    rules::{self, is_text, is_word, list},
    schemas::SchemaReader,
};

const MAX_ID_BYTES: usize = 64;
/// The most marks of the cache in a request.
const MAX_MARKS: usize = 4;
/// The fewest tokens of a budget for thoughts.
const MIN_BUDGET: u64 = 1024;

pub(super) fn problems(body: &Value) -> Vec<String> {
    let mut found = Problems::default();
    fields(&mut found, body);
    marks(&mut found, body);
    let messages = list(&body["messages"]);
    let ends = [messages.first(), messages.last()];
    let are_users = ends
        .iter()
        .all(|it| it.is_some_and(|it| it["role"] == "user"));
    found.unless(are_users, || {
        "messages: the first or the last message is not a user's".to_owned()
    });
    Messages {
        found: &mut found,
        seen: BTreeSet::new(),
        open: BTreeSet::new(),
    }
    .check(messages);
    found.into_vec()
}

/// Checks the fields beside the messages.
fn fields(found: &mut Problems, body: &Value) {
    let has = |field: &str| body.get(field).is_some();
    found.unless(is_text(&body["model"]), || "model: none".to_owned());
    let limit = body["max_tokens"].as_u64().unwrap_or_default();
    found.unless(limit > 0, || format!("max_tokens: {}", body["max_tokens"]));
    let budget = &body["thinking"]["budget_tokens"];
    if !budget.is_null() {
        let fits = budget
            .as_u64()
            .is_some_and(|budget| (MIN_BUDGET..limit).contains(&budget));
        found.unless(fits, || {
            format!("thinking: a budget of {budget} tokens beside max_tokens {limit}")
        });
    }
    let choice = body["tool_choice"]["type"].as_str();
    let is_forced = matches!(choice, Some("any" | "tool"));
    let thinks = matches!(
        body["thinking"]["type"].as_str(),
        Some("enabled" | "adaptive")
    );
    found.unless(!(is_forced && thinks), || {
        "thinking: beside a tool_choice that demands a call".to_owned()
    });
    found.unless(
        choice.is_none_or(|word| matches!(word, "auto" | "any" | "tool" | "none")),
        || format!("tool_choice: {}", body["tool_choice"]),
    );
    let mut names = list(&body["tools"]).iter();
    let named = &body["tool_choice"]["name"];
    let is_offered = named.is_null() || names.any(|tool| tool["name"] == *named);
    found.unless(is_offered, || format!("tool_choice: no tool {named}"));
    let format = &body["output_config"]["format"];
    found.unless(format.is_null() || format["schema"].is_object(), || {
        format!("output_config: the format {format}")
    });
    let blocks = list(&body["system"]);
    let are_texts = blocks.iter().all(|block| is_text(&block["text"]));
    let fits = !has("system") || is_text(&body["system"]) || !blocks.is_empty() && are_texts;
    found.unless(fits, || "system: an empty text".to_owned());
    let tools = list(&body["tools"]).iter();
    let tools = tools.map(|tool| (&tool["name"], &tool["input_schema"]));
    rules::tools(found, SchemaReader::Anthropic, tools, has("tools"));
    found.unless(!has("tool_choice") || has("tools"), || {
        "tool_choice: without tools".to_owned()
    });
}

/// Checks the marks of the cache: their number, and their positions.
fn marks(found: &mut Problems, body: &Value) {
    let contents = list(&body["messages"]).iter().flat_map(|it| {
        let blocks = list(&it["content"]).iter();
        blocks.flat_map(|block| std::iter::once(block).chain(list(&block["content"])))
    });
    let blocks = list(&body["tools"]).iter().chain(list(&body["system"]));
    let is_marked = |block: &&Value| block["cache_control"].is_object();
    let marked: Vec<&Value> = blocks.chain(contents).filter(is_marked).collect();
    let count = marked.len() + usize::from(body["cache_control"].is_object());
    found.unless(count <= MAX_MARKS, || {
        format!("cache_control: {count} marks")
    });
    for block in marked {
        let is_empty = block["type"] == "text" && !is_text(&block["text"]);
        found.unless(!is_thought(block) && !is_empty, || {
            format!("cache_control: on {block}")
        });
    }
}

fn is_thought(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// The check of the messages, in their order.
struct Messages<'a> {
    found: &'a mut Problems,
    /// The ids of the calls in the checked messages.
    seen: BTreeSet<&'a str>,
    /// The ids of the calls of the last message.
    open: BTreeSet<&'a str>,
}

impl<'a> Messages<'a> {
    fn check(mut self, messages: &'a [Value]) {
        let mut awaits_user = true;
        for (at, message) in messages.iter().enumerate() {
            let address = format!("messages[{at}]");
            let content = &message["content"];
            let is_user = message["role"] == "user";
            self.found
                .unless(is_user || message["role"] == "assistant", || {
                    format!("{address}: the role {}", message["role"])
                });
            self.found.unless(is_user == awaits_user, || {
                format!("{address}: two messages of {} in a row", message["role"])
            });
            awaits_user = !is_user;
            let blocks = list(content);
            self.found
                .unless(is_text(content) || !blocks.is_empty(), || {
                    format!("{address}: an empty message")
                });
            if is_user {
                self.user(&address, blocks);
            } else {
                self.model(&address, blocks);
            }
        }
        self.results_are_complete("the end");
    }

    fn results_are_complete(&mut self, address: &str) {
        let open = std::mem::take(&mut self.open);
        self.found.unless(open.is_empty(), || {
            format!("{address}: calls without a result: {open:?}")
        });
    }

    /// Checks a user's message, which begins with the results of the calls before.
    fn user(&mut self, address: &str, blocks: &[Value]) {
        let mut is_after_results = false;
        for block in blocks {
            let is_result = block["type"] == "tool_result";
            self.found.unless(!(is_result && is_after_results), || {
                format!("{address}: a result after {block}")
            });
            is_after_results |= !is_result;
            if is_result {
                self.result(address, block);
            } else {
                self.content(address, block);
            }
        }
        self.results_are_complete(address);
    }

    fn result(&mut self, address: &str, block: &Value) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        self.found.unless(self.open.remove(id), || {
            format!("{address}: a result of {id:?}, which no call before it awaits")
        });
        let parts = list(&block["content"]);
        for part in parts {
            self.content(address, part);
        }
        let has_content = is_text(&block["content"]) || !parts.is_empty();
        self.found.unless(has_content, || {
            format!("{address}: an empty result of {id:?}")
        });
    }

    /// Checks a text or a file.
    fn content(&mut self, address: &str, block: &Value) {
        let fits = match block["type"].as_str() {
            Some("text") => is_text(&block["text"]),
            Some("image" | "document") => is_text(&block["source"]["data"]),
            _ => false,
        };
        self.found
            .unless(fits, || format!("{address}: the block {block}"));
    }

    fn model(&mut self, address: &str, blocks: &'a [Value]) {
        let is_after_text = blocks
            .windows(2)
            .any(|pair| pair[0]["type"] == "text" && is_thought(&pair[1]));
        let is_last = blocks.last().is_some_and(is_thought);
        self.found.unless(!is_after_text && !is_last, || {
            format!("{address}: thoughts that are not before the text and the calls")
        });
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_use") => self.call(address, block),
                Some("thinking") => {
                    let fits = block["thinking"].is_string() && is_text(&block["signature"]);
                    self.found
                        .unless(fits, || format!("{address}: thoughts without a signature"));
                }
                Some("redacted_thinking") => {
                    self.found.unless(is_text(&block["data"]), || {
                        format!("{address}: thoughts without data")
                    });
                }
                Some("text") => self.content(address, block),
                _ => self
                    .found
                    .unless(false, || format!("{address}: the block {block}")),
            }
        }
    }

    fn call(&mut self, address: &str, block: &'a Value) {
        self.found.unless(is_word(&block["id"], MAX_ID_BYTES), || {
            format!("{address}: the call's id {}", block["id"])
        });
        let id = block["id"].as_str().unwrap_or_default();
        self.found
            .unless(self.seen.insert(id), || format!("{address}: {id} twice"));
        self.open.insert(id);
        rules::name(self.found, address, &block["name"]);
        self.found.unless(block["input"].is_object(), || {
            format!("{address}: the arguments {}", block["input"])
        });
    }
}
