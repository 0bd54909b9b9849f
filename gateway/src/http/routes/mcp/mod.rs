//! `/mcp`: the agents of a caller as tools, for clients of the Model Context Protocol (streamable HTTP).
//!
//! - `rpc`: messages of JSON-RPC; `era`: the versions of the protocol, and their headers
//! - `about`: the handshakes
//! - `tools`: the list of tools; `call`: calls; `keys`: the keys of calls
//! - `waiting`: the wait for the end of a turn; `progress`: the progress in words; `stream`: the answer of a waiting call
//! - `result`: the result of a turn as the result of a call
//! - `tasks`, `task_id`: tasks, which are messages with their turns
//!
//! The gateway keeps nothing between two requests: any gateway answers any request, also after a crash. The OpenAPI document has
//! no `/mcp`, because the messages of the protocol are no resources.

mod about;
mod call;
mod era;
mod keys;
mod progress;
mod result;
mod rpc;
mod stream;
mod task_id;
mod tasks;
mod tools;
mod waiting;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};

use self::{
    era::Era,
    rpc::{Incoming, Request, RpcError, result_message},
    stream::{Answering, Position},
    tasks::Refused,
    waiting::Waiting,
};
use crate::{
    config::Scope,
    http::{
        auth::AuthRefusal,
        extract::{Caller, unread_body},
        problem::{Code, Problem},
        state::GatewayState,
    },
};

/// Returns the endpoint.
pub(super) fn router() -> Router<GatewayState> {
    Router::new().route("/mcp", post(receive).get(resume))
}

/// A refusal of a request as a whole.
enum Refusal {
    Auth(AuthRefusal),
    Problem(Problem),
}

impl From<AuthRefusal> for Refusal {
    fn from(refusal: AuthRefusal) -> Self {
        Self::Auth(refusal)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Auth(refusal) => refusal.into_response(),
            Self::Problem(problem) => problem.into_response(),
        }
    }
}

/// Receives a message.
async fn receive(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(Code::BodyTooLarge, "Send a smaller body."),
        _ => unread_body(&rejection),
    })?;
    check_content_type(&headers)?;
    match rpc::read(&body) {
        Ok(Incoming::Request(request)) => answer(&state, &caller, &headers, request).await,
        Ok(Incoming::Notification { method, params }) => {
            if method == "notifications/cancelled" {
                caller.require(Scope::Write)?;
                tasks::cancelled(&state, &caller, &headers, &params).await?;
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Ok(Incoming::Response) => Ok(StatusCode::ACCEPTED.into_response()),
        Err(error) => Ok(error.response(StatusCode::BAD_REQUEST, None)),
    }
}

/// Refuses bodies of other types. A page of another origin can send such bodies without asking the gateway.
fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "The header `Content-Type` must be `application/json`.";
    Err(Problem::new(Code::InvalidBody, detail))
}

/// Answers a request.
async fn answer(
    state: &GatewayState,
    caller: &Caller,
    headers: &HeaderMap,
    request: Request,
) -> Result<Response, Refusal> {
    caller.require(match request.method.as_str() {
        "tools/call" | "tasks/cancel" => Scope::Write,
        _ => Scope::Read,
    })?;
    if request.method == "initialize" {
        return Ok(about::initialize(&request));
    }
    let era = match Era::of(headers, &request) {
        Ok(era) => era,
        Err(error) => return Ok(error.response(StatusCode::BAD_REQUEST, Some(&request.id))),
    };
    let id = request.id.clone();
    let status = |error: &RpcError| era.status(error.code);
    let answered = match request.method.as_str() {
        "tools/call" => return Ok(call::call(state, caller, headers, era, request).await?),
        "tasks/result" if era != Era::Alone => {
            match tasks::result(state, caller, headers, era.clone(), request).await {
                Ok(response) => return Ok(response),
                Err(refused) => Err(refused),
            }
        }
        _ => document(state, caller, &era, &request).await,
    };
    match answered {
        Ok(result) => Ok(Json(result_message(&id, &era.completed(result))).into_response()),
        Err(Refused::Rpc(error)) => Ok(error.response(status(&error), Some(&id))),
        Err(Refused::Problem(problem)) => Err(problem.into()),
    }
}

/// Answers a request that does not wait for a turn.
async fn document(
    state: &GatewayState,
    caller: &Caller,
    era: &Era,
    request: &Request,
) -> Result<Value, Refused> {
    let is_alone = *era == Era::Alone;
    match request.method.as_str() {
        "ping" if !is_alone => Ok(json!({})),
        "server/discover" if is_alone => Ok(about::discover()),
        "tools/list" => Ok(tools::list(state, caller, era, request)?),
        "tasks/get" => tasks::get(state, caller, era, request).await,
        "tasks/cancel" => tasks::cancel(state, caller, era, request).await,
        "tasks/list" if !is_alone => tasks::list(state, caller, era, request).await,
        "tasks/update" if is_alone => tasks::update(state, caller, request).await,
        method => Err(RpcError::no_method(method).into()),
    }
}

/// Continues the stream of a call behind the header `Last-Event-ID`. The gateway has no other stream for clients.
async fn resume(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    caller.require(Scope::Read)?;
    let Some(last) = headers.get("last-event-id") else {
        let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
        response
            .headers_mut()
            .insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        return Ok(response);
    };
    let era = match Era::of_stream(&headers) {
        Ok(era) => era,
        Err(error) => return Ok(error.response(StatusCode::BAD_REQUEST, None)),
    };
    let position = last.to_str().ok().and_then(Position::parse);
    let Some((position, task)) = position else {
        let detail = "The header `Last-Event-ID` must be the `id` of an event of `/mcp`.";
        return Err(Problem::new(Code::InvalidParameter, detail).into());
    };
    let conversation = state.conversation(&caller, &task.conversation).await?;
    let permit = state.stream_permit(&caller).await?;
    let answering = Answering {
        waiting: Waiting::new(&state, &caller, conversation, task, permit),
        era,
        id: position.id,
        token: position.token,
        meta: None,
        count: position.count,
    };
    Ok(answering.stream(state.config.heartbeat, state.config.retry_delay()))
}
