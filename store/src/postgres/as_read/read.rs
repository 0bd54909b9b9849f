//! The statements that read the input of a batch. In an unusual case, a statement finds no row.

use everturn_proto::{
    LogId, ids,
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, CheckpointType, ToolStatus},
};
use sqlx::{FromRow, PgConnection, Postgres, postgres::PgArguments, query::QueryAs, types::Json};

use crate::{
    api::{BeginTurn, Result},
    batch::{
        self, AgentExecutionEnd, AssistantRow, BatchRequest, Save, Snapshot, StoredMessage,
        ToolRow, Totals,
    },
    postgres::backend::runs,
};

/// Selects the conversation and its running agent execution, if the batch is not stored. [`of_step`] binds the first
/// parameters: `$1` conversation, `$2` agent execution, `$3` message, `$4` status running, `$5` epoch of the run, `$6`
/// first event of the batch.
macro_rules! of_step {
    (columns: $columns:expr, from: $from:expr, condition: $condition:expr) => {
        concat!(
            "SELECT c.log_id, c.last_sequence, e.steps, ",
            $columns,
            " FROM (SELECT id, log_id, last_sequence FROM conversations WHERE id = $1 AND run_epoch <= $5) AS c \
             JOIN agent_executions e ON e.conversation_id = c.id AND e.id = $2 AND e.message_id = $3 AND e.status = $4 ",
            $from,
            " WHERE NOT EXISTS (SELECT 1 FROM agent_execution_events WHERE id = $6)",
            $condition
        )
    };
}

/// `$7` step, `$8` type `llm_complete`, `$9` true for an end. Only an end reads the sums. An end also demands that no
/// tool is open and no reservation is left.
pub(crate) const REPLY: &str = of_step!(
    columns: "k.execution_state, t.*, FALSE AS has_reserved",
    from: concat!(
        "JOIN execution_checkpoints k ON k.agent_execution_id = e.id AND k.step_number = $7 \
         AND k.checkpoint_type = $8 AND k.execution_id = '' CROSS JOIN LATERAL (",
        totals!(
            "$2", "$8", of: "= ANY(ARRAY(SELECT id FROM agent_executions WHERE $9 AND root_execution_id = $2))"
        ),
        ") AS t"
    ),
    condition: " AND NOT ($9 AND EXISTS (SELECT 1 FROM tool_execution_records o \
                WHERE o.agent_execution_id = $2 AND o.observed_sequence IS NULL)) AND NOT ($9 AND e.reserved_tokens > 0)"
);

/// `$7` tool execution, `$8` assistant row, `$9` list of the open statuses.
pub(crate) const ENDED_TOOL: &str = of_step!(
    columns: "t.*, m.id, m.content, m.tool_calls, m.sequence_number",
    from: concat!(
        "JOIN (SELECT ",
        tool_columns!(),
        " FROM tool_execution_records WHERE conversation_id = $1 AND execution_id = $7 AND agent_execution_id = $2 \
         AND observed_sequence IS NULL AND status <> ALL($9)) AS t ON TRUE \
         JOIN messages m ON m.conversation_id = c.id AND m.id = $8 AND m.step = t.step"
    ),
    condition: ""
);

/// `$1` conversation, `$2` message, `$3` agent execution. Selects a waiting message, if no turn is running, the
/// message's turn has not begun, and every granted epoch has been used.
pub(crate) const WAITING_MESSAGE: &str = "SELECT c.log_id, c.last_sequence, c.tenant_id, c.run_epoch, \
     m.content, m.attachments, TRUE AS is_waiting FROM (SELECT id, log_id, tenant_id, last_sequence, run_epoch \
     FROM conversations WHERE id = $1 AND run_epoch = granted_epoch) AS c \
     JOIN messages m ON m.conversation_id = c.id AND m.id = $2 AND m.role = 'user' AND m.sequence_number IS NULL \
     WHERE NOT EXISTS (SELECT 1 FROM agent_executions WHERE id = $3) \
     AND NOT EXISTS (SELECT 1 FROM agent_executions WHERE conversation_id = $1 AND status = 'running' \
      AND parent_execution_id IS NULL)";

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
        Save::End(AgentExecutionEnd::Completed) if !request.thread().is_sub_agents() => {
            reply(connection, request, true).await
        }
        Save::Observe { execution_id, .. } => ended_tool(connection, request, execution_id).await,
        Save::End(_)
        | Save::UserMessage { .. }
        | Save::ModelFallback(_)
        | Save::Approval(_)
        | Save::SubAgentStart(_) => Ok(None),
    }
}

async fn reply(
    connection: &mut PgConnection,
    request: &BatchRequest,
    is_end: bool,
) -> Result<Option<ReadBatch>> {
    let query = of_step::<ReplyRow>(REPLY, request)
        .bind(i64::from(request.step.step))
        .bind(CheckpointType::LlmComplete.as_str())
        .bind(is_end);
    let row = query.fetch_optional(connection).await?;
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
    let query = of_step::<EndedToolRow>(ENDED_TOOL, request)
        .bind(execution_id)
        .bind(ids::assistant_message_id(
            &step.agent_execution_id,
            step.step,
        ))
        .bind(ToolStatus::OPEN.map(String::from));
    let row = query.fetch_optional(connection).await?;
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
    let query = sqlx::query_as(WAITING_MESSAGE)
        .bind(&begin.conversation_id)
        .bind(&begin.message_id)
        .bind(&begin.agent_execution_id);
    Ok(query.fetch_optional(connection).await?)
}

/// Returns a text about a step, with its first parameters.
fn of_step<'q, T>(
    text: &'static str,
    request: &'q BatchRequest,
) -> QueryAs<'q, Postgres, T, PgArguments>
where
    T: for<'r> FromRow<'r, sqlx::postgres::PgRow>,
{
    let step = &request.step;
    sqlx::query_as(text)
        .bind(&step.conversation_id)
        .bind(&step.agent_execution_id)
        .bind(&step.message_id)
        .bind(AgentExecutionStatus::Running.as_str())
        .bind(runs::newest(step.epoch))
        .bind(batch::event_id(
            &step.conversation_id,
            &batch::key(request),
            0,
        ))
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
