//! Calls of tools: a call sends a message to an agent, and waits for the end of the turn.

use axum::{
    Json,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use everturn_store::{Conversation, mcp_message_id};
use serde_json::Value;
use uuid::Uuid;

use super::{
    super::{
        attachments::Content,
        conversations::{self, NewProperties, for_message},
        messages,
    },
    era::Era,
    keys, result,
    rpc::{Request, RpcError, result_message},
    stream::Answering,
    task_id::TaskId,
    tasks,
    waiting::Waiting,
};
use crate::{
    http::{
        extract::{Caller, Name},
        problem::{Code, Problem},
        state::GatewayState,
    },
    turns::OnBusy,
};

/// Answers `tools/call`.
pub(super) async fn call(
    state: &GatewayState,
    caller: &Caller,
    headers: &HeaderMap,
    era: Era,
    request: Request,
) -> Result<Response, Problem> {
    let refused = |error: RpcError| Ok(error.response(era.status(error.code), Some(&request.id)));
    let name = match request.required("name") {
        Ok(name) => name,
        Err(error) => return refused(error),
    };
    if !state
        .agents
        .names_of(&caller.access.tenant_id)
        .iter()
        .any(|agent| agent == name)
    {
        let mut error =
            RpcError::params(format!("No tool has the name `{name}`; see `tools/list`."));
        error.data = Some(serde_json::json!({"code": Code::UnknownAgent.as_str()}));
        return refused(error);
    }
    let key = keys::of_call(headers, &request)?;
    let is_task = tasks::is_wanted(&era, &request);
    // A call without a permit to wait sends no message, because nobody would get the answer.
    let permit = if is_task {
        None
    } else {
        Some(state.stream_permit(caller).await?)
    };
    let begun = begin(state, caller, name, &request, key).await;
    let (conversation, task) = match begun {
        Ok(begun) => begun,
        Err(problem) if is_of_arguments(problem.code()) && !is_task => {
            let result = era.completed(result::of_problem(&problem));
            return Ok(Json(result_message(&request.id, &result)).into_response());
        }
        Err(problem) => return Err(problem),
    };
    let Some(permit) = permit else {
        let created = tasks::created(state, caller, &era, &conversation, &task).await?;
        return Ok(Json(result_message(&request.id, &created)).into_response());
    };
    let answering = Answering {
        waiting: Waiting::new(state, caller, conversation, task, permit),
        token: request.progress_token(),
        era,
        id: request.id,
        meta: None,
        count: 0,
    };
    answering.answer(state, headers).await
}

/// Sends the message of a call, at most once for a key. Returns the conversation and the message.
async fn begin(
    state: &GatewayState,
    caller: &Caller,
    agent: &str,
    request: &Request,
    key: Option<String>,
) -> Result<(Conversation, TaskId), Problem> {
    let arguments = Arguments::of(request)?;
    let content = Content::checked(state, Some(arguments.message), Vec::new())?;
    let key = key.unwrap_or_else(|| Uuid::new_v4().to_string());
    let client_message_id = mcp_message_id(&caller.access, &key);
    let conversation = if let Some(name) = arguments.conversation {
        state.conversation(caller, &Name::checked(name)?).await?
    } else {
        let id = conversations::id_of_key(caller, &client_message_id);
        let new = NewProperties {
            agent: Some(agent.to_owned()),
            ..NewProperties::default()
        };
        for_message(state, caller, Some(id), new, None).await?
    };
    if conversation.agent != agent {
        let detail = format!(
            "The conversation `{}` belongs to the agent `{}`. Call that agent, or leave `conversation` out.",
            conversation.name(),
            conversation.agent
        );
        return Err(Problem::new(Code::UnknownAgent, detail));
    }
    let sent = messages::Sent {
        content,
        client_message_id: Some(client_message_id),
        model: None,
        on_busy: OnBusy::Queue,
    };
    let queued = messages::submit(state, caller, &conversation, sent).await?;
    let task = TaskId {
        conversation: Name::checked(conversation.name().to_owned())?,
        message_id: queued.message_id,
    };
    Ok((conversation, task))
}

/// The arguments of a call.
struct Arguments {
    message: String,
    conversation: Option<String>,
}

impl Arguments {
    fn of(request: &Request) -> Result<Self, Problem> {
        let wrong = |detail: &str| Problem::new(Code::InvalidBody, detail);
        let arguments = request.params.get("arguments");
        let Some(Value::Object(arguments)) = arguments else {
            return Err(wrong("The arguments must be an object with `message`."));
        };
        for name in arguments.keys() {
            if !matches!(name.as_str(), "message" | "conversation") {
                let detail = format!(
                    "The tool has no argument `{name}`; it has `message` and `conversation`."
                );
                return Err(wrong(&detail));
            }
        }
        let Some(Value::String(message)) = arguments.get("message") else {
            return Err(wrong("The argument `message` must be a text."));
        };
        let conversation = match arguments.get("conversation") {
            None | Some(Value::Null) => None,
            // Some models fill every argument.
            Some(Value::String(name)) if name.is_empty() => None,
            Some(Value::String(name)) => Some(name.clone()),
            Some(_) => return Err(wrong("The argument `conversation` must be a text.")),
        };
        Ok(Self {
            message: message.clone(),
            conversation,
        })
    }
}

/// Returns true for a refusal that the model can correct with other arguments.
fn is_of_arguments(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidBody
            | Code::InvalidId
            | Code::InvalidMessage
            | Code::MessageTooLong
            | Code::ConversationNotFound
            | Code::UnknownAgent
    )
}
