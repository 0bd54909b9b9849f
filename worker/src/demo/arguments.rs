//! The arguments of a call: values of a message, for the properties of a tool's schema.
//!
//! The rules look at properties twice: first for values behind the name of a property (`order 1007`, `city: Berlin`), then
//! for other values of the message that fit. Must not be here: the choice of the tool.

use serde_json::{Map, Value};

use super::{
    properties::{Property, properties},
    values::Words,
};

/// The rest of a message begins behind the last of these marks.
const MARKS: [&str; 3] = [": ", " about ", " for "];

/// The arguments of a call, and the required properties without a value.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) values: Map<String, Value>,
    pub(super) missing: Vec<String>,
    /// True when a value is the rest of the message, which fits every message.
    pub(super) has_rest: bool,
}

/// Returns the arguments that a message has for a schema.
pub(super) fn of(schema: &Value, message: &str) -> Arguments {
    let properties = properties(schema);
    let mut values = match object(message) {
        Some(whole) => whole,
        None => found(&properties, message),
    };
    let mut missing = lacking(&properties, &values);
    let mut has_rest = false;
    if let [property] = missing[..]
        && property.takes_any_text()
    {
        values.insert(property.name.to_owned(), rest(message).into());
        missing.clear();
        has_rest = true;
    }
    let missing = missing.iter().map(|property| property.name.to_owned());
    Arguments {
        missing: missing.collect(),
        values,
        has_rest,
    }
}

/// Returns the words of a message that are values.
fn found(properties: &[Property<'_>], message: &str) -> Map<String, Value> {
    let (mut words, mut values) = (Words::new(message), Map::new());
    for find in [Words::behind, Words::fitting] {
        for property in properties {
            if !values.contains_key(property.name)
                && let Some(value) = find(&mut words, property)
            {
                values.insert(property.name.to_owned(), value);
            }
        }
    }
    values
}

/// Returns the required properties without a value.
fn lacking<'a, 'p>(
    properties: &'a [Property<'p>],
    values: &Map<String, Value>,
) -> Vec<&'a Property<'p>> {
    let lacks =
        |property: &&Property<'_>| property.is_required && !values.contains_key(property.name);
    properties.iter().filter(lacks).collect()
}

/// Returns the JSON object in a message.
fn object(message: &str) -> Option<Map<String, Value>> {
    let text = &message[message.find('{')?..];
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    values.next()?.ok()
}

/// Returns the message behind its last mark, or the whole message.
fn rest(message: &str) -> &str {
    let behind = |mark: &&str| message.rfind(*mark).map(|at| at + mark.len());
    let start = MARKS.iter().filter_map(behind).max().unwrap_or_default();
    let rest = message[start..].trim().trim_end_matches(['?', '.', '!']);
    if rest.is_empty() { message } else { rest }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: &Value, message: &str) -> Value {
        let found = of(schema, message);
        assert!(found.missing.is_empty(), "{message}: {found:?}");
        found.values.into()
    }

    #[test]
    fn values_come_from_names_types_and_the_rest() {
        let refund = json!({"properties": {
            "order_id": {"type": "string"},
            "amount": {"type": "number"},
            "reason": {"enum": ["damaged", "late"]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "express": {"type": "boolean"},
        }, "required": ["order_id", "amount"]});
        for (message, expected) in [
            (
                "Refund 12.50 for order 1007",
                json!({"order_id": "1007", "amount": 12.5}),
            ),
            (
                "Refund order A-7: $3, it was Late",
                json!({"order_id": "A-7", "amount": 3, "reason": "late"}),
            ),
            (
                "Express refund of 5 for order number 8, note: “Sorry, Ada!”",
                json!({"order_id": "8", "amount": 5, "note": "Sorry, Ada!", "express": true}),
            ),
            (
                r#"refund {"order_id": "1", "amount": 2}"#,
                json!({"order_id": "1", "amount": 2}),
            ),
        ] {
            assert_eq!(filled(&refund, message), expected, "{message}");
        }
        assert_eq!(of(&refund, "Refund it").missing, ["order_id", "amount"]);
    }

    #[test]
    fn one_required_text_is_the_rest_of_the_message() {
        let search = json!({"properties": {"query": {"type": "string"}, "limit": {"type": ["integer", "null"]}},
            "required": ["query"]});
        for (message, expected) in [
            (
                "Search the pages for blue shoes",
                json!({"query": "blue shoes"}),
            ),
            (
                "Search: shoes, limit 5",
                json!({"query": "shoes, limit 5", "limit": 5}),
            ),
            ("Search 'red shoes' 2.5", json!({"query": "red shoes"})),
            ("search shoes", json!({"query": "search shoes"})),
        ] {
            assert_eq!(filled(&search, message), expected, "{message}");
        }
        let id = json!({"properties": {"id": {"type": "string"}}, "required": ["id"]});
        assert_eq!(of(&id, "Find my order").missing, ["id"], "no word is an id");
    }

    #[test]
    fn lists_take_all_values_of_a_type() {
        let schema =
            json!({"properties": {"numbers": {"type": "array", "items": {"type": "number"}}}});
        assert_eq!(
            filled(&schema, "Add 1, 2.5 and 3"),
            json!({"numbers": [1, 2.5, 3]})
        );
        assert_eq!(filled(&json!({}), "anything"), json!({}));
    }
}
