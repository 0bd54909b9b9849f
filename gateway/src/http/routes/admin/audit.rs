//! The audit trail, in pages and as JSON lines.

use std::sync::Arc;

use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use chrono::Utc;
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{AuditQuery, AuditTrail, StoreError};
use futures::{Stream, stream};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema, openapi::schema::Object};

use super::{AdminRefusal, Seen, checked_word, invalid, time};
use crate::{
    audited::AuditEntryBody,
    http::{
        extract::{Caller, Params},
        openapi::problems,
        problem::Problem,
        routes::wire::{checked_limit, cut},
        state::GatewayState,
    },
    schema::{Id, one_of},
};

/// Entries of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
/// Maximum entries of an export in memory at a time: some hundred KB.
const EXPORTED_AT_ONCE: u32 = 500;

const JSON_LINES: &str = "application/x-ndjson";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct AuditParams {
    /// Only entries of the given tenant. Default: the caller's own tenant; with the scope `admin:all`, every tenant and the
    /// entries without a tenant.
    #[param(value_type = Option<Id>, example = "acme")]
    tenant: Option<String>,
    /// Only entries of the given action.
    #[param(example = "key_created")]
    action: Option<String>,
    /// Only entries of the key, session, subject or user with the given id.
    actor: Option<String>,
    /// Only entries from the given time or later.
    #[param(example = "2026-11-01T00:00:00Z", format = DateTime)]
    since: Option<String>,
    /// Only entries from before the given time.
    #[param(example = "2026-12-01T00:00:00Z", format = DateTime)]
    until: Option<String>,
    /// Only entries after the entry with the given `id`.
    #[param(minimum = 0)]
    after: Option<u64>,
    /// Maximum number of entries of the page; an export has no pages.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `jsonl`: an export of every entry as JSON lines, as with `Accept: application/x-ndjson`. `json`: a page.
    #[param(schema_with = formats)]
    format: Option<String>,
}

fn formats() -> Object {
    one_of(&["json", "jsonl"])
}

/// A page of the audit trail.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditPage)]
pub(in crate::http::routes) struct AuditPageBody {
    /// Entries, the oldest first.
    entries: Vec<AuditEntryBody>,
    /// `after` of the next page; null at the end. To follow the trail later, send the `id` of the last entry as `after`.
    #[schema(required = true)]
    next_after: Option<u64>,
}

problems!(Refusals: InvalidParameter);

/// Reads the audit trail, the oldest entry first.
///
/// Needs the scope `admin`. The JSON lines are one response of any length with one entry a line, up to the last entry at
/// the beginning of the request. A response that breaks off lacks the final chunk of the chunked encoding.
#[utoipa::path(
    get, path = "/admin/audit", tag = "admin", operation_id = "read_audit", params(AuditParams),
    responses(
        (
            status = 200, description = "A page, or all entries as JSON lines",
            content((AuditPageBody = "application/json"), (String = "application/x-ndjson"))
        ),
        Refusals
    )
)]
pub(in crate::http::routes) async fn read(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
    Params(params): Params<AuditParams>,
) -> Result<Response, AdminRefusal> {
    let limit = checked_limit(params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let is_export = match params.format.as_deref() {
        Some("jsonl") => true,
        Some("json") => false,
        Some(_) => return Err(invalid("`format` is json or jsonl.").into()),
        None => accepts_lines(&headers),
    };
    let seen = Seen::by(&caller, params.tenant.clone())?;
    let mut query = query(params, &seen)?;
    if is_export {
        return Ok(export(&state, &caller, &seen, query).await?);
    }
    let reading = AuditAction::AuditRead;
    state
        .audit
        .note_read(&caller, reading, seen.tenant())
        .await?;
    query.limit = limit + 1;
    let mut entries = state.ports.audit.audit_entries(&query).await?;
    let next_after = cut(&mut entries, limit).map(|last| last.id);
    let entries = entries.into_iter().map(AuditEntryBody::from).collect();
    Ok(Json(AuditPageBody {
        entries,
        next_after,
    })
    .into_response())
}

fn accepts_lines(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter();
    let mut words = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    words.any(|word| word.split(';').next().map(str::trim) == Some(JSON_LINES))
}

fn query(params: AuditParams, seen: &Seen) -> Result<AuditQuery, Problem> {
    Ok(AuditQuery {
        after: checked_after(params.after.unwrap_or_default())?,
        tenant_id: seen.tenant().map(str::to_owned),
        action: checked_word("action", params.action)?.map(AuditAction::from),
        actor: checked_word("actor", params.actor)?,
        since: params.since.map(|text| time("since", &text)).transpose()?,
        until: params.until.map(|text| time("until", &text)).transpose()?,
        limit: DEFAULT_LIMIT,
    })
}

/// Checks the number of an entry. The database counts entries from 1 to 2⁶³ − 1.
fn checked_after(after: u64) -> Result<u64, Problem> {
    if i64::try_from(after).is_ok() {
        Ok(after)
    } else {
        Err(invalid(format!("`after` must be 0 to {}.", i64::MAX)))
    }
}

/// Exports the entries older than the request, page by page as the client reads. The export itself is an entry, too.
async fn export(
    state: &GatewayState,
    caller: &Caller,
    seen: &Seen,
    query: AuditQuery,
) -> Result<Response, StoreError> {
    let target = (AuditTargetKind::Tenant, seen.tenant().unwrap_or_default());
    let entry = state
        .audit
        .entry(caller, AuditAction::AuditExported, target);
    state.audit.append(&entry).await?;
    let now = Utc::now();
    let query = AuditQuery {
        limit: EXPORTED_AT_ONCE,
        until: Some(query.until.map_or(now, |until| until.min(now))),
        ..query
    };
    let trail = Arc::clone(&state.ports.audit);
    let mut response = Body::from_stream(lines(trail, query)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Returns the entries as lines, a page in each item. An error breaks the response off, because an incomplete export
/// must not look complete.
fn lines(
    trail: Arc<dyn AuditTrail>,
    query: AuditQuery,
) -> impl Stream<Item = Result<Bytes, StoreError>> {
    stream::try_unfold(Some(query), move |query| {
        let trail = Arc::clone(&trail);
        async move {
            let Some(query) = query else { return Ok(None) };
            let entries = trail.audit_entries(&query).await?;
            let is_full = entries.len() >= query.limit as usize;
            let next = entries.last().filter(|_| is_full).map(|last| AuditQuery {
                after: last.id,
                ..query
            });
            let mut text = Vec::new();
            for entry in entries {
                let line = serde_json::to_vec(&AuditEntryBody::from(entry));
                text.extend(line.map_err(|error| StoreError::Corrupt(error.to_string()))?);
                text.push(b'\n');
            }
            Ok(Some((Bytes::from(text), next)))
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sent_to_whoever_asks_for_them() {
        for (accepted, are_lines) in [
            ("application/x-ndjson", true),
            ("text/html, application/x-ndjson;q=0.9", true),
            ("application/json", false),
            ("*/*", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accepted.parse().unwrap());
            assert_eq!(accepts_lines(&headers), are_lines, "{accepted}");
        }
    }
}
