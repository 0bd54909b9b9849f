//! Requests to checked values. What does not fit is a problem with status 400.

use axum::{
    extract::{
        FromRequest, FromRequestParts, Json, Path, Query, Request,
        rejection::{BytesRejection, JsonRejection},
    },
    http::{StatusCode, request::Parts},
};
use everturn_proto::{ids, limits::MAX_ID_BYTES};
use serde::de::DeserializeOwned;

pub use crate::auth::Caller;
use crate::problem::{Code, Problem};

/// The conversation id of the path.
#[derive(Debug, Clone)]
pub struct ConversationId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for ConversationId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => checked_id("conversation id", id).map(Self),
            Err(rejection) => Err(Problem::new(Code::InvalidId, rejection.body_text())),
        }
    }
}

/// The conversation and the tool execution, or agent execution, of the path.
#[derive(Debug, Clone)]
pub struct ExecutionPath {
    /// The conversation.
    pub conversation_id: String,
    /// The execution in it.
    pub execution_id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ExecutionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((conversation_id, execution_id))) => Ok(Self {
                conversation_id: checked_id("conversation id", conversation_id)?,
                execution_id: checked_id("execution id", execution_id)?,
            }),
            Err(rejection) => Err(Problem::new(Code::InvalidId, rejection.body_text())),
        }
    }
}

/// Query parameters.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Problem::new(Code::InvalidParameter, rejection.body_text())),
        }
    }
}

/// A JSON body.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        Json::<T>::from_request(request, state).await.map(|Json(body)| Self(body)).map_err(|rejection| {
            // 415 and 422 are 400 here: one status for "the body is not what this endpoint takes".
            match rejection {
                JsonRejection::BytesRejection(rejection) => bytes_problem(&rejection),
                rejection => Problem::new(Code::InvalidBody, rejection.body_text()),
            }
        })
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub struct OptionalBody<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = axum::body::Bytes::from_request(request, state).await.map_err(|error| bytes_problem(&error))?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        match Json::<T>::from_bytes(&bytes) {
            Ok(Json(body)) => Ok(Self(body)),
            Err(rejection) => Err(Problem::new(Code::InvalidBody, rejection.body_text())),
        }
    }
}

fn bytes_problem(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(Code::BodyTooLarge, "Send a smaller body.");
    }
    Problem::new(Code::InvalidBody, "The body could not be read.")
}

/// `id` when it can be part of a workflow id and of a path.
pub fn checked_id(what: &str, id: String) -> Result<String, Problem> {
    if ids::is_valid(&id) {
        return Ok(id);
    }
    let detail = format!("A {what} has 1 to {MAX_ID_BYTES} letters, digits, `-`, `_`, `.` or `:`.");
    Err(Problem::new(Code::InvalidId, detail))
}
