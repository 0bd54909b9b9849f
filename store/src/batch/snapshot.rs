//! The stored rows from which a batch is built, and the rows that a batch needs.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use everturn_proto::{
    event::{Attachment, Usage, WorkPlan},
    turn::{LlmCompleteState, ToolCall},
    words::{ApprovalState, ToolKind, ToolStatus},
};
use sqlx::FromRow;

use super::changed_plan;
use crate::{
    api::{Spent, StepKey, ToolRecord},
    columns::{MaybeNumber, Sum},
    rows::tools::ToolColumns,
};

/// The rows that a batch reads from the store. Every batch also reads `last_sequence` and `steps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// True when the batch reads the `llm_complete` and the assistant row of the request's step.
    pub checkpoint: bool,
    /// True when the batch reads the `llm_partial` of the request's step.
    pub partial: bool,
    /// True when the batch reads the sums over the `llm_complete` checkpoints of the agent execution.
    pub totals: bool,
    /// The tool records to read, with the assistant rows of the tools' steps and the work plans of the tools' events.
    pub tools: ToolsNeeded,
    /// The id of the message to read.
    pub message: Option<String>,
    /// The sub-agent's agent execution, when the batch reads the call that started the sub-agent.
    pub delegate_call: Option<String>,
}

/// The tool records that a batch reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolsNeeded {
    /// The batch reads no tool record.
    #[default]
    None,
    /// The batch reads the record of the given tool execution. Without a record, the batch reads the assistant row of
    /// the request's step instead.
    One(String),
    /// The batch reads the agent execution's records without an observe, in the order of steps and calls, and the list
    /// of recorded calls of the request's step.
    Open,
}

/// The stored rows from which a batch is built.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Number of the agent execution's saved steps.
    pub steps: u32,
    /// The `llm_complete` checkpoint of the request's step.
    pub checkpoint: Option<LlmCompleteState>,
    /// The `llm_partial` checkpoint of the request's step.
    pub partial: Option<LlmCompleteState>,
    /// The sums over the agent execution's LLM calls.
    pub totals: Totals,
    /// Existing assistant rows of the request's step and of the tools' steps.
    pub assistants: Vec<AssistantRow>,
    /// The tool records selected by [`ToolsNeeded`].
    pub tools: Vec<ToolRow>,
    /// The recorded tool executions of the request's step, open or ended. Read only for an end.
    pub recorded: BTreeSet<String>,
    /// Existing work plans that the tools' events change.
    pub plans: Vec<WorkPlan>,
    /// The user message that the batch takes into the timeline.
    pub message: Option<StoredMessage>,
    /// The call that started the agent execution, when the batch ends a sub-agent.
    pub delegate_call: Option<DelegateCall>,
    /// The time of the transaction.
    pub now: DateTime<Utc>,
    /// The time by the clock that ends waits for the outside, when the batch begins a wait ([`super::asks_outside`]).
    pub clock: DateTime<Utc>,
}

impl Snapshot {
    /// Returns the record of a tool execution, if the snapshot has the record.
    pub(super) fn tool(&self, execution_id: &str) -> Option<&ToolRow> {
        self.tools.iter().find(|tool| tool.is(execution_id))
    }

    /// Returns the assistant's row of a step, if the snapshot has the row.
    pub(super) fn assistant(&self, step: u32) -> Option<&AssistantRow> {
        self.assistants.iter().find(|row| row.step == step)
    }
}

/// Sums over an agent execution's LLM calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct Totals {
    /// The agent's name.
    pub agent: String,
    /// Number of calls.
    #[sqlx(try_from = "Sum")]
    pub calls: u32,
    /// Tokens sent.
    #[sqlx(try_from = "Sum")]
    pub input_tokens: u32,
    /// Tokens received.
    #[sqlx(try_from = "Sum")]
    pub output_tokens: u32,
    /// Usage of the agent execution and its sub-agents together.
    #[sqlx(flatten)]
    pub tree: Spent,
    /// True when a call of the agent execution has no stored reply, or still has a reservation.
    pub has_open_call: bool,
}

/// An assistant's row in `messages`.
#[derive(Debug, Clone, Default, PartialEq, FromRow)]
pub struct AssistantRow {
    /// The id of the message.
    pub id: String,
    /// The step whose LLM call wrote the row.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// The text that the model wrote.
    pub content: String,
    /// The tool calls that the model asked for, in call order.
    #[sqlx(json)]
    pub tool_calls: Vec<ToolCall>,
    /// Sequence number of the event with which the row entered the timeline.
    #[sqlx(try_from = "i64")]
    pub sequence_number: u32,
}

/// A row of `tool_execution_records`, with its position in the turn.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ToolRow {
    /// The step that asked for the tool.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// Position among the calls of the step.
    #[sqlx(try_from = "i64")]
    pub call_index: u32,
    /// The record itself.
    #[sqlx(flatten, try_from = "ToolColumns")]
    pub record: ToolRecord,
    /// Sequence number of the tool's observe, if observed.
    #[sqlx(try_from = "MaybeNumber")]
    pub observed_sequence: Option<u32>,
    /// End of the wait for a person's approval or for the client's result. The field is written and never read.
    #[sqlx(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl Totals {
    /// Returns the sums with one more call.
    pub(crate) fn with(&self, reply: &LlmCompleteState) -> Self {
        Self {
            agent: self.agent.clone(),
            calls: self.calls.saturating_add(reply.calls()),
            input_tokens: self.input_tokens.saturating_add(reply.input_tokens),
            output_tokens: self.output_tokens.saturating_add(reply.output_tokens),
            tree: self.tree.with(&Spent {
                usage: Usage::of(reply),
                nano_usd: reply.cost_nano_usd,
                estimated_calls: reply.is_estimated.into(),
                ..Spent::default()
            }),
            has_open_call: self.has_open_call,
        }
    }
}

impl AssistantRow {
    /// Rebuilds the record of a call of the row, as not started. Returns `None` when the row has no wanted call.
    pub(crate) fn record_of(&self, is_wanted: impl Fn(&ToolCall) -> bool) -> Option<ToolRow> {
        let index = self.tool_calls.iter().position(is_wanted)?;
        let call = self.tool_calls[index].clone();
        Some(ToolRow::pending(self.step, index, call))
    }
}

impl ToolRow {
    /// Makes the row of a requested call that has not started.
    pub(crate) fn pending(step: u32, call_index: usize, call: ToolCall) -> Self {
        Self {
            step,
            call_index: u32::try_from(call_index).unwrap_or(u32::MAX),
            record: ToolRecord::pending(call),
            observed_sequence: None,
            expires_at: None,
        }
    }

    /// Returns true for the row of the tool execution.
    pub(crate) fn is(&self, execution_id: &str) -> bool {
        self.record.call.execution_id == execution_id
    }

    /// Returns true for a call that waits for a person or the client, like the view `waiting_calls`.
    pub(crate) fn waits(&self) -> bool {
        let ToolRecord {
            call,
            status,
            approval,
            ..
        } = &self.record;
        let needs_other = *approval == ApprovalState::Pending || call.kind() == ToolKind::Client;
        *status == ToolStatus::Pending && needs_other
    }

    /// Returns the ids of the stored work plans that the tool's own events change.
    pub(crate) fn changed_plans(&self) -> impl Iterator<Item = String> {
        let ends = self.record.end.iter();
        ends.flat_map(|end| &end.events)
            .filter_map(|(event_type, data)| changed_plan(event_type, data))
    }
}

/// The `delegate` call that started a sub-agent.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct DelegateCall {
    /// The agent execution that made the call.
    #[sqlx(rename = "agent_execution_id")]
    pub asked_by: String,
    /// Start of the sub-agent.
    pub started_at: Option<DateTime<Utc>>,
    /// The row of the call.
    #[sqlx(flatten)]
    pub tool: ToolRow,
    /// The step that asked for the call. Set when the record is missing and `tool` was rebuilt from the step's row.
    #[sqlx(skip)]
    pub missing_of: Option<StepKey>,
}

/// A stored user message.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct StoredMessage {
    /// The text of the message.
    pub content: String,
    /// The blobs attached to the message.
    #[sqlx(json)]
    pub attachments: Vec<Attachment>,
    /// The chosen model of the message's turn, `provider/model`.
    pub model: Option<String>,
    /// False when a turn has taken the message.
    pub is_waiting: bool,
    /// True for a retry. The content is then the id of the message that began the failed turn.
    pub is_retry: bool,
}
