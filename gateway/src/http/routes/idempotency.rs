//! The header `Idempotency-Key`, with which clients repeat a request.

use axum::http::HeaderMap;

use crate::http::{extract::checked_id, problem::Problem};

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The key with which the client repeats a request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    checked_id(
        "Idempotency-Key",
        key.to_str().unwrap_or_default().to_owned(),
    )
    .map(Some)
}
