//! An error response, from the problem that a handler returns to the response's body.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::code::Code;

/// Header with the request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Code,
    detail: String,
    retry_after_s: Option<u32>,
}

impl Problem {
    /// Makes a problem. `detail` tells the client how to react, and must not contain internals.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retry_after_s: None,
        }
    }

    /// Tells the client when to try again.
    #[must_use]
    pub fn retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Replaces the detail, the advice to the client.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Returns the advice to the client.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the problem's code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Makes the problem of a conversation that does not exist for the caller.
    pub fn conversation_not_found(id: &str) -> Self {
        Self::new(
            Code::ConversationNotFound,
            format!("No conversation has the id `{id}`."),
        )
    }

    /// Makes the problem of a tool execution that the conversation does not have.
    pub fn execution_not_found(id: &str) -> Self {
        Self::new(
            Code::ExecutionNotFound,
            format!("The conversation has no tool execution `{id}`."),
        )
    }

    /// Makes the problem of a file that does not exist, or that the caller may not see or use in the request.
    pub fn blob_not_found(id: &str) -> Self {
        Self::new(
            Code::BlobNotFound,
            format!("The request may not use a file `{id}`, or the file does not exist."),
        )
    }

    /// Makes the problem of a bug, or of an error whose details only the log may show.
    pub(crate) fn internal() -> Self {
        Self::new(
            Code::Internal,
            "The gateway's log has the details under the request id.",
        )
    }

    /// Makes a problem for a response that the framework made.
    fn of_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => (Code::NotFound, "No endpoint has this path."),
            StatusCode::METHOD_NOT_ALLOWED => (
                Code::MethodNotAllowed,
                "The header `Allow` lists the methods.",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => (Code::BodyTooLarge, "Send a smaller body."),
            status if status.is_client_error() => {
                (Code::BadRequest, "The request could not be read.")
            }
            _ => return Self::internal(),
        };
        Self::new(code, detail)
    }
}

impl IntoResponse for Problem {
    /// Makes a response with the status and without a body. [`finish`] writes the body, because it knows the request.
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// An error (RFC 9457). Programs should decide by `code`.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// The gateway's documentation page of the code.
    #[serde(rename = "type")]
    #[schema(
        format = "uri-reference",
        example = "/docs/errors/conversation_not_found"
    )]
    kind: String,
    /// One line for people, equal for every occurrence of the code.
    title: &'a str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The error and the advice, for people.
    detail: &'a str,
    #[schema(value_type = Code)]
    code: &'a str,
    /// The path of the request.
    #[schema(format = "uri-reference", example = "/api/v1/agent/conversations/none")]
    instance: &'a str,
    /// The id of the request, as in the header `x-request-id` and in the gateway's log.
    request_id: &'a str,
}

/// The parts of a request that error responses repeat.
struct Asked {
    path: String,
    request_id: String,
}

impl Asked {
    fn of(request: &Request) -> Self {
        let request_id = request.headers().get(REQUEST_ID);
        let request_id = request_id.and_then(|id| id.to_str().ok());
        Self {
            path: request.uri().path().to_owned(),
            request_id: request_id.unwrap_or_default().to_owned(),
        }
    }

    fn body<'a>(&'a self, problem: &'a Problem) -> ProblemBody<'a> {
        ProblemBody {
            kind: format!("/docs/errors/{}", problem.code.as_str()),
            title: problem.code.title(),
            status: problem.code.status().as_u16(),
            detail: &problem.detail,
            code: problem.code.as_str(),
            instance: &self.path,
            request_id: &self.request_id,
        }
    }
}

/// Middleware: gives every error response its problem body. A page for browsers tells its error itself.
pub async fn finish(request: Request, next: Next) -> Response {
    let asked = Asked::of(&request);
    let mut response = next.run(request).await;
    let status = response.status();
    let found = response.extensions_mut().remove::<Problem>();
    let is_error = status.is_client_error() || status.is_server_error();
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let is_page = content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
    if !is_error || (found.is_none() && is_page) {
        return response;
    }
    let problem = found.unwrap_or_else(|| Problem::of_status(status));
    let body = serde_json::to_vec(&asked.body(&problem));
    write(response, &problem, "application/problem+json", body)
}

/// Middleware of an endpoint for JSON-RPC: gives every error response the body of an error of JSON-RPC, whose data are the
/// problem body. The id is null, because the gateway has not answered the request: clients tell such a refusal from an answer.
/// Responses of the handler with a body of their own stay.
pub(crate) async fn finish_rpc(request: Request, next: Next) -> Response {
    let asked = Asked::of(&request);
    let mut response = next.run(request).await;
    let status = response.status();
    let found = response.extensions_mut().remove::<Problem>();
    let is_error = status.is_client_error() || status.is_server_error();
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let has_body = content_type.is_some_and(|value| value == "application/json");
    if !is_error || (found.is_none() && has_body) {
        return response;
    }
    let problem = found.unwrap_or_else(|| Problem::of_status(status));
    let error = RpcProblem {
        code: match problem.code {
            Code::Internal => -32603,
            _ => -32000,
        },
        message: format!("{}. {}", problem.code.title(), problem.detail),
        data: asked.body(&problem),
    };
    let body =
        serde_json::to_vec(&serde_json::json!({"jsonrpc": "2.0", "id": null, "error": error}));
    write(response, &problem, "application/json", body)
}

/// A problem as an error of JSON-RPC.
#[derive(Serialize)]
struct RpcProblem<'a> {
    code: i32,
    message: String,
    data: ProblemBody<'a>,
}

/// Writes the body of an error response.
fn write(
    mut response: Response,
    problem: &Problem,
    content_type: &'static str,
    body: serde_json::Result<Vec<u8>>,
) -> Response {
    *response.status_mut() = problem.code.status();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(seconds) = problem.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    *response.body_mut() = Body::from(body.unwrap_or_default());
    response
}
