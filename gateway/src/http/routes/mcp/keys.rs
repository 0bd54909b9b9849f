//! The keys of calls: the same call again has the same key.

use axum::http::HeaderMap;
use rmcp::model::{JsonObject, RequestId};
use serde_json::Value;

use super::{
    super::idempotency::idempotency_key,
    era,
    rpc::{Request, meta_of},
};
use crate::http::problem::{Code, Problem};

/// The key of a call in `_meta`. The MCP client of Everturn sends the key with each call.
const KEY: &str = "everturn/idempotency_key";
/// The most bytes of a key: much more than a hash or a UUID has.
const MAX_KEY_BYTES: usize = 512;

/// Returns the key of a call: the client's own key, or else the request's id in the client's session. Without a key
/// and a session, each request is a separate call.
pub(super) fn of_call(headers: &HeaderMap, request: &Request) -> Result<Option<String>, Problem> {
    let own = match request.meta(KEY) {
        None | Some(Value::Null) => idempotency_key(headers)?,
        Some(Value::String(key)) if (1..=MAX_KEY_BYTES).contains(&key.len()) => Some(key.clone()),
        Some(_) => {
            let detail = format!("`_meta.{KEY}` must be a text of 1 to {MAX_KEY_BYTES} bytes.");
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
    };
    Ok(own.map(|key| of_client(&key)).or_else(|| {
        let session = era::session(headers)?;
        Some(of_request(session, &request.id))
    }))
}

/// Returns the key of a call with a key of its own.
fn of_client(key: &str) -> String {
    format!("key\0{key}")
}

/// Returns the key of a request in a session.
fn of_request(session: &str, id: &RequestId) -> String {
    let id = serde_json::to_string(id).unwrap_or_default();
    format!("session\0{session}\0{id}")
}

/// Returns the key of the call that `notifications/cancelled` names; `None` when the notification names no call.
pub(super) fn of_cancel(headers: &HeaderMap, params: &JsonObject) -> Option<String> {
    if let Some(Value::String(key)) = meta_of(params, KEY) {
        return Some(of_client(key));
    }
    let id: RequestId = serde_json::from_value(params.get("requestId")?.clone()).ok()?;
    Some(of_request(era::session(headers)?, &id))
}
