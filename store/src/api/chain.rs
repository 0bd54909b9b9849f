//! A step's position in the chain of its agent's models.

use everturn_proto::event::ModelFallback;
use serde::{Deserialize, Serialize};

/// A step's position in the chain of its agent's models. The step's next claim returns the position, on any worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainPosition {
    /// The model of the next call: 0 is the agent's own model, 1 the first fallback model, and so on.
    pub position: u32,
    /// The number of the step's failed calls of the model.
    pub failures: u32,
    /// The models that the step no longer calls.
    pub given_up: Vec<u32>,
}

/// A failed call of a model in a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedCall {
    /// The step's new position.
    pub chain: ChainPosition,
    /// The number of the step's counted calls, the failed call included. A refused call without cost is not counted.
    pub calls: u32,
    /// The event of a switch to another model; `None` without a switch.
    pub fallback: Option<ModelFallback>,
}

/// The result of noting a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotedFailure {
    /// No row has changed, because the step was claimed again or the agent execution has ended.
    Superseded,
    /// The failure counts.
    Counted,
    /// The step switches to another model, and the event is stored.
    FellBack {
        /// The conversation's largest sequence number.
        last_sequence: u32,
    },
}
