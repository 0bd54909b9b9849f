//! The rows of the store that a batch is built from, and which of them a batch needs.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use everturn_proto::{
    event::{Attachment, Usage, WorkPlan},
    turn::{LlmCompleteState, ToolCall},
};
use sqlx::FromRow;

use super::changed_plan;
use crate::{
    api::{Spent, StepKey, ToolRecord},
    columns::{MaybeNumber, Sum},
    rows::tools::ToolColumns,
};

/// Says what a batch reads from the store. Every batch also reads `last_sequence` and `steps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// True when it reads the `llm_complete` of the request's step, and the assistant row of that step.
    pub checkpoint: bool,
    /// True when it reads the `llm_partial` of the request's step.
    pub partial: bool,
    /// True when it reads the sums over all `llm_complete` checkpoints of the agent execution.
    pub totals: bool,
    /// The tool records that it reads, with the assistant rows of their steps and the work plans that their events
    /// name.
    pub tools: ToolsNeeded,
    /// The id of the message whose row it reads.
    pub message: Option<String>,
    /// The sub-agent's agent execution, when it reads the call that started that sub-agent.
    pub delegate_call: Option<String>,
}

/// Which tool records a batch reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolsNeeded {
    /// It reads none.
    #[default]
    None,
    /// It reads the record of this tool execution. When there is no such record, it reads the assistant row of the
    /// request's step instead.
    One(String),
    /// It reads those of the agent execution that have no observe yet, in the order of their steps and calls, and which
    /// calls of the request's step have a record.
    Open,
}

/// The stored rows that a batch is built from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Number of steps that the agent execution has saved so far.
    pub steps: u32,
    /// The `llm_complete` checkpoint of the request's step.
    pub checkpoint: Option<LlmCompleteState>,
    /// The `llm_partial` checkpoint of the request's step.
    pub partial: Option<LlmCompleteState>,
    /// The sums over the agent execution's LLM calls.
    pub totals: Totals,
    /// The assistant rows that exist, of the request's step and of the tools' steps.
    pub assistants: Vec<AssistantRow>,
    /// The tool records that [`ToolsNeeded`] asks for.
    pub tools: Vec<ToolRow>,
    /// The tool executions of the request's step that have a record, open or not. It is read for an end only.
    pub recorded: BTreeSet<String>,
    /// The work plans that exist, of those that the tools' events name.
    pub plans: Vec<WorkPlan>,
    /// The user message that the batch takes into the timeline.
    pub message: Option<StoredMessage>,
    /// The call that started the agent execution, when the batch is the end of a sub-agent.
    pub delegate_call: Option<DelegateCall>,
    /// The time of the transaction.
    pub now: DateTime<Utc>,
}

impl Snapshot {
    /// Returns the record of a tool execution, when it was read.
    pub(super) fn tool(&self, execution_id: &str) -> Option<&ToolRow> {
        self.tools.iter().find(|tool| tool.is(execution_id))
    }

    /// Returns the assistant's row of a step, when it was read.
    pub(super) fn assistant(&self, step: u32) -> Option<&AssistantRow> {
        self.assistants.iter().find(|row| row.step == step)
    }
}

/// Sums over an agent execution's LLM calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct Totals {
    /// Number of calls.
    #[sqlx(try_from = "Sum")]
    pub calls: u32,
    /// Tokens sent.
    #[sqlx(try_from = "Sum")]
    pub input_tokens: u32,
    /// Tokens received.
    #[sqlx(try_from = "Sum")]
    pub output_tokens: u32,
    /// What the agent execution and its sub-agents took together.
    #[sqlx(flatten)]
    pub tree: Spent,
    /// True when a part of a budget is still reserved for a call of the agent execution.
    pub has_reserved: bool,
}

/// An assistant's row in `messages`.
#[derive(Debug, Clone, Default, PartialEq, FromRow)]
pub struct AssistantRow {
    /// The id of the message.
    pub id: String,
    /// The step whose LLM call wrote it.
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

/// A row of `tool_execution_records`, with its place in the turn.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ToolRow {
    /// The step that asked for the tool.
    #[sqlx(try_from = "i64")]
    pub step: u32,
    /// Its place among the calls of the step.
    #[sqlx(try_from = "i64")]
    pub call_index: u32,
    /// The record itself.
    #[sqlx(flatten, try_from = "ToolColumns")]
    pub record: ToolRecord,
    /// Sequence number of its observe, once there is one.
    #[sqlx(try_from = "MaybeNumber")]
    pub observed_sequence: Option<u32>,
    /// When the wait for a person's approval or for the client's result ends. It is written, and not read.
    #[sqlx(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl Totals {
    /// The sums with one call more.
    pub(crate) fn with(self, reply: &LlmCompleteState) -> Self {
        Self {
            calls: self.calls.saturating_add(reply.calls()),
            input_tokens: self.input_tokens.saturating_add(reply.input_tokens),
            output_tokens: self.output_tokens.saturating_add(reply.output_tokens),
            tree: self.tree.with(&Spent {
                usage: Usage::of(reply),
                nano_usd: reply.cost_nano_usd,
            }),
            has_reserved: self.has_reserved,
        }
    }
}

impl AssistantRow {
    /// Makes the record of one of its calls anew, as that of a call that has not started; `None` when it has no such
    /// call.
    pub(crate) fn record_of(&self, is_wanted: impl Fn(&ToolCall) -> bool) -> Option<ToolRow> {
        let index = self.tool_calls.iter().position(is_wanted)?;
        let call = self.tool_calls[index].clone();
        Some(ToolRow::pending(self.step, index, call))
    }
}

impl ToolRow {
    /// Makes the row of a call that was asked for and has not started.
    pub(crate) fn pending(step: u32, call_index: usize, call: ToolCall) -> Self {
        Self {
            step,
            call_index: u32::try_from(call_index).unwrap_or(u32::MAX),
            record: ToolRecord::pending(call),
            observed_sequence: None,
            expires_at: None,
        }
    }

    /// True for the row of this tool execution.
    pub(crate) fn is(&self, execution_id: &str) -> bool {
        self.record.call.execution_id == execution_id
    }

    /// Returns the ids of the stored work plans that its own events change.
    pub(crate) fn changed_plans(&self) -> impl Iterator<Item = String> {
        let ends = self.record.end.iter();
        ends.flat_map(|end| &end.events)
            .filter_map(|(event_type, data)| changed_plan(event_type, data))
    }
}

/// The `delegate` call that started a sub-agent.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct DelegateCall {
    /// When the sub-agent began.
    pub started_at: Option<DateTime<Utc>>,
    /// The row of the call.
    #[sqlx(flatten)]
    pub tool: ToolRow,
    /// The step that asked for the call. It is set when the record is missing and `tool` was made anew from that step's
    /// row.
    #[sqlx(skip)]
    pub missing_of: Option<StepKey>,
}

/// A user's message as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct StoredMessage {
    /// The text of the message.
    pub content: String,
    /// The blobs that it names.
    #[sqlx(json)]
    pub attachments: Vec<Attachment>,
    /// False when a turn has taken it.
    pub is_waiting: bool,
}
