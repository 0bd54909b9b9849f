//! The problems of one request, and the lists in it.

use serde_json::Value;

/// The problems that a validator has found.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Notes a problem unless a part of the request fits.
    pub(super) fn unless(&mut self, fits: bool, problem: impl FnOnce() -> String) {
        if !fits {
            self.0.push(problem());
        }
    }

    pub(super) fn into_vec(self) -> Vec<String> {
        self.0
    }
}

/// Returns the values of a list; a missing list has none.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
