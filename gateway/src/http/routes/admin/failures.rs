//! Failed agent executions of tenants: a list, and counts by agent and code.

use axum::{Json, extract::State};
use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::AuditAction;
use everturn_store::{AgentFailure, FailureCursor, FailureFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{AdminRefusal, Seen, checked_word, time};
use crate::{
    failed::{FailureBody, FailureCountBody},
    http::{
        extract::{Caller, Params},
        openapi::problems,
        problem::Problem,
        routes::wire::{checked_limit, cut, page_cursor, parse_page_cursor},
        state::GatewayState,
    },
};

/// Failures of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;
/// The most counts of an answer: 20 codes for each of 50 agents.
const MAX_COUNTS: u32 = 1000;
/// The period without `since`.
const DEFAULT_PERIOD: TimeDelta = TimeDelta::days(1);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct FailureFilterParams {
    /// Only failures of the given tenant. Default: the caller's own tenant; with the scope `admin:all`, every tenant.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// Only failures of the given agent.
    #[param(example = "support")]
    agent: Option<String>,
    /// Only failures with the given code.
    #[param(example = "llm_unavailable")]
    code: Option<String>,
    /// Only failures from the given time or later. By default a day before `until`.
    #[param(example = "2026-11-29T00:00:00Z", format = DateTime)]
    since: Option<String>,
    /// Only failures from before the given time. By default now.
    #[param(example = "2026-11-30T00:00:00Z", format = DateTime)]
    until: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct FailurePageParams {
    /// Rows of the page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next_after` of the page before. Treat the value as opaque, because its format may change.
    #[param(example = "2026-11-29T23:10:04.018Z~run_0b9d2c1e")]
    after: Option<String>,
}

/// A page of failures.
#[derive(Serialize, ToSchema)]
#[schema(as = FailurePage)]
pub(in crate::http::routes) struct FailurePageBody {
    /// The failures, the newest first.
    failures: Vec<FailureBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

/// The numbers of failures.
#[derive(Serialize, ToSchema)]
#[schema(as = FailureCounts)]
pub(in crate::http::routes) struct FailureCountsBody {
    /// The counts, the largest first.
    counts: Vec<FailureCountBody>,
}

problems!(Refusals: InvalidParameter);

/// Lists failed agent executions, the newest first.
///
/// Needs the scope `admin` for the caller's own tenant, and `admin:all` for further tenants. Failures in removed
/// conversations are removed, too.
#[utoipa::path(
    get, path = "/admin/failures", tag = "admin", operation_id = "list_failures",
    params(FailureFilterParams, FailurePageParams),
    responses((status = 200, body = FailurePageBody, description = "A page"), Refusals)
)]
pub(in crate::http::routes) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(filter): Params<FailureFilterParams>,
    Params(page): Params<FailurePageParams>,
) -> Result<Json<FailurePageBody>, AdminRefusal> {
    let limit = checked_limit(page.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let after = page.after.as_deref().map(parse_cursor).transpose()?;
    let filter = seen(&state, &caller, filter).await?;
    let store = &state.ports.failures;
    let mut rows = store.failures(&filter, after.as_ref(), limit + 1).await?;
    let token = |last: &AgentFailure| page_cursor(last.finished_at, &last.id);
    let next_after = cut(&mut rows, limit).map(token);
    Ok(Json(FailurePageBody {
        failures: rows.into_iter().map(FailureBody::from).collect(),
        next_after,
    }))
}

/// Counts failed agent executions by agent and code.
///
/// Needs the scope `admin` for the caller's own tenant, and `admin:all` for further tenants. The counts cover the newest
/// 100000 failures of the period, and the answer has at most 1000 counts.
#[utoipa::path(
    get, path = "/admin/failures/counts", tag = "admin", operation_id = "count_failures", params(FailureFilterParams),
    responses((status = 200, body = FailureCountsBody, description = "The counts"), Refusals)
)]
pub(in crate::http::routes) async fn count(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(filter): Params<FailureFilterParams>,
) -> Result<Json<FailureCountsBody>, AdminRefusal> {
    let filter = seen(&state, &caller, filter).await?;
    let store = &state.ports.failures;
    let counts = store.failure_counts(&filter, MAX_COUNTS).await?;
    Ok(Json(FailureCountsBody {
        counts: counts.into_iter().map(FailureCountBody::from).collect(),
    }))
}

/// Returns the filter of a read, limited to the tenants that the caller may see, and notes the read in the audit trail.
async fn seen(
    state: &GatewayState,
    caller: &Caller,
    params: FailureFilterParams,
) -> Result<FailureFilter, AdminRefusal> {
    let seen = Seen::by(caller, params.tenant)?;
    let until = params.until.map(|text| time("until", &text)).transpose()?;
    let until = until.unwrap_or_else(Utc::now);
    let since = params.since.map(|text| time("since", &text)).transpose()?;
    let since = since.or_else(|| until.checked_sub_signed(DEFAULT_PERIOD));
    let filter = FailureFilter {
        tenant_id: seen.tenant().map(str::to_owned),
        agent: checked_word("agent", params.agent)?,
        code: checked_word("code", params.code)?,
        since: since.unwrap_or(DateTime::UNIX_EPOCH),
        until,
    };
    let reading = AuditAction::FailuresRead;
    state
        .audit
        .note_read(caller, reading, seen.tenant())
        .await?;
    Ok(filter)
}

fn parse_cursor(token: &str) -> Result<FailureCursor, Problem> {
    let detail = "`after` must be the `next_after` of the previous page.";
    let (finished_at, id) = parse_page_cursor(token, detail)?;
    Ok(FailureCursor { finished_at, id })
}
