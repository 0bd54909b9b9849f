//! The demands of providers with chat completions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    found::Problems,
    rules::{self, is_data_url, is_object_text, is_text, is_word, list},
    schemas::SchemaReader,
};

/// The fields of a model's message that every provider knows.
const FIELDS: [&str; 3] = ["role", "content", "tool_calls"];
const FIELDS_OF_CALLS: [&str; 3] = ["id", "type", "function"];
/// Parts of the names of OpenAI's reasoning models, which refuse `max_tokens`.
const REASONING_MODELS: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// The demands of one provider.
pub(super) struct Rules {
    /// True for the id of a call that the provider takes.
    is_id: fn(&str) -> bool,
    /// True when users and models must take turns.
    alternates: bool,
    /// Further fields of a model's message and of its calls.
    further_fields: &'static [&'static str],
    /// The fields of a request, when the provider refuses others.
    fields: Option<&'static [&'static str]>,
    /// The type of the parts with a PDF.
    document: &'static str,
    /// True when every message of a model needs its thoughts, or a text in their address.
    needs_thoughts: bool,
    /// The demands on the schemas of tools.
    schemas: SchemaReader,
}

pub(super) const OPENAI: Rules = Rules {
    is_id: |id| id.chars().count() <= 40,
    alternates: false,
    further_fields: &[],
    fields: None,
    document: "file",
    needs_thoughts: false,
    schemas: SchemaReader::OpenAi,
};

pub(super) const TEMPLATE: Rules = Rules {
    alternates: true,
    further_fields: &["reasoning_content", "reasoning_details", "extra_content"],
    ..OPENAI
};

pub(super) const MISTRAL: Rules = Rules {
    is_id: |id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    alternates: true,
    fields: Some(&[
        "model",
        "messages",
        "stream",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "max_tokens",
        "temperature",
        "top_p",
        "stop",
        "random_seed",
        "reasoning_effort",
    ]),
    document: "document_url",
    schemas: SchemaReader::Mistral,
    ..OPENAI
};

pub(super) const MISTRAL_MODEL: Rules = Rules {
    is_id: MISTRAL.is_id,
    ..TEMPLATE
};

pub(super) const DEEPSEEK: Rules = Rules {
    needs_thoughts: true,
    ..TEMPLATE
};

pub(super) fn problems(rules: &Rules, body: &Value) -> Vec<String> {
    let mut found = Problems::default();
    fields(&mut found, rules, body);
    let messages = list(&body["messages"]);
    found.unless(!messages.is_empty(), || "messages: none".to_owned());
    Messages {
        rules,
        found: &mut found,
        seen: BTreeSet::new(),
        open: BTreeSet::new(),
    }
    .check(messages);
    ends(&mut found, messages);
    if rules.alternates {
        alternation(&mut found, messages);
    }
    found.into_vec()
}

/// Checks the fields beside the messages.
fn fields(found: &mut Problems, rules: &Rules, body: &Value) {
    let has = |field: &str| body.get(field).is_some();
    for (field, _) in body.as_object().into_iter().flatten() {
        let mut known = rules.fields.into_iter().flatten();
        found.unless(
            rules.fields.is_none() || known.any(|it| it == field),
            || format!("{field}: unknown"),
        );
    }
    found.unless(is_text(&body["model"]), || "model: none".to_owned());
    let tools = list(&body["tools"]).iter();
    let tools = tools.map(|tool| (&tool["function"]["name"], &tool["function"]["parameters"]));
    rules::tools(found, rules.schemas, tools, has("tools"));
    for field in ["tool_choice", "parallel_tool_calls"] {
        found.unless(!has(field) || has("tools"), || {
            format!("{field}: without tools")
        });
    }
    let choice = &body["tool_choice"];
    let names = list(&body["tools"]).iter();
    let names = names.map(|tool| &tool["function"]["name"]);
    rules::tool_choice(found, choice, &choice["function"]["name"], names);
    let wants_json = body["response_format"]["type"] == "json_object";
    found.unless(!wants_json || rules::names_json(&body["messages"]), || {
        "response_format: no message has the word JSON".to_owned()
    });
    found.unless(!(has("max_tokens") && has("max_completion_tokens")), || {
        "max_tokens: beside max_completion_tokens".to_owned()
    });
    let model = body["model"].as_str().unwrap_or_default();
    let reasons = REASONING_MODELS.iter().any(|part| model.contains(part));
    found.unless(!(reasons && has("max_tokens")), || {
        format!("max_tokens: {model} takes max_completion_tokens alone")
    });
    if let Some(format) = body.pointer("/response_format/json_schema") {
        found.unless(is_word(&format["name"], rules::MAX_NAME_BYTES), || {
            format!("response_format: the name {}", format["name"])
        });
        found.unless(format["schema"].is_object(), || {
            "response_format: no schema".to_owned()
        });
    }
}

/// The check of the messages, in their order.
struct Messages<'a> {
    rules: &'a Rules,
    found: &'a mut Problems,
    /// The ids of the calls in the checked messages.
    seen: BTreeSet<&'a str>,
    /// The ids of the calls that still need their result.
    open: BTreeSet<&'a str>,
}

impl<'a> Messages<'a> {
    fn check(mut self, messages: &'a [Value]) {
        for (at, message) in messages.iter().enumerate() {
            let address = format!("messages[{at}]");
            let role = message["role"].as_str().unwrap_or_default();
            if role != "tool" {
                self.results_are_complete(&address);
            }
            match role {
                "system" => self.system(at, message),
                "user" => self.user(&address, &message["content"]),
                "assistant" => self.model(&address, message),
                "tool" => self.result(&address, message),
                _ => self
                    .found
                    .unless(false, || format!("{address}: the role {role:?}")),
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

    fn system(&mut self, at: usize, message: &Value) {
        let found = &mut *self.found;
        found.unless(at == 0, || {
            format!("messages[{at}]: a system prompt that is not the first message")
        });
        found.unless(is_text(&message["content"]), || {
            format!("messages[{at}]: an empty system prompt")
        });
    }

    fn user(&mut self, address: &str, content: &Value) {
        let parts = list(content);
        self.found
            .unless(is_text(content) || !parts.is_empty(), || {
                format!("{address}: an empty message")
            });
        for part in parts {
            let kind = part["type"].as_str().unwrap_or_default();
            let is_known = matches!(kind, "text" | "image_url") || kind == self.rules.document;
            let fits = match kind {
                "text" => is_text(&part["text"]),
                "image_url" => is_data_url(&part["image_url"]["url"]),
                "document_url" => is_data_url(&part["document_url"]),
                _ => is_text(&part["file"]["filename"]) && is_data_url(&part["file"]["file_data"]),
            };
            self.found
                .unless(is_known && fits, || format!("{address}: a part {part}"));
        }
    }

    /// Checks the names of the fields of a model's message, or of a call.
    fn fields(&mut self, address: &str, object: &Value, known: &[&str]) {
        for (field, _) in object.as_object().into_iter().flatten() {
            let mut known = known.iter().chain(self.rules.further_fields);
            self.found.unless(known.any(|it| it == field), || {
                format!("{address}: the unknown field {field}")
            });
        }
    }

    fn model(&mut self, address: &str, message: &'a Value) {
        self.fields(address, message, &FIELDS);
        let (content, calls) = (&message["content"], list(&message["tool_calls"]));
        self.found
            .unless(content.is_null() || is_text(content), || {
                format!("{address}: the content {content}")
            });
        self.found
            .unless(is_text(content) || !calls.is_empty(), || {
                format!("{address}: neither text nor calls")
            });
        self.found.unless(
            message.get("tool_calls").is_none() || !calls.is_empty(),
            || format!("{address}: an empty list of calls"),
        );
        let thoughts = &message["reasoning_content"];
        let has_thoughts = thoughts.as_str().is_some_and(|text| !text.is_empty());
        let may_lack = !self.rules.needs_thoughts && thoughts.is_null();
        self.found.unless(has_thoughts || may_lack, || {
            format!("{address}: reasoning_content is {thoughts}")
        });
        for call in calls {
            self.call(address, call);
        }
    }

    fn call(&mut self, address: &str, call: &'a Value) {
        self.fields(address, call, &FIELDS_OF_CALLS);
        let id = call["id"].as_str().unwrap_or_default();
        let fits = !id.is_empty() && (self.rules.is_id)(id);
        self.found
            .unless(fits, || format!("{address}: the call's id {id:?}"));
        self.found
            .unless(self.seen.insert(id), || format!("{address}: {id} twice"));
        self.open.insert(id);
        self.found.unless(call["type"] == "function", || {
            format!("{address}: the call's type {}", call["type"])
        });
        let function = &call["function"];
        rules::name(self.found, address, &function["name"]);
        let arguments = &function["arguments"];
        self.found.unless(is_object_text(arguments), || {
            format!("{address}: the arguments {arguments}")
        });
    }

    fn result(&mut self, address: &str, message: &Value) {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        self.found.unless(self.open.remove(id), || {
            format!("{address}: a result of {id:?}, which no call before it awaits")
        });
        self.found.unless(is_text(&message["content"]), || {
            format!("{address}: the result {}", message["content"])
        });
    }
}

/// Checks the first message after the system prompt, and the last message.
fn ends(found: &mut Problems, messages: &[Value]) {
    let first = messages.iter().find(|message| message["role"] != "system");
    found.unless(first.is_some_and(|first| first["role"] == "user"), || {
        "messages: the first message is not a user's".to_owned()
    });
    let last = messages.last().and_then(|last| last["role"].as_str());
    found.unless(matches!(last, Some("user" | "tool")), || {
        format!("messages: the last message has the role {last:?}")
    });
}

/// Checks that users and answers take turns, and that no user writes directly after a result.
fn alternation(found: &mut Problems, messages: &[Value]) {
    let is_answer =
        |message: &Value| message["role"] == "assistant" && list(&message["tool_calls"]).is_empty();
    let mut awaits_user = true;
    let (mut before, turns) = (&Value::Null, messages.iter().enumerate());
    for (at, message) in turns {
        let is_user = message["role"] == "user";
        if is_user || is_answer(message) {
            found.unless(is_user == awaits_user, || {
                format!(
                    "messages[{at}]: two messages of {} in a row",
                    message["role"]
                )
            });
            awaits_user = !is_user;
        }
        found.unless(!(is_user && before["role"] == "tool"), || {
            format!("messages[{at}]: a user's message directly after a result")
        });
        before = message;
    }
}
