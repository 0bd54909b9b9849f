//! The input of a hook. Pure.

use everturn_proto::{ConversationName, Json, words::Hook};
use everturn_store::Access;
use serde_json::{Map, Value};

/// The longest text in a hook's input, in bytes: more than most people ever write, and enough for a search. A tool
/// that needs a longer text asks the gateway, with the ids in the input.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// A turn, as described to its hooks.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    pub(crate) conversation_id: &'a str,
    /// The tenant and the owner of the conversation.
    pub(crate) owner: &'a Access,
    pub(crate) message_id: &'a str,
    pub(crate) agent_execution_id: &'a str,
    pub(crate) agent: &'a str,
    /// The task: the user's message, or the task of a sub-agent.
    pub(crate) message: &'a str,
    /// The agent's answer; `None` before the turn.
    pub(crate) answer: Option<&'a str>,
}

impl Around<'_> {
    /// Returns the input of a hook: the configured input with its placeholders filled. Without a configured input,
    /// returns the values that the tool's schema names, or all values if the schema names none.
    pub(crate) fn input(&self, hook: &Hook, given: Option<&Json>, schema: Option<&Value>) -> Json {
        let values = self.values(hook);
        if let Some(given) = given {
            return Json::of(&filled(given.to_value(), &values));
        }
        let named = schema.and_then(|schema| schema.get("properties")?.as_object());
        Json::of(&match named.filter(|named| !named.is_empty()) {
            Some(named) => values
                .into_iter()
                .filter(|(name, _)| named.contains_key(name))
                .collect(),
            None => values,
        })
    }

    fn values(&self, hook: &Hook) -> Map<String, Value> {
        let mut values = Map::new();
        let mut add = |name: &str, value: Value| {
            values.insert(name.to_owned(), value);
        };
        add("hook", hook.as_str().into());
        let owner = self.owner;
        add("tenant_id", owner.tenant_id.as_str().into());
        add(
            "user_id",
            owner.owner_id.as_deref().unwrap_or_default().into(),
        );
        let name = ConversationName::of_id(self.conversation_id);
        add("conversation_id", name.into());
        add("message_id", self.message_id.into());
        add("agent_execution_id", self.agent_execution_id.into());
        add("agent", self.agent.into());
        add("message", beginning(self.message).into());
        add("message_is_cut", is_cut(self.message).into());
        if let Some(answer) = self.answer {
            add("answer", beginning(answer).into());
            add("answer_is_cut", is_cut(answer).into());
        }
        values
    }
}

fn is_cut(text: &str) -> bool {
    text.len() > MAX_TEXT_BYTES
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

/// Fills the placeholders in all texts of a value.
fn filled(value: Value, values: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => Value::String(filled_text(&text, values)),
        Value::Array(items) => items.into_iter().map(|it| filled(it, values)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(name, it)| (name, filled(it, values)))
                    .collect(),
            )
        }
        other => other,
    }
}

/// Fills the placeholders (`{message}`) in a text. A filled value is not searched again, because it may contain
/// braces.
fn filled_text(text: &str, values: &Map<String, Value>) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let placeholder = after
            .split_once('}')
            .and_then(|(name, after)| Some((values.get(name)?, after)));
        rest = match placeholder {
            Some((Value::String(value), after)) => {
                filled.push_str(value);
                after
            }
            Some((value, after)) => {
                filled.push_str(&value.to_string());
                after
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(message: &str, given: Option<Value>, schema: Option<&Value>) -> Value {
        let owner = Access::owner("acme", "ann");
        let around = Around {
            conversation_id: "acme~c",
            owner: &owner,
            message_id: "m",
            agent_execution_id: "run_1",
            agent: "default",
            message,
            answer: None,
        };
        let given = given.map(|given| Json::of(&given));
        let input = around.input(&Hook::BeforeTurn, given.as_ref(), schema);
        input.to_value()
    }

    #[test]
    fn a_hook_is_told_what_its_schema_names() {
        let all = input("hi", None, Some(&json!({"type": "object"})));
        let known = json!({
            "hook": "before_turn", "tenant_id": "acme", "user_id": "ann", "conversation_id": "c", "message_id": "m",
            "agent_execution_id": "run_1", "agent": "default", "message": "hi", "message_is_cut": false,
        });
        assert_eq!(all, known);
        assert_eq!(input("hi", None, None), known);
        let schema = json!({"properties": {"message": {"type": "string"}, "other": {}}});
        assert_eq!(input("hi", None, Some(&schema)), json!({"message": "hi"}));
    }

    #[test]
    fn placeholders_are_filled_once() {
        let given =
            json!({"query": "of {user_id}: {message}", "limit": 5, "deep": [{"a": "{answer} {"}]});
        let told = input(
            "{tenant_id} }",
            Some(given),
            Some(&json!({"properties": {"x": {}}})),
        );
        assert_eq!(
            told,
            json!({"query": "of ann: {tenant_id} }", "limit": 5, "deep": [{"a": "{answer} {"}]})
        );
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let told = input(&"ü".repeat(MAX_TEXT_BYTES), None, None);
        assert_eq!(told["message"].as_str().unwrap().len(), MAX_TEXT_BYTES);
        assert_eq!(told["message_is_cut"], true);
    }
}
