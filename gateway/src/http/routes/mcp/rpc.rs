//! Messages of JSON-RPC 2.0: one message per request, in and out.
//!
//! Must not be here: the protocol's versions (`era`), and the meaning of methods.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use rmcp::model::{ErrorCode, JsonObject, RequestId};
use serde_json::{Value, json};

/// The most bytes of a request's id. The answer repeats the id, and so does the position of a stream.
const MAX_ID_BYTES: usize = 256;
/// The most bytes of a token for progress.
const MAX_TOKEN_BYTES: usize = 512;

/// A message from a client.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message that needs an answer.
    Request(Request),
    /// A message without an answer.
    Notification { method: String, params: JsonObject },
    /// An answer. The gateway expects no answers, because the gateway sends no requests.
    Response,
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: JsonObject,
}

impl Request {
    /// Returns a field of the request's metadata.
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        meta_of(&self.params, key)
    }

    /// Returns the token for progress, if the client wants progress. Each notification repeats the token, so a long token
    /// counts as no token.
    pub(super) fn progress_token(&self) -> Option<Value> {
        let token = self.meta("progressToken")?;
        let is_token = match token {
            Value::Number(_) => true,
            Value::String(text) => text.len() <= MAX_TOKEN_BYTES,
            _ => false,
        };
        is_token.then(|| token.clone())
    }

    /// Returns a parameter with a text.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.params.get(key)?.as_str()
    }

    /// Returns a parameter with a text, or the error for a request without the parameter.
    pub(super) fn required(&self, key: &str) -> Result<&str, RpcError> {
        self.text(key)
            .ok_or_else(|| RpcError::params(format!("`params.{key}` must be a text.")))
    }
}

/// Returns a field of `_meta` in the parameters of a message.
pub(super) fn meta_of<'p>(params: &'p JsonObject, key: &str) -> Option<&'p Value> {
    params.get("_meta")?.get(key)
}

/// Reads the body of a request: one message.
pub(super) fn read(body: &[u8]) -> Result<Incoming, RpcError> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| RpcError::new(ErrorCode::PARSE_ERROR, format!("No JSON: {error}.")))?;
    let Value::Object(mut message) = value else {
        return Err(invalid(
            "The body must be one JSON-RPC object; send the messages of a batch alone.",
        ));
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("The field `jsonrpc` must be `2.0`."));
    }
    let id = message.remove("id").map(checked_id).transpose()?;
    let params = match message.remove("params") {
        None | Some(Value::Null) => JsonObject::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(RpcError::params("`params` must be an object.")),
    };
    match (id, message.remove("method")) {
        (Some(id), Some(Value::String(method))) => {
            Ok(Incoming::Request(Request { id, method, params }))
        }
        (None, Some(Value::String(method))) => Ok(Incoming::Notification { method, params }),
        (_, None) if message.contains_key("result") || message.contains_key("error") => {
            Ok(Incoming::Response)
        }
        _ => Err(invalid("The field `method` must be a text.")),
    }
}

fn checked_id(id: Value) -> Result<RequestId, RpcError> {
    match id {
        Value::String(text) if text.len() <= MAX_ID_BYTES => Ok(RequestId::String(text.into())),
        Value::Number(number) => number
            .as_i64()
            .map(RequestId::Number)
            .ok_or_else(|| invalid("An id that is a number must be a whole number of 64 bits.")),
        _ => Err(invalid(
            "An id must be a whole number, or a text of at most 256 bytes.",
        )),
    }
}

fn invalid(message: &str) -> RpcError {
    RpcError::new(ErrorCode::INVALID_REQUEST, message)
}

/// An error of JSON-RPC.
#[derive(Debug)]
pub(super) struct RpcError {
    pub(super) code: ErrorCode,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl RpcError {
    /// Makes an error. The message tells the client how to react.
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Makes the error of wrong parameters.
    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Makes the error of a method that the server does not have.
    pub(super) fn no_method(method: &str) -> Self {
        let message = format!("The server has no method `{method}`. It offers tools and tasks.");
        Self::new(ErrorCode::METHOD_NOT_FOUND, message)
    }

    /// Returns the error as a message. A request whose id is unknown has the id null.
    pub(super) fn message(&self, id: Option<&RequestId>) -> Value {
        let (code, message) = (self.code.0, &self.message);
        let mut error = json!({"code": code, "message": message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }

    /// Makes the response with the error.
    pub(super) fn response(&self, status: StatusCode, id: Option<&RequestId>) -> Response {
        (status, Json(self.message(id))).into_response()
    }
}

/// Returns a result as a message.
pub(super) fn result_message(id: &RequestId, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns a notification as a message.
pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error_of(body: &str) -> i32 {
        read(body.as_bytes()).unwrap_err().code.0
    }

    #[test]
    fn a_message_is_a_request_a_notification_or_an_answer() {
        let request = br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
        assert!(
            matches!(read(request), Ok(Incoming::Request(Request { id: RequestId::String(id), .. })) if &*id == "a")
        );
        let notification = br#"{"jsonrpc":"2.0","method":"n","params":null}"#;
        assert!(
            matches!(read(notification), Ok(Incoming::Notification { method, .. }) if method == "n")
        );
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert!(matches!(read(response), Ok(Incoming::Response)));
    }

    #[test]
    fn a_wrong_message_is_refused_with_a_code() {
        assert_eq!(error_of("{"), -32700);
        assert_eq!(error_of(&"[".repeat(100_000)), -32700);
        for body in [
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        ] {
            assert_eq!(error_of(body), -32600, "{body}");
        }
        assert_eq!(
            error_of(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#),
            -32602
        );
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"a"}}"#,
            "x".repeat(257)
        );
        assert_eq!(error_of(&long), -32600);
    }

    proptest! {
        #[test]
        fn any_message_is_read_or_is_refused_with_a_code(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            json in r#"\{("(jsonrpc|id|method|params|result|x)":("(2.0|ping)?"|[0-9eE.-]{1,8}|null|\{("_meta":\{?\}?)?\}?),?){0,5}\}"#,
        ) {
            for body in [bytes.as_slice(), json.as_bytes()] {
                if let Err(error) = read(body) {
                    prop_assert!((-32700..=-32600).contains(&error.code.0));
                }
            }
        }
    }
}
