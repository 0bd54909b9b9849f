//! Tenants: their keys, conversations and turns from the store, and their agents from the configuration.

use axum::{Json, extract::State};
use everturn_proto::words::AuditAction;
use everturn_store::TenantSummary;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{AdminRefusal, Seen, checked_tenant};
use crate::{
    http::{
        extract::{Caller, Params},
        openapi::problems,
        routes::wire::{checked_limit, cut, time},
        state::GatewayState,
    },
    schema::Id,
};

/// Tenants of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// A tenant.
#[derive(Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(in crate::http::routes) struct TenantBody {
    #[schema(example = "acme")]
    tenant: String,
    /// Number of API keys that are valid now.
    valid_keys: u64,
    /// Number of conversations; 10000 stands for 10000 or more.
    conversations: u64,
    /// Number of running turns.
    running_turns: u64,
    /// Time of the last activity in the tenant's conversations; null without a conversation.
    #[schema(required = true, format = DateTime)]
    last_activity_at: Option<String>,
    /// Agents that the gateway's configuration allows for the tenant's conversations.
    agents: Vec<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct TenantsParams {
    /// Maximum number of tenants of the page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_after` of the page before.
    #[param(value_type = Option<Id>)]
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
/// Needs the scope `admin`, which shows the caller's own tenant only, or `admin:all`.
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
    let seen = Seen::by(&caller, None)?;
    let listing = AuditAction::TenantsListed;
    state
        .audit
        .note_read(&caller, listing, seen.tenant())
        .await?;
    let mut found = match seen {
        Seen::All => store.tenants(after.as_deref(), limit + 1).await?,
        Seen::Tenant(own) if after.as_ref().is_none_or(|after| own > *after) => {
            vec![store.tenant(&own).await?]
        }
        Seen::Tenant(_) => Vec::new(),
    };
    let next_after = cut(&mut found, limit).map(|last| last.tenant_id.clone());
    let shown = |tenant: TenantSummary| TenantBody {
        agents: state.agents.names_of(&tenant.tenant_id),
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
