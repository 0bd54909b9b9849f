//! The tenants' usage of models and tools, by day, and by model, agent or tool.

use axum::{Json, extract::State};
use everturn_proto::words::AuditAction;
use everturn_store::{
    TenantUsageCursor, TenantUsageDay, TenantsUsageQuery, ToolUsageDay, ToolUsageQuery, UsageCursor,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{AdminRefusal, Seen};
use crate::{
    http::{
        extract::{Caller, Params},
        openapi::problems,
        problem::{Code, Problem},
        routes::{
            usage::{By, ToolUsageDayBody, UsageDayBody, checked_agent, days},
            wire::{checked_limit, cut},
        },
        state::GatewayState,
    },
    schema::Id,
};

/// Rows of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct TenantUsageParams {
    /// The kind of the sums. By default `model`.
    #[param(inline)]
    by: Option<By>,
    /// Only the calls of the agent, without the agent's sub-agents.
    #[param(value_type = Option<Id>, example = "support")]
    agent: Option<String>,
    /// Only usage of the given tenant. Default: the caller's own tenant; with the scope `admin:all`, every tenant.
    #[param(value_type = Option<Id>, example = "acme")]
    tenant: Option<String>,
    /// The first day, in UTC. By default 30 days before `to`.
    #[param(example = "2026-11-01", format = Date)]
    from: Option<String>,
    /// The last day, in UTC. By default today.
    #[param(example = "2026-11-30", format = Date)]
    to: Option<String>,
    /// Rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next_after` of the page before. Treat the value as opaque, because its format may change.
    #[param(example = "acme~2026-11-30~openai/gpt-5-mini")]
    after: Option<String>,
}

/// The usage of a model, or of an agent, by a tenant on a day.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantUsageDay)]
pub(in crate::http::routes) struct TenantUsageDayBody {
    #[schema(example = "acme")]
    tenant: String,
    #[serde(flatten)]
    day: UsageDayBody,
}

/// A tenant's calls of one tool on one day.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantToolUsageDay)]
pub(in crate::http::routes) struct TenantToolUsageDayBody {
    /// The tenant.
    tenant: String,
    #[serde(flatten)]
    day: ToolUsageDayBody,
}

/// A page of usage sums.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantUsagePage)]
pub(in crate::http::routes) struct TenantUsagePageBody {
    /// The rows, ordered by tenant and day, and by model or agent. Empty with `by=tool`.
    usage: Vec<TenantUsageDayBody>,
    /// With `by=tool`: the rows, ordered by tenant, day and tool. Otherwise empty.
    tools: Vec<TenantToolUsageDayBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

problems!(Refusals: InvalidParameter);

/// Lists the tenants' usage of models and tools, by tenant and day, and by model, agent or tool.
///
/// Needs the scope `admin` for the caller's own tenant, and `admin:all` for further tenants.
#[utoipa::path(
    get, path = "/admin/usage", tag = "admin", operation_id = "list_tenant_usage", params(TenantUsageParams),
    responses((status = 200, body = TenantUsagePageBody, description = "A page"), Refusals)
)]
pub(in crate::http::routes) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<TenantUsageParams>,
) -> Result<Json<TenantUsagePageBody>, AdminRefusal> {
    let limit = checked_limit(params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let (from, to) = days(params.from.as_deref(), params.to.as_deref())?;
    let seen = Seen::by(&caller, params.tenant)?;
    let after = params.after.as_deref().map(parse_cursor).transpose()?;
    let agent = params.agent.map(checked_agent).transpose()?;
    let reading = AuditAction::UsageRead;
    state
        .audit
        .note_read(&caller, reading, seen.tenant())
        .await?;
    let tenant_id = seen.tenant().map(str::to_owned);
    let (mut llm_calls, mut tool_calls) = (Vec::new(), Vec::new());
    let of_page = limit + 1;
    if let Some(by) = params.by.unwrap_or_default().of_llm_calls() {
        let query = TenantsUsageQuery {
            by,
            agent,
            tenant_id,
            from,
            to,
            after,
            limit: of_page,
        };
        llm_calls = state.ports.tenants.usage_of_tenants(&query).await?;
    } else {
        let query = ToolUsageQuery {
            tenant_id,
            agent,
            from,
            to,
            after,
            limit: of_page,
        };
        tool_calls = state.ports.usage.tool_usage(&query).await?;
    }
    let token = |tenant: &str, day: &str, name: &str| format!("{tenant}~{day}~{name}");
    let next_day = cut(&mut llm_calls, limit)
        .map(|last| token(&last.tenant_id, &last.day.day, last.day.name()));
    let next_tool =
        cut(&mut tool_calls, limit).map(|last| token(&last.tenant_id, &last.day, &last.tool));
    let of_llm = |row: TenantUsageDay| TenantUsageDayBody {
        tenant: row.tenant_id,
        day: row.day.into(),
    };
    let of_tool = |row: ToolUsageDay| TenantToolUsageDayBody {
        tenant: row.tenant_id.clone(),
        day: row.into(),
    };
    Ok(Json(TenantUsagePageBody {
        usage: llm_calls.into_iter().map(of_llm).collect(),
        tools: tool_calls.into_iter().map(of_tool).collect(),
        next_after: next_day.or(next_tool),
    }))
}

fn parse_cursor(token: &str) -> Result<TenantUsageCursor, Problem> {
    let mut parts = token.splitn(3, '~').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(tenant), Some(day), Some(name)) if !token.contains('\0') => Ok(TenantUsageCursor {
            tenant_id: tenant,
            of_tenant: UsageCursor { day, name },
        }),
        _ => Err(Problem::new(
            Code::InvalidParameter,
            "`after` must be the `next_after` of the previous page.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_cursor_of_the_sums_of_tenants_or_is_refused(text in "\\PC{0,40}", parts in prop::array::uniform2("[^~\\x00]{0,9}"), model in "[^\\x00]{0,20}") {
            if let Err(problem) = parse_cursor(&text) {
                prop_assert_eq!(problem.code(), Code::InvalidParameter);
            }
            let [tenant, day] = parts;
            let read = parse_cursor(&format!("{tenant}~{day}~{model}")).map_err(|problem| problem.code());
            let of_tenant = UsageCursor { day, name: model };
            prop_assert_eq!(read, Ok(TenantUsageCursor { tenant_id: tenant, of_tenant }));
        }
    }
}
