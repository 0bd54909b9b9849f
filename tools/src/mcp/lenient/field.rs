//! Reads and repairs single fields.

use rmcp::model::RequestId;
use serde_json::{Map, Value};

/// Reads the id of an answer. Some languages have only numbers with a fraction, and write `3.0`.
pub(super) fn id_of(id: &Value) -> Option<RequestId> {
    let whole = id
        .as_f64()
        .filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    match (id, whole) {
        (Value::String(text), _) => Some(RequestId::String(text.as_str().into())),
        (_, Some(number)) => format!("{number:.0}").parse().ok().map(RequestId::Number),
        _ => None,
    }
}

/// Removes a field that does not have its type.
pub(super) fn drop_unless(
    fields: &mut Map<String, Value>,
    name: &str,
    is_fit: impl Fn(&Value) -> bool,
) {
    if fields.get(name).is_some_and(|value| !is_fit(value)) {
        fields.remove(name);
    }
}
