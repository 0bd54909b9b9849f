//! Where a step is in the chain of its agent's models.

use everturn_proto::event::ModelFallback;
use serde::{Deserialize, Serialize};

/// Where a step is in the chain of its agent's models. It is told by the next claim of the step, whichever worker makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainPlace {
    /// The model that is called next: 0 is the agent's own, 1 the first of its fallback models, and so on.
    pub place: u32,
    /// How many calls of this model have failed for the step.
    pub failures: u32,
    /// The models that the step has given up.
    pub given_up: Vec<u32>,
}

/// A call of a model of a chain that has failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedCall {
    /// Where the step is now.
    pub chain: ChainPlace,
    /// How many calls of the step count now, with this one, unless the provider refused it and takes nothing for it.
    pub calls: u32,
    /// Set when the step goes on to another model: the event that says so.
    pub fallback: Option<ModelFallback>,
}

/// Answer to a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotedFailure {
    /// Nothing was changed: another call of the step was claimed, or the agent execution has ended.
    Superseded,
    /// The failure counts.
    Counted,
    /// The step goes on to another model, and the event is stored.
    FellBack {
        /// The conversation's largest sequence number.
        last_sequence: u32,
    },
}
