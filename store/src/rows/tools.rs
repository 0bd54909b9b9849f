//! Rows of tool executions, and of work plans from tools.

use chrono::{DateTime, Utc};
use everturn_proto::{
    Json,
    event::{WorkPlan, WorkPlanStep},
    turn::{AskedQuestion, CallRule, SavedApproval, ToolCall},
    words::{ApprovalState, EventType, ToolKind, ToolStatus},
};
use sqlx::{FromRow, types::Json as Column};

use crate::api::{
    InboxCall, OutsideTool, ResultRange, ResultSlice, ToolCaller, ToolEnd, ToolRecord,
};

/// The state of a call's approval, and the id of the stored answer if a gateway has noted the answer.
#[derive(FromRow)]
pub(crate) struct SavedRow {
    approval: String,
    answer_id: Option<String>,
}

impl From<SavedRow> for SavedApproval {
    fn from(row: SavedRow) -> Self {
        Self {
            decision: row.approval,
            answer_id: row.answer_id,
        }
    }
}

/// The columns of `tool_execution_records` for a [`ToolRecord`].
#[derive(FromRow)]
pub(crate) struct ToolColumns {
    execution_id: String,
    call_id: String,
    tool_name: String,
    effect: String,
    #[sqlx(try_from = "i64")]
    timeout_ms: u32,
    #[sqlx(try_from = "String")]
    status: ToolStatus,
    #[sqlx(try_from = "i64")]
    attempt: u32,
    is_error: bool,
    #[sqlx(try_from = "i64")]
    duration_ms: u32,
    kind: String,
    #[sqlx(try_from = "String")]
    approval: ApprovalState,
    input_hash: String,
    definition_hash: String,
    title_template: String,
    #[sqlx(json)]
    approval_rule: CallRule,
    #[sqlx(json)]
    signatures: Vec<String>,
    #[sqlx(json)]
    tool_input: Json,
    #[sqlx(default)]
    question: Option<Column<AskedQuestion>>,
    #[sqlx(json)]
    events: Vec<(EventType, Json)>,
    result: Option<Column<Json>>,
    #[sqlx(default)]
    full_result: Option<Column<Json>>,
}

/// A tool execution after a claim has started it.
#[derive(FromRow)]
pub(crate) struct StartedRow {
    #[sqlx(flatten)]
    pub(crate) columns: ToolColumns,
    #[sqlx(flatten)]
    pub(crate) caller: ToolCaller,
}

impl From<ToolColumns> for ToolRecord {
    fn from(columns: ToolColumns) -> Self {
        let end = columns.status.is_final().then(|| ToolEnd {
            status: columns.status.clone(),
            result: columns.result.map(|result| result.0).unwrap_or_default(),
            full_result: columns.full_result.map(|result| result.0),
            is_error: columns.is_error,
            duration_ms: columns.duration_ms,
            events: columns.events,
        });
        Self {
            call: ToolCall {
                execution_id: columns.execution_id,
                call_id: columns.call_id,
                tool_name: columns.tool_name,
                tool_input: Some(columns.tool_input),
                timeout_ms: columns.timeout_ms,
                signatures: columns.signatures,
                effect: columns.effect,
                kind: columns.kind,
                approval_timeout_s: None,
                input_hash: columns.input_hash,
                definition_hash: columns.definition_hash,
                rule: Some(columns.approval_rule).filter(|rule| *rule != CallRule::default()),
                // Only the plan says which process runs the call, and the checkpoint has the plan.
                inline: false,
                remote: None,
                // Only the context needs `signed_by`, and the messages have the context.
                signed_by: String::new(),
                hook: None,
                title_template: columns.title_template,
            },
            status: columns.status,
            attempt: columns.attempt,
            end,
            approval: columns.approval,
            question: columns.question.map(|question| question.0),
        }
    }
}

/// A tool execution that may wait for a person or a client.
#[derive(FromRow)]
pub(crate) struct AskedRow {
    pub(crate) execution_id: String,
    #[sqlx(try_from = "String")]
    kind: ToolKind,
    #[sqlx(try_from = "String")]
    status: ToolStatus,
    #[sqlx(try_from = "String")]
    approval: ApprovalState,
    input_hash: String,
    expires_at: Option<DateTime<Utc>>,
    /// The time of the read, by the clock that also gave `expires_at`.
    read_at: DateTime<Utc>,
}

impl AskedRow {
    /// Returns true after a person has answered the approval.
    pub(crate) fn is_answered(&self) -> bool {
        self.approval.is_answered()
    }

    /// Returns true if the client has sent the result, or can no longer send a result.
    pub(crate) fn has_result(&self) -> bool {
        self.kind == ToolKind::Client && self.status.is_final()
    }

    /// Returns the hash that the awaited answer of a person must name; empty without a wait for a person.
    pub(crate) fn awaited_hash(&self) -> &str {
        match self.approval {
            ApprovalState::Pending => &self.input_hash,
            _ => "",
        }
    }

    /// Returns the rest of the wait for a person or client, in milliseconds; `None` without a wait.
    pub(crate) fn left_ms(&self) -> Option<u32> {
        let until = self
            .expires_at
            .filter(|_| self.status == ToolStatus::Pending)?;
        let left_ms = (until - self.read_at).num_milliseconds().max(0);
        Some(u32::try_from(left_ms).unwrap_or(u32::MAX))
    }
}

/// A tool call for readers outside.
#[derive(FromRow)]
pub(crate) struct OutsideToolRow {
    message_id: String,
    agent_execution_id: String,
    #[sqlx(flatten)]
    columns: ToolColumns,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    is_expired: bool,
}

impl From<OutsideToolRow> for OutsideTool {
    fn from(row: OutsideToolRow) -> Self {
        Self {
            message_id: row.message_id,
            agent_execution_id: row.agent_execution_id,
            record: row.columns.into(),
            requested_at: row.created_at,
            expires_at: row.expires_at,
            is_expired: row.is_expired,
        }
    }
}

/// A call in the inbox of approvals.
#[derive(FromRow)]
pub(crate) struct InboxCallRow {
    conversation_id: String,
    agent: String,
    #[sqlx(flatten)]
    tool: OutsideToolRow,
}

impl From<InboxCallRow> for InboxCall {
    fn from(row: InboxCallRow) -> Self {
        Self {
            conversation_id: row.conversation_id,
            agent: row.agent,
            tool: row.tool.into(),
        }
    }
}

/// A part of a tool's result, as bytes.
#[derive(FromRow)]
pub(crate) struct ResultSliceRow {
    bytes: Vec<u8>,
    #[sqlx(try_from = "i64")]
    total_bytes: u32,
}

impl ResultSliceRow {
    pub(crate) fn slice(&self, range: ResultRange) -> ResultSlice {
        range.slice(&self.bytes, self.total_bytes)
    }
}

/// A work plan.
#[derive(FromRow)]
pub(crate) struct PlanRow {
    id: String,
    title: String,
    steps: Column<Vec<WorkPlanStep>>,
}

impl From<PlanRow> for WorkPlan {
    fn from(row: PlanRow) -> Self {
        Self {
            plan_id: row.id,
            title: row.title,
            steps: row.steps.0,
        }
    }
}
