//! The shapes of errors: JSON within a text, faults of fields, times to wait.

use std::time::Duration;

use serde_json::{Map, Value};

use super::wait;

/// The most values that are read of a body, of a list and of an object.
pub(super) const MAX_VALUES: usize = 16;

/// True for a value without content: `null`, `false`, 0, an empty text, and an object or a list of blank values.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(values) => values.iter().all(is_blank),
        Value::Object(fields) => fields.values().all(is_blank),
    }
}

/// Returns the JSON values of a body, up to the first text that is no JSON.
pub(super) fn values(body: &str) -> Vec<Value> {
    let values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
    let values = values.map_while(Result::ok).take(MAX_VALUES);
    values.filter(|value| !value.is_number()).collect()
}

/// Returns the JSON within a text, and whether the JSON is the whole text.
pub(super) fn within(text: &str) -> Option<(Value, bool)> {
    let starts = text.match_indices(['{', '[']).map(|(at, _)| at).take(4);
    starts.into_iter().find_map(|at| {
        let value = values(&text[at..]).into_iter().next()?;
        let is_whole = at == 0 && serde_json::from_str::<Value>(text).is_ok();
        Some((value, is_whole))
    })
}

/// Returns the fault in a field of the request, in the form of FastAPI: a list of keys, and a message.
pub(super) fn fault_of_field(fields: &Map<String, Value>) -> Option<String> {
    let path = fields.get("loc")?.as_array()?.iter().take(MAX_VALUES);
    let path = path.map(|step| {
        step.as_str()
            .map_or_else(|| step.to_string(), str::to_owned)
    });
    let path: Vec<String> = path.collect();
    let fault = fields.get("msg")?.as_str()?;
    Some(format!("{}: {fault}", path.join(".")))
}

/// Returns the time under a key for waits.
pub(super) fn told(value: &Value, unit_ms: u16) -> Option<Duration> {
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    match number {
        Some(number) => Duration::try_from_secs_f64(number * f64::from(unit_ms) / 1000.0).ok(),
        None => wait::time(value.as_str()?),
    }
}
