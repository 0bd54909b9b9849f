//! An input that the user wrote in place of the model's, and the body of an answer with the input.

use std::collections::BTreeMap;

use serde_json::{Map, Value, value::RawValue};

/// A JSON object, as the user wrote the object. A tree would round long numbers.
#[derive(Debug, Clone)]
pub(super) struct Edited(Box<RawValue>);

impl Edited {
    /// Reads a JSON object.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Map<String, Value>>(text)?;
        serde_json::from_str(text).map(Self)
    }
}

impl PartialEq for Edited {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// Returns the body of an answer, with the input as the user wrote the input.
pub(super) fn body_of(fields: &Value, input: Option<Edited>) -> BTreeMap<String, Box<RawValue>> {
    let fields = fields.as_object().into_iter().flatten();
    let raw = |value| serde_json::value::to_raw_value(value).unwrap_or_default();
    let mut body: BTreeMap<_, _> = fields
        .map(|(name, value)| (name.clone(), raw(value)))
        .collect();
    body.extend(input.map(|Edited(input)| ("tool_input".to_owned(), input)));
    body
}
