//! Tenants: what the store knows of them, and what is configured for them.

use axum::{Json, extract::State};
use everturn_store::TenantSummary;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{AdminRefusal, Seen, checked_tenant};
use crate::http::{
    extract::{Caller, Params},
    openapi::problems,
    routes::wire::{checked_limit, time},
    state::GatewayState,
};

/// Tenants of a page when the request does not say, and at the most.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// A tenant.
#[derive(Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(in crate::http::routes) struct TenantBody {
    #[schema(example = "acme")]
    tenant: String,
    /// API keys that are valid now.
    valid_keys: u64,
    /// Conversations; 10000 stands for that many or more.
    conversations: u64,
    /// Turns that run now.
    running_turns: u64,
    /// When something last happened in a conversation; null without any.
    #[schema(required = true, format = DateTime)]
    last_activity_at: Option<String>,
    /// The agents that its conversations may have, as this gateway is configured.
    agents: Vec<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct TenantsParams {
    /// Tenants of the page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_after` of the page before.
    after: Option<String>,
}

/// A page of tenants.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantPage)]
pub(in crate::http::routes) struct TenantPageBody {
    /// The tenants, ordered by id.
    tenants: Vec<TenantBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

problems!(Refusals: InvalidParameter);

/// Lists the tenants that have a conversation, a key or sums of usage.
///
/// Needs the scope `admin`, with which one sees one's own tenant, or `admin:all`.
#[utoipa::path(
    get, path = "/admin/tenants", tag = "admin", operation_id = "list_tenants", params(TenantsParams),
    responses((status = 200, body = TenantPageBody, description = "A page"), Refusals)
)]
pub(in crate::http::routes) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<TenantsParams>,
) -> Result<Json<TenantPageBody>, AdminRefusal> {
    let limit = checked_limit(params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let after = params.after.map(checked_tenant).transpose()?;
    let store = &state.ports.tenants;
    let mut found = match Seen::by(&caller, None)? {
        Seen::All => store.tenants(after.as_deref(), limit + 1).await?,
        Seen::Tenant(own) if after.as_ref().is_none_or(|after| own > *after) => {
            vec![store.tenant(&own).await?]
        }
        Seen::Tenant(_) => Vec::new(),
    };
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| has_more);
    let next_after = last.map(|last| last.tenant_id.clone());
    let shown = |tenant: TenantSummary| TenantBody {
        agents: state
            .config
            .agents_of(&tenant.tenant_id)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        tenant: tenant.tenant_id,
        valid_keys: tenant.valid_keys,
        conversations: tenant.conversations,
        running_turns: tenant.running_turns,
        last_activity_at: tenant.last_activity_at.map(time),
    };
    Ok(Json(TenantPageBody {
        tenants: found.into_iter().map(shown).collect(),
        next_after,
    }))
}
