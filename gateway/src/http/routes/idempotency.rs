//! The header `Idempotency-Key`, which makes a repeated request safe.

use axum::http::HeaderMap;

use crate::http::{extract::checked_id, problem::Problem};

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Returns the checked value of the request's `Idempotency-Key`.
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
