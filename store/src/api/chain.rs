//! A step's position in the chain of its agent's models.

use chrono::{DateTime, Utc};
use everturn_proto::event::ModelFallback;
use serde::{Deserialize, Serialize};

use super::BackgroundResponse;

/// A step's position in the chain of its agent's models. The step's next claim returns the position, on any worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainPosition {
    /// The model of the next call: 0 is the agent's own model, 1 the first fallback model, and so on.
    pub position: u32,
    /// The number of the step's failed calls of the model.
    pub failures: u32,
    /// The models that the step no longer calls.
    pub given_up: Vec<u32>,
    /// The models that have refused a call since the last wait. The step calls the models again after a wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusing: Vec<u32>,
    /// The number of refused calls that have led to another model, without a wait.
    #[serde(default)]
    pub passed_on: u32,
    /// The shortest time that the refusing models ask to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The models with an event of the switch to another model. A step has one event for a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub announced: Vec<u32>,
    /// The refused calls of a step that waits for its providers. The providers do not bill the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusals>,
    /// The response in the background of the model that the step has just left. No call reads the response. The worker of
    /// the failed call cancels it, and may die before. Therefore the worker of the next call cancels it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_response: Option<BackgroundResponse>,
}

/// The refused calls of a step, and the time of the next call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// The number of refused calls.
    pub count: u32,
    /// The time from the first refusal to the next call, in milliseconds. The workers add their own times up, so no
    /// clock plays a part.
    pub waited_ms: u64,
    /// The generation of the last refused call. A newer generation has made the next call.
    pub generation: u32,
    /// The code of the last refusal.
    pub code: String,
    /// The number of the step's next call, refused calls included.
    pub attempt: u32,
    /// The time of the next call, by the clock of the worker.
    pub next_try_at: DateTime<Utc>,
}

/// A model call that waits for its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// The agent execution.
    pub agent_execution_id: String,
    /// The step.
    pub step: u32,
    /// The refused calls, and the time of the next call.
    pub refused: Refusals,
}

/// A failed call of a model in a chain, or a refused call.
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
