//! The port to the engine: handing messages to turns, and cancelling turns.

mod temporal;

use std::error::Error;

use async_trait::async_trait;
use everturn_proto::words::on_busy;
use everturn_store::Conversation;
use serde::Deserialize;
use utoipa::ToSchema;

pub use temporal::{TemporalTurns, TemporalTurnsOptions};

/// Starts and signals turns. Called after the message is stored, so every call may be repeated (invariant 9).
#[async_trait]
pub trait TurnStarter: Send + Sync {
    /// Hands a stored message to the conversation's turn, starting one when none runs.
    async fn submit(&self, conversation: &Conversation, message_id: &str, on_busy: OnBusy) -> Result<(), TurnError>;

    /// Asks the turn of this message, and no other, to end.
    async fn cancel(&self, conversation_id: &str, message_id: &str) -> Result<CancelOutcome, TurnError>;
}

/// The engine did not take the call; it may later.
#[derive(Debug, thiserror::Error)]
#[error("the workflow engine is not available: {0}")]
pub struct TurnError(#[source] pub Box<dyn Error + Send + Sync>);

/// What became of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The turn was told.
    Requested,
    /// No turn runs in the conversation.
    NotRunning,
}

/// What a message does when a turn is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// It waits for the next turn.
    #[default]
    Queue,
    /// It joins the running turn before its next LLM call.
    Steer,
    /// It ends the running turn and starts the next.
    Interrupt,
}

impl OnBusy {
    /// The word of signal `submit`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => on_busy::QUEUE,
            Self::Steer => on_busy::STEER,
            Self::Interrupt => on_busy::INTERRUPT,
        }
    }
}
