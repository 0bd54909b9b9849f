//! The statements that read the input of a batch. In an unusual case, a statement finds no row.

use everturn_proto::{
    LogId, ids,
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, CheckpointType, ToolStatus},
};
use sqlx::{FromRow, PgConnection, types::Json};

use crate::{
    api::{BeginTurn, Result},
    batch::{
        self, AgentExecutionEnd, AssistantRow, BatchRequest, Save, Snapshot, StoredMessage,
        ToolRow, Totals,
    },
    postgres::{
        backend::{runs, statement::Statement as _},
        statements::as_read::{EndedTool, Reply, WaitingMessage},
    },
};

/// The state of the conversation at the read.
#[derive(FromRow)]
pub(super) struct ReadConversation {
    #[sqlx(try_from = "String")]
    pub(super) log_id: LogId,
    #[sqlx(try_from = "i64")]
    pub(super) last_sequence: u32,
}

/// The input of a batch.
pub(super) struct ReadBatch {
    pub(super) conversation: ReadConversation,
    pub(super) snapshot: Snapshot,
}

/// A waiting message, and its conversation.
#[derive(FromRow)]
pub(super) struct ReadMessage {
    #[sqlx(flatten)]
    pub(super) conversation: ReadConversation,
    pub(super) tenant_id: String,
    #[sqlx(try_from = "i64")]
    pub(super) run_epoch: u32,
    #[sqlx(flatten)]
    pub(super) message: StoredMessage,
}

#[derive(FromRow)]
struct ReadStep {
    #[sqlx(flatten)]
    conversation: ReadConversation,
    #[sqlx(try_from = "i64")]
    steps: u32,
}

#[derive(FromRow)]
struct ReplyRow {
    #[sqlx(flatten)]
    step: ReadStep,
    execution_state: Json<LlmCompleteState>,
    #[sqlx(flatten)]
    totals: Totals,
}

#[derive(FromRow)]
struct EndedToolRow {
    #[sqlx(flatten)]
    step: ReadStep,
    #[sqlx(flatten)]
    tool: ToolRow,
    #[sqlx(flatten)]
    assistant: AssistantRow,
}

/// Reads the input of a batch of a common kind; `None` for other kinds and in unusual cases.
pub(super) async fn batch(
    connection: &mut PgConnection,
    request: &BatchRequest,
) -> Result<Option<ReadBatch>> {
    match &request.save {
        Save::Thought | Save::CutReply | Save::Compaction => {
            reply(connection, request, false).await
        }
        Save::End(AgentExecutionEnd::Completed { .. }) if !request.thread().is_sub_agents() => {
            reply(connection, request, true).await
        }
        Save::Observe { execution_id, .. } => ended_tool(connection, request, execution_id).await,
        Save::End(_)
        | Save::UserMessage { .. }
        | Save::ModelFallback(_)
        | Save::Outcome(_)
        | Save::Question(_)
        | Save::Approval(_)
        | Save::SubAgentStart(_) => Ok(None),
    }
}

async fn reply(
    connection: &mut PgConnection,
    request: &BatchRequest,
    is_end: bool,
) -> Result<Option<ReadBatch>> {
    let step = &request.step;
    let select = Reply {
        conversation_id: &step.conversation_id,
        agent_execution_id: &step.agent_execution_id,
        message_id: &step.message_id,
        status_running: AgentExecutionStatus::Running.as_str(),
        run_epoch: runs::newest(step.epoch),
        first_event_id: &first_event_id(request),
        step: i64::from(step.step),
        type_llm_complete: CheckpointType::LlmComplete.as_str(),
        is_end,
    };
    let row: Option<ReplyRow> = select.query_as()?.fetch_optional(connection).await?;
    Ok(row.map(|row| {
        row.step.with(Snapshot {
            checkpoint: Some(row.execution_state.0),
            totals: row.totals,
            ..Snapshot::default()
        })
    }))
}

async fn ended_tool(
    connection: &mut PgConnection,
    request: &BatchRequest,
    execution_id: &str,
) -> Result<Option<ReadBatch>> {
    let step = &request.step;
    let select = EndedTool {
        conversation_id: &step.conversation_id,
        agent_execution_id: &step.agent_execution_id,
        message_id: &step.message_id,
        status_running: AgentExecutionStatus::Running.as_str(),
        run_epoch: runs::newest(step.epoch),
        first_event_id: &first_event_id(request),
        execution_id,
        assistant_message_id: &ids::assistant_message_id(&step.agent_execution_id, step.step),
        open_statuses: &ToolStatus::OPEN.map(String::from),
    };
    let row: Option<EndedToolRow> = select.query_as()?.fetch_optional(connection).await?;
    // The row is refused if its events change work plans, because the statement does not read work plans.
    let row = row.filter(|row| row.tool.changed_plans().next().is_none());
    Ok(row.map(|row| {
        row.step.with(Snapshot {
            tools: vec![row.tool],
            assistants: vec![row.assistant],
            ..Snapshot::default()
        })
    }))
}

/// Reads the message that begins a turn.
pub(super) async fn waiting_message(
    connection: &mut PgConnection,
    begin: &BeginTurn,
) -> Result<Option<ReadMessage>> {
    let select = WaitingMessage {
        conversation_id: &begin.conversation_id,
        message_id: &begin.message_id,
        agent_execution_id: &begin.agent_execution_id,
    };
    Ok(select.query_as()?.fetch_optional(connection).await?)
}

/// Returns the id of the batch's first event.
fn first_event_id(request: &BatchRequest) -> String {
    batch::event_id(&request.step.conversation_id, &batch::key(request), 0)
}

impl ReadStep {
    fn with(self, snapshot: Snapshot) -> ReadBatch {
        ReadBatch {
            snapshot: Snapshot {
                last_sequence: self.conversation.last_sequence,
                steps: self.steps,
                ..snapshot
            },
            conversation: self.conversation,
        }
    }
}
