//! Responses of models that run on at their provider, whoever reads them.

use serde::{Deserialize, Serialize};

/// A response that a provider makes in the background: whoever names it goes on with it, and pays for no other one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundResponse {
    /// The provider that makes it, by its name in the configuration.
    pub provider: String,
    /// The model that it was asked of.
    pub model: String,
    /// The provider's id of it.
    pub id: String,
}

/// What is stored of an agent execution for the call of one step, with that step. A worker of the release before that calls
/// another step leaves it where it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OfStep<T> {
    pub(crate) step: u32,
    #[serde(flatten)]
    pub(crate) value: T,
}

impl<T> OfStep<T> {
    /// What is stored for this step.
    pub(crate) fn of(self, step: u32) -> Option<T> {
        (self.step == step).then_some(self.value)
    }
}
