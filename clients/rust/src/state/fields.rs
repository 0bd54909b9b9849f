//! The fields of an event, read without trust: a missing field or a field of a wrong type is never an error.

use serde_json::{Map, Value};

/// The fields of an event or of another frame.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Returns a value of any type.
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    /// Returns a value of any type; `null` counts as missing.
    pub(super) fn value(self, name: &str) -> Option<Value> {
        self.get(name).filter(|value| !value.is_null()).cloned()
    }

    /// Returns a text; empty for a missing text.
    pub(super) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns an object as a value.
    pub(super) fn object(self, name: &str) -> Option<Value> {
        self.get(name).filter(|value| value.is_object()).cloned()
    }

    /// Returns a text that is not empty.
    pub(super) fn id(self, name: &str) -> Option<&'a str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns a text that is not empty, as an owned string.
    pub(super) fn owned_id(self, name: &str) -> Option<String> {
        self.id(name).map(str::to_owned)
    }

    /// Returns a whole number that is not negative.
    pub(super) fn count(self, name: &str) -> Option<u64> {
        self.get(name).and_then(whole)
    }

    /// Returns a Boolean.
    pub(super) fn flag(self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }
}

/// The largest whole number that every client language represents exactly.
const MAX_WHOLE: u64 = (1 << 53) - 1;

/// Returns a whole number, also if written with a decimal point, as in `3.0`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)] // the bounds are checked
fn whole(value: &Value) -> Option<u64> {
    let is_whole =
        |number: &f64| number.fract() == 0.0 && *number >= 0.0 && *number <= MAX_WHOLE as f64;
    let written = value.as_f64().filter(is_whole).map(|number| number as u64);
    value
        .as_u64()
        .or(written)
        .filter(|number| *number <= MAX_WHOLE)
}
