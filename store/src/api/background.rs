//! Model responses that continue at their provider without a reader.

use serde::{Deserialize, Serialize};

/// A response that a provider makes in the background. A worker with the response's id continues the response, and pays
/// for no second response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundResponse {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model of the response.
    pub model: String,
    /// The provider's id of the response.
    pub id: String,
}

/// A stored value of an agent execution, together with the step of its LLM call. A worker of the release before that
/// calls another step leaves it where it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OfStep<T> {
    pub(crate) step: u32,
    #[serde(flatten)]
    pub(crate) value: T,
}

impl<T> OfStep<T> {
    /// Returns the value if the value belongs to the step.
    pub(crate) fn of(self, step: u32) -> Option<T> {
        (self.step == step).then_some(self.value)
    }
}
