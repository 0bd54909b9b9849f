//! Tasks: calls whose clients ask for the result later. A task is a message with its turn, so any gateway knows every task.

use axum::response::Response;
use everturn_proto::words::AgentExecutionStatus;
use everturn_store::{
    Conversation, McpCallCursor, OutsideTool, PageLimit, TurnResult, TurnState, mcp_message_id,
};
use rmcp::model::{
    CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskAckResult, TaskPayload,
    TaskStatus,
};
use serde_json::{Value, json};

use super::{
    super::cancel,
    era::Era,
    keys, result,
    rpc::{Request, RpcError},
    stream::Answering,
    task_id::TaskId,
    waiting::{Waiting, found},
};
use crate::{
    http::{
        extract::{Caller, Name},
        problem::{Code, Problem},
        state::GatewayState,
    },
    listed::time,
};

/// How often a client should ask for a task, in milliseconds.
const POLL_MS: u64 = 2000;
/// The calls that a page of the list looks at.
const PAGE: u32 = 100;
/// The calls that wait for a person or a client, and that are looked at for the state of a task.
const WAITING_CALLS: PageLimit = PageLimit::rows(20);

/// Returns true when the client wants a task as the result of a call.
pub(super) fn is_wanted(era: &Era, request: &Request) -> bool {
    match era {
        Era::Handshake(_) => request.params.get("task").is_some_and(Value::is_object),
        Era::Alone => era.knows_tasks(request),
    }
}

/// A task with its state.
struct Known {
    task: TaskId,
    found: TurnResult,
    /// The reason why the turn waits for somebody outside.
    waits: Option<String>,
}

impl Known {
    async fn of(
        state: &GatewayState,
        caller: &Caller,
        conversation: &Conversation,
        task: TaskId,
    ) -> Result<Self, Problem> {
        let found = found(state, caller, conversation, &task).await?;
        let waits = match &found.state {
            TurnState::Running {
                turn_message_id, ..
            } => {
                let outside = &state.ports.outside;
                let waiting = outside
                    .waiting_tools(&caller.access, &conversation.id, WAITING_CALLS)
                    .await?;
                let of_turn = |call: &&OutsideTool| call.message_id == *turn_message_id;
                waiting.iter().find(of_turn).map(in_words)
            }
            TurnState::Waiting | TurnState::Ended { .. } => None,
        };
        Ok(Self { task, found, waits })
    }

    fn status(&self, era: &Era) -> TaskStatus {
        match (&self.found.state, era) {
            // Without a handshake, the state promises requests to the client. A person answers elsewhere.
            (TurnState::Running { .. }, Era::Handshake(_)) if self.waits.is_some() => {
                TaskStatus::InputRequired
            }
            (TurnState::Waiting | TurnState::Running { .. }, _) => TaskStatus::Working,
            (TurnState::Ended { status, .. }, _) => match (status, era) {
                (AgentExecutionStatus::Cancelled, _) => TaskStatus::Cancelled,
                (AgentExecutionStatus::Completed, _) | (_, Era::Alone) => TaskStatus::Completed,
                _ => TaskStatus::Failed,
            },
        }
    }

    fn message(&self) -> Option<String> {
        match &self.found.state {
            TurnState::Waiting => Some("The message waits for its turn.".to_owned()),
            TurnState::Running { .. } => self.waits.clone(),
            TurnState::Ended { error_message, .. } => error_message.clone(),
        }
    }

    /// Returns the task in the words of rmcp, which are the words of the version without a handshake.
    fn task(&self, era: &Era) -> Task {
        let updated_at = match &self.found.state {
            TurnState::Waiting => self.found.created_at,
            TurnState::Running { started_at, .. } => *started_at,
            TurnState::Ended { finished_at, .. } => *finished_at,
        };
        let mut task = Task::new(
            self.task.to_string(),
            self.status(era),
            time(self.found.created_at),
            time(updated_at),
        );
        task = task.with_poll_interval_ms(POLL_MS);
        match self.message() {
            Some(message) => task.with_status_message(message),
            None => task,
        }
    }

    /// Returns the task as an object of the era.
    fn object(&self, era: &Era) -> Value {
        let mut task = serde_json::to_value(self.task(era)).unwrap_or_default();
        if let (Era::Handshake(_), Value::Object(fields)) = (era, &mut task) {
            for (name, older) in [("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval")] {
                let value = fields.remove(name).unwrap_or_default();
                fields.insert(older.to_owned(), value);
            }
        }
        task
    }
}

fn in_words(call: &OutsideTool) -> String {
    let tool = &call.record.call.tool_name;
    if call.needs_approval() {
        format!("A person must approve the call of `{tool}`, on the page or with the API.")
    } else {
        format!("A client must run the tool `{tool}`, with the API.")
    }
}

/// Returns the result of a call that is a task from now on.
pub(super) async fn created(
    state: &GatewayState,
    caller: &Caller,
    era: &Era,
    conversation: &Conversation,
    task: &TaskId,
) -> Result<Value, Problem> {
    let known = Known::of(state, caller, conversation, task.clone()).await?;
    Ok(match era {
        Era::Handshake(_) => json!({"task": known.object(era)}),
        Era::Alone => {
            serde_json::to_value(CreateTaskResult::new(known.task(era))).unwrap_or_default()
        }
    })
}

/// A refusal of a request about a task.
pub(super) enum Refused {
    Rpc(RpcError),
    Problem(Problem),
}

impl From<RpcError> for Refused {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        match problem.code() {
            Code::ConversationNotFound | Code::NotFound => Self::Rpc(no_task()),
            _ => Self::Problem(problem),
        }
    }
}

fn no_task() -> RpcError {
    RpcError::params("No task has the id `params.taskId`.")
}

async fn known(
    state: &GatewayState,
    caller: &Caller,
    request: &Request,
) -> Result<(Conversation, Known), Refused> {
    let task = TaskId::parse(request.required("taskId")?).ok_or_else(no_task)?;
    let conversation = state.conversation(caller, &task.conversation).await?;
    let known = Known::of(state, caller, &conversation, task).await?;
    Ok((conversation, known))
}

/// Answers `tasks/get`.
pub(super) async fn get(
    state: &GatewayState,
    caller: &Caller,
    era: &Era,
    request: &Request,
) -> Result<Value, Refused> {
    let (_, known) = known(state, caller, request).await?;
    if let Era::Handshake(_) = era {
        return Ok(known.object(era));
    }
    let payload = match known.status(era) {
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        TaskStatus::Completed => {
            let result = result::of_turn(&known.task, &known.found.state);
            let result = era.completed(result.unwrap_or_default());
            TaskPayload::Completed {
                result: object(result),
            }
        }
        _ => TaskPayload::Working,
    };
    let task = DetailedTask::new(known.task(era), payload);
    Ok(serde_json::to_value(GetTaskResult::new(task)).unwrap_or_default())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Answers `tasks/result`: waits for the end of the turn, as the call itself would.
pub(super) async fn result(
    state: &GatewayState,
    caller: &Caller,
    headers: &axum::http::HeaderMap,
    era: Era,
    request: Request,
) -> Result<Response, Refused> {
    let (conversation, known) = known(state, caller, &request).await?;
    let permit = state.stream_permit(caller).await?;
    let related = json!({"taskId": known.task.to_string()});
    let answering = Answering {
        waiting: Waiting::new(state, caller, conversation, known.task, permit),
        token: request.progress_token(),
        era,
        id: request.id,
        meta: Some(json!({"io.modelcontextprotocol/related-task": related})),
        count: 0,
    };
    Ok(answering.answer(state, headers).await?)
}

/// Answers `tasks/cancel`.
pub(super) async fn cancel(
    state: &GatewayState,
    caller: &Caller,
    era: &Era,
    request: &Request,
) -> Result<Value, Refused> {
    let (conversation, known) = known(state, caller, request).await?;
    if matches!(known.found.state, TurnState::Ended { .. }) && *era != Era::Alone {
        return Err(RpcError::params("The task has ended, and cannot be cancelled.").into());
    }
    cancel::cancel_noted(state, caller, &conversation, &known.task.message_id).await?;
    Ok(match era {
        // The cancel is stored, and the turn ends with it. The text so far is in the conversation.
        Era::Handshake(_) => {
            let mut task = known.object(era);
            task["status"] = json!(TaskStatus::Cancelled);
            task["statusMessage"] = json!("The cancel is stored, and the turn ends.");
            task
        }
        Era::Alone => serde_json::to_value(TaskAckResult::default()).unwrap_or_default(),
    })
}

/// Answers `tasks/update`. No task asks its client, so no answer has an effect.
pub(super) async fn update(
    state: &GatewayState,
    caller: &Caller,
    request: &Request,
) -> Result<Value, Refused> {
    known(state, caller, request).await?;
    Ok(serde_json::to_value(TaskAckResult::default()).unwrap_or_default())
}

/// Answers `tasks/list`: the caller's calls over MCP, the newest first. A page may have fewer tasks than calls, because the
/// page also passes the calls of other owners.
pub(super) async fn list(
    state: &GatewayState,
    caller: &Caller,
    era: &Era,
    request: &Request,
) -> Result<Value, Refused> {
    let after =
        match request.text("cursor") {
            None => None,
            Some(cursor) => Some(position(cursor).ok_or_else(|| {
                RpcError::params("`params.cursor` must be the text `nextCursor`.")
            })?),
        };
    let results = &state.ports.turn_results;
    let calls = results
        .mcp_calls(&caller.access, after.as_ref(), PAGE)
        .await;
    let calls = calls.map_err(Problem::from)?;
    let has_more = calls.len() == usize::try_from(PAGE).unwrap_or(usize::MAX);
    let mut page = json!({"tasks": []});
    if let Some(last) = calls.last().filter(|_| has_more) {
        let cursor = last.cursor();
        let millis = cursor.created_at.timestamp_micros();
        page["nextCursor"] = json!(format!("{millis}:{}", cursor.message_id));
    }
    let mut tasks = Vec::new();
    for call in calls.iter().filter(|call| call.is_visible) {
        let name = Name::checked(call.conversation_name().to_owned())?;
        // A conversation may be deleted in the meantime.
        let Ok(conversation) = state.conversation(caller, &name).await else {
            continue;
        };
        let task = TaskId {
            conversation: name,
            message_id: call.message_id.clone(),
        };
        if let Ok(known) = Known::of(state, caller, &conversation, task).await {
            tasks.push(known.object(era));
        }
    }
    page["tasks"] = Value::Array(tasks);
    Ok(page)
}

fn position(cursor: &str) -> Option<McpCallCursor> {
    let (micros, message_id) = cursor.split_once(':')?;
    Some(McpCallCursor {
        created_at: chrono::DateTime::from_timestamp_micros(micros.parse().ok()?)?,
        message_id: message_id.to_owned(),
    })
}

/// Cancels the turn of a call, after `notifications/cancelled`. The notification names the call by its key, or by the id
/// of its request in the session.
pub(super) async fn cancelled(
    state: &GatewayState,
    caller: &Caller,
    headers: &axum::http::HeaderMap,
    params: &JsonObject,
) -> Result<(), Problem> {
    let Some(key) = keys::of_cancel(headers, params) else {
        return Ok(());
    };
    let results = &state.ports.turn_results;
    let id = mcp_message_id(&caller.access, &key);
    let Some(call) = results.mcp_call(&caller.access, &id).await? else {
        return Ok(());
    };
    let name = Name::checked(call.conversation_name().to_owned())?;
    let conversation = state.conversation(caller, &name).await?;
    cancel::cancel_noted(state, caller, &conversation, &call.message_id).await?;
    Ok(())
}
