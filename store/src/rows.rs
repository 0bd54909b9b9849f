//! Rows as they are read, for every back end: numbers are 64-bit here (PostgreSQL has no unsigned ones) and are
//! narrowed when they become the types of [`crate::api`].

use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use everturn_proto::{
    Json,
    event::{Event, WorkPlan, WorkPlanStep},
    turn::{AgentDefinition, ToolCall},
    words::tool_status,
};
use sqlx::{FromRow, types::Json as Column};

use crate::{
    api::{
        Access, AgentExecution, ApiKey, BegunTurn, ContextMessage, Conversation, KeyKind,
        OutsideTool, ParentCall, Removed, Result, ResultRange, ResultSlice, ToolEnd, ToolRecord,
        ToolResult,
    },
    batch::{AssistantRow, Delegation, Delegator, ToolRow, Totals, WaitingMessage},
    error::StoreError,
};

/// Status of a message that waits for its turn.
pub(crate) const QUEUED: &str = "queued";
/// Role of the person's messages.
pub(crate) const USER: &str = "user";
/// Role of the agent's messages.
pub(crate) const ASSISTANT: &str = "assistant";

/// The time as it is stored: milliseconds, the precision of the wire, so that a place in a list or an event
/// reads the same before and after it was stored.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// A stored number as 32 bits.
pub(crate) fn narrow(number: i64) -> Result<u32> {
    u32::try_from(number)
        .map_err(|_| StoreError::Corrupt(format!("{number} where 32 bits were expected")))
}

#[derive(FromRow)]
pub(crate) struct EventRow {
    id: String,
    conversation_id: String,
    message_id: String,
    event_type: String,
    event_data: Column<Json>,
    sequence_number: i64,
    created_at: DateTime<Utc>,
}

impl EventRow {
    pub(crate) fn event(self) -> Result<Event> {
        Ok(Event {
            id: self.id,
            conversation_id: self.conversation_id,
            message_id: self.message_id,
            event_type: self.event_type,
            event_data: Some(self.event_data.0),
            sequence_number: narrow(self.sequence_number)?,
            created_at: self.created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        })
    }
}

#[derive(FromRow)]
pub(crate) struct StatusRow {
    pub(crate) last_sequence: i64,
    pub(crate) running_message_id: Option<String>,
    pub(crate) queued_message_id: Option<String>,
}

#[derive(FromRow)]
pub(crate) struct ConversationRow {
    id: String,
    tenant_id: String,
    owner_id: String,
    agent: String,
    title: String,
    message_count: i64,
    last_sequence: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl ConversationRow {
    pub(crate) fn conversation(self) -> Result<Conversation> {
        Ok(Conversation {
            id: self.id,
            tenant_id: self.tenant_id,
            owner_id: self.owner_id,
            agent: self.agent,
            title: self.title,
            message_count: narrow(self.message_count)?,
            last_sequence: narrow(self.last_sequence)?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

#[derive(FromRow)]
pub(crate) struct QueuedRow {
    pub(crate) id: String,
    pub(crate) has_this_content: bool,
    pub(crate) turn_message_id: Option<String>,
    pub(crate) turn_status: Option<String>,
}

#[derive(FromRow)]
pub(crate) struct ResumeRow {
    pub(crate) running_message_id: Option<String>,
    pub(crate) checkpoint_step: Option<i64>,
    pub(crate) has_begun: bool,
    pub(crate) waiting_id: Option<String>,
}

#[derive(FromRow)]
pub(crate) struct KeyRow {
    id: String,
    kind: String,
    secret_hash: Vec<u8>,
    tenant_id: String,
    owner_id: Option<String>,
    scopes: String,
    name: String,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

impl KeyRow {
    pub(crate) fn key(self) -> Result<ApiKey> {
        let kind = [KeyKind::Key, KeyKind::Session]
            .into_iter()
            .find(|kind| kind.as_str() == self.kind);
        Ok(ApiKey {
            id: self.id,
            kind: kind.ok_or_else(|| {
                StoreError::Corrupt(format!("a key of the unknown kind `{}`", self.kind))
            })?,
            secret_hash: self.secret_hash,
            access: Access {
                tenant_id: self.tenant_id,
                owner_id: self.owner_id,
            },
            scopes: self.scopes,
            name: self.name,
            created_at: self.created_at,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
            last_used_at: self.last_used_at,
        })
    }
}

#[derive(FromRow)]
pub(crate) struct BegunRow {
    pub(crate) id: String,
    pub(crate) message_id: String,
    pub(crate) status: String,
    pub(crate) steps: i64,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) agent_hash: String,
    pub(crate) definition: Column<AgentDefinition>,
}

impl BegunRow {
    /// As it was begun before.
    pub(crate) fn begun(self, last_sequence: u32) -> BegunTurn {
        BegunTurn {
            status: self.status,
            agent: self.definition.0,
            agent_hash: self.agent_hash,
            last_sequence,
            sealed: Vec::new(),
            age: (now() - self.started_at).to_std().unwrap_or_default(),
        }
    }
}

#[derive(FromRow)]
pub(crate) struct AgentExecutionRow {
    id: String,
    message_id: String,
    agent: String,
    status: String,
    depth: i64,
    parent_execution_id: Option<String>,
    root_execution_id: String,
    steps: i64,
    error_code: Option<String>,
    started_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    execution_id: Option<String>,
    call_id: Option<String>,
    tool_name: Option<String>,
    tool_input: Option<Column<Json>>,
    input_tokens: i64,
    output_tokens: i64,
}

impl AgentExecutionRow {
    pub(crate) fn agent_execution(self) -> Result<AgentExecution> {
        let call = self
            .execution_id
            .zip(self.call_id)
            .zip(self.tool_name)
            .zip(self.tool_input);
        let parent_call =
            call.map(
                |(((execution_id, call_id), tool_name), tool_input)| ParentCall {
                    execution_id,
                    call_id,
                    tool_name,
                    tool_input: tool_input.0,
                },
            );
        // Sums past 32 bits stay at the largest number: they are for reading.
        let cap = |sum: i64| u32::try_from(sum).unwrap_or(u32::MAX);
        Ok(AgentExecution {
            id: self.id,
            message_id: self.message_id,
            agent: self.agent,
            status: self.status,
            depth: narrow(self.depth)?,
            parent_execution_id: self.parent_execution_id,
            root_execution_id: self.root_execution_id,
            steps: narrow(self.steps)?,
            error_code: self.error_code,
            input_tokens: cap(self.input_tokens),
            output_tokens: cap(self.output_tokens),
            started_at: self.started_at,
            finished_at: self.finished_at,
            parent_call,
        })
    }
}

/// An execution that calls `delegate`.
#[derive(FromRow)]
pub(crate) struct DelegatorRow {
    depth: i64,
    pub(crate) root_execution_id: String,
    definition: Column<AgentDefinition>,
    root_definition: Column<AgentDefinition>,
    sub_agents: i64,
}

impl DelegatorRow {
    pub(crate) fn delegator(&self) -> Result<Delegator<'_>> {
        Ok(Delegator {
            depth: narrow(self.depth)?,
            sub_agents: narrow(self.sub_agents)?,
            agent: &self.definition,
            root_agent: &self.root_definition,
        })
    }
}

/// The call that started a sub-agent.
#[derive(FromRow)]
pub(crate) struct DelegationRow {
    started_at: Option<DateTime<Utc>>,
    #[sqlx(flatten)]
    tool: ToolSqlRow,
}

impl DelegationRow {
    pub(crate) fn delegation(self) -> Result<Delegation> {
        Ok(Delegation {
            started_at: self.started_at,
            record: self.tool.tool()?.record,
        })
    }
}

#[derive(FromRow)]
pub(crate) struct UserMessageRow {
    pub(crate) status: String,
    pub(crate) content: String,
    /// How the execution stands that took it; none when none did.
    pub(crate) taker_status: Option<String>,
}

impl UserMessageRow {
    /// As a batch sees it.
    pub(crate) fn waiting(&self) -> WaitingMessage {
        WaitingMessage {
            content: self.content.clone(),
            is_waiting: self.status == QUEUED,
        }
    }
}

#[derive(FromRow)]
pub(crate) struct SaveStateRow {
    pub(crate) status: String,
    pub(crate) steps: i64,
    pub(crate) message_id: String,
    /// Of the batch's first event; none when the batch is not stored.
    pub(crate) stored_sequence: Option<i64>,
}

#[derive(FromRow)]
pub(crate) struct OutsideRow {
    message_id: String,
    agent_execution_id: String,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    #[sqlx(flatten)]
    tool: ToolSqlRow,
}

impl OutsideRow {
    pub(crate) fn outside(self) -> Result<OutsideTool> {
        Ok(OutsideTool {
            message_id: self.message_id,
            agent_execution_id: self.agent_execution_id,
            record: self.tool.tool()?.record,
            requested_at: self.created_at,
            expires_at: self.expires_at,
        })
    }
}

/// A tool execution that waited for someone outside.
#[derive(FromRow)]
pub(crate) struct AnsweredRow {
    pub(crate) execution_id: String,
    pub(crate) is_answered: bool,
    pub(crate) has_result: bool,
    pub(crate) waits_until: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
pub(crate) struct TotalsRow {
    calls: i64,
    input_tokens: i64,
    output_tokens: i64,
}

impl TotalsRow {
    /// Sums past 32 bits stay at the largest number: they are for reading, and must not stop a turn from ending.
    pub(crate) fn totals(&self) -> Totals {
        let cap = |sum: i64| u32::try_from(sum).unwrap_or(u32::MAX);
        Totals {
            calls: cap(self.calls),
            input_tokens: cap(self.input_tokens),
            output_tokens: cap(self.output_tokens),
        }
    }
}

#[derive(FromRow)]
pub(crate) struct ExpiredRow {
    conversations: i64,
    events: i64,
}

impl From<ExpiredRow> for Removed {
    fn from(row: ExpiredRow) -> Self {
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        Self {
            conversations: count(row.conversations),
            events: count(row.events),
        }
    }
}

/// A part of a tool's result, as bytes.
#[derive(FromRow)]
pub(crate) struct ResultSliceRow {
    bytes: Vec<u8>,
    total_bytes: i64,
}

impl ResultSliceRow {
    pub(crate) fn slice(self, range: ResultRange) -> Result<ResultSlice> {
        Ok(range.slice(&self.bytes, narrow(self.total_bytes)?))
    }
}

#[derive(FromRow)]
pub(crate) struct ContextRow {
    role: String,
    content: String,
    tool_calls: Column<Vec<ToolCall>>,
    tool_results: Column<Vec<ToolResult>>,
}

impl From<ContextRow> for ContextMessage {
    fn from(row: ContextRow) -> Self {
        let (tool_calls, tool_results) = (row.tool_calls.0, row.tool_results.0);
        Self {
            role: row.role,
            content: row.content,
            tool_calls,
            tool_results,
        }
    }
}

/// The newest `limit` of `newest_first`, oldest first. What is cut is cut before a user's message, so that no
/// tool call loses what came before it in its turn; a turn longer than the limit leaves no such place and keeps
/// its newest rows.
pub(crate) fn context_window(
    mut newest_first: Vec<ContextRow>,
    limit: usize,
) -> Vec<ContextMessage> {
    if newest_first.len() > limit {
        newest_first.truncate(limit);
        if let Some(first_user) = newest_first.iter().rposition(|row| row.role == USER) {
            newest_first.truncate(first_user + 1);
        }
    }
    newest_first
        .into_iter()
        .rev()
        .map(ContextMessage::from)
        .collect()
}

#[derive(FromRow)]
pub(crate) struct AssistantSqlRow {
    id: String,
    step: i64,
    content: String,
    tool_calls: Column<Vec<ToolCall>>,
    tool_results: Column<Vec<ToolResult>>,
    sequence_number: i64,
}

impl AssistantSqlRow {
    pub(crate) fn assistant(self) -> Result<AssistantRow> {
        Ok(AssistantRow {
            id: self.id,
            step: narrow(self.step)?,
            content: self.content,
            tool_calls: self.tool_calls.0,
            tool_results: self.tool_results.0,
            sequence_number: narrow(self.sequence_number)?,
        })
    }
}

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

#[derive(FromRow)]
pub(crate) struct ToolSqlRow {
    execution_id: String,
    step: i64,
    call_index: i64,
    call_id: String,
    tool_name: String,
    effect: String,
    timeout_ms: i64,
    status: String,
    attempt: i64,
    is_error: bool,
    duration_ms: i64,
    observed_sequence: Option<i64>,
    kind: String,
    approval: String,
    input_hash: String,
    signatures: Column<Vec<String>>,
    tool_input: Column<Json>,
    events: Column<Vec<(String, Json)>>,
    result: Option<Column<Json>>,
    #[sqlx(default)]
    full_result: Option<Column<Json>>,
}

impl ToolSqlRow {
    pub(crate) fn tool(self) -> Result<ToolRow> {
        let end = if tool_status::is_final(&self.status) {
            Some(ToolEnd {
                status: self.status.clone(),
                result: self.result.map(|result| result.0).unwrap_or_default(),
                full_result: self.full_result.map(|result| result.0),
                is_error: self.is_error,
                duration_ms: narrow(self.duration_ms)?,
                events: self.events.0,
            })
        } else {
            None
        };
        let call = ToolCall {
            execution_id: self.execution_id,
            call_id: self.call_id,
            tool_name: self.tool_name,
            tool_input: Some(self.tool_input.0),
            timeout_ms: narrow(self.timeout_ms)?,
            signatures: self.signatures.0,
            effect: self.effect,
            kind: self.kind,
            approval_timeout_s: 0,
            input_hash: self.input_hash,
            // Who runs it is for the plan, which is read from the checkpoint.
            remote: None,
        };
        Ok(ToolRow {
            step: narrow(self.step)?,
            call_index: narrow(self.call_index)?,
            record: ToolRecord {
                call,
                status: self.status,
                attempt: narrow(self.attempt)?,
                end,
                approval: self.approval,
            },
            observed_sequence: self.observed_sequence.map(narrow).transpose()?,
            expires_at: None,
        })
    }
}
