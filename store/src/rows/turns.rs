//! Rows of agent executions, for use in a transaction.

use chrono::{DateTime, Utc};
use everturn_proto::{LogId, turn::AgentDefinition, words::AgentExecutionStatus};
use sqlx::FromRow;

use crate::{
    api::{BegunTurn, PinnedAgent, StepKey},
    batch::{Delegator, StoredMessage},
};

/// An agent execution that began earlier.
#[derive(FromRow)]
pub(crate) struct BegunRow {
    pub(crate) id: String,
    pub(crate) message_id: String,
    #[sqlx(try_from = "String")]
    pub(crate) status: AgentExecutionStatus,
    #[sqlx(try_from = "i64")]
    pub(crate) steps: u32,
    started_at: DateTime<Utc>,
    /// The time of the read, by the clock that also gave `started_at`.
    read_at: DateTime<Utc>,
    agent_hash: String,
    #[sqlx(json)]
    definition: AgentDefinition,
}

impl BegunRow {
    /// Returns the step after the saved steps.
    pub(crate) fn next_step(&self, conversation_id: &str) -> StepKey {
        StepKey {
            conversation_id: conversation_id.to_owned(),
            message_id: self.message_id.clone(),
            agent_execution_id: self.id.clone(),
            step: self.steps,
            epoch: None,
        }
    }

    /// Returns the turn for a run with the epoch `epoch`.
    pub(crate) fn begun(self, log_id: LogId, last_sequence: u32, epoch: u32) -> BegunTurn {
        BegunTurn {
            epoch,
            log_id,
            status: self.status,
            agent: Some(PinnedAgent {
                definition: self.definition,
                hash: self.agent_hash,
            }),
            last_sequence,
            sealed: Vec::new(),
            age: (self.read_at - self.started_at)
                .to_std()
                .unwrap_or_default(),
            is_new: false,
            cancel_reason: None,
        }
    }
}

/// The parent of a sub-agent.
#[derive(FromRow)]
pub(crate) struct ParentRow {
    /// When the sub-agent began.
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) parent_execution_id: String,
    /// The parent's number of saved steps. A parent waits for its sub-agents, therefore the last saved step asked for
    /// this sub-agent.
    #[sqlx(try_from = "i64")]
    pub(crate) steps: u32,
}

/// The agent execution of a `delegate` call.
#[derive(FromRow)]
pub(crate) struct DelegatorRow {
    #[sqlx(try_from = "i64")]
    depth: u32,
    pub(crate) root_execution_id: String,
    #[sqlx(json)]
    definition: AgentDefinition,
    #[sqlx(json)]
    root_definition: AgentDefinition,
    #[sqlx(try_from = "i64")]
    sub_agents: u32,
}

impl DelegatorRow {
    pub(crate) fn delegator(&self) -> Delegator<'_> {
        Delegator {
            depth: self.depth,
            sub_agents: self.sub_agents,
            agent: &self.definition,
            root_agent: &self.root_definition,
        }
    }
}

/// A user's message, with the status of the agent execution that took the message.
#[derive(FromRow)]
pub(crate) struct UserMessageRow {
    #[sqlx(flatten)]
    pub(crate) message: StoredMessage,
    /// The reason of the message's cancel.
    pub(crate) cancel_reason: Option<String>,
    taker_status: Option<String>,
}

impl UserMessageRow {
    /// Returns the status of the agent execution that took the message; `None` for a waiting message.
    pub(crate) fn taker_status(&self) -> Option<AgentExecutionStatus> {
        self.taker_status.as_deref().map(AgentExecutionStatus::from)
    }
}

/// The status of an agent execution, with the stored batch.
#[derive(FromRow)]
pub(crate) struct SaveStateRow {
    #[sqlx(try_from = "String")]
    pub(crate) status: AgentExecutionStatus,
    #[sqlx(try_from = "i64")]
    pub(crate) steps: u32,
    pub(crate) message_id: String,
    /// Sequence number of the batch's first event; `None` when the batch is not stored.
    pub(crate) stored_sequence: Option<i64>,
}
