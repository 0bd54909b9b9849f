//! Owners with refused credentials: an admin ends the sessions and tokens of an owner, refuses an owner, and allows the
//! owner again. The body names the owner, because owners are often addresses of people, and URLs appear in logs.

use axum::{Json, extract::State};
use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{Access, ChangedOwner, OwnerChange, OwnerState, RefusedOwner};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{AdminRefusal, Seen, keys::check_owner};
use crate::{
    config::{AuthConfig, Scope},
    http::{
        auth::AuthRefusal,
        extract::{Caller, JsonBody, Params},
        openapi::problems,
        problem::{Code, Problem},
        routes::wire::time,
        state::GatewayState,
    },
    schema::Id,
};

/// An owner, and the credentials of the owner that gateways refuse.
#[derive(Serialize, ToSchema)]
#[schema(as = Owner)]
pub(in crate::http::routes) struct OwnerBody {
    /// The owner of conversations: the claim `sub` of the owner's tokens.
    owner: String,
    /// True while the gateway refuses every credential of the owner, but credentials with `admin:all`.
    is_refused: bool,
    /// True while the gateway also refuses credentials with `admin:all`. Only an admin with `admin:all` refuses these
    /// credentials, and only an admin with `admin:all` allows the owner again.
    is_all_refused: bool,
    /// The gateway refuses tokens and sessions of sign-ins up to the time; null: no sign-in was ended.
    #[schema(required = true, format = DateTime)]
    ended_at: Option<String>,
}

impl OwnerBody {
    fn of(owner: String, state: OwnerState) -> Self {
        Self {
            owner,
            is_refused: state.is_refused,
            is_all_refused: state.is_all_refused,
            ended_at: state.ended_at.map(time),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct OwnersParams {
    /// The tenant of the owners. Default: the caller's own tenant. A different tenant needs the scope `admin:all`.
    #[param(value_type = Option<Id>, example = "acme")]
    tenant: Option<String>,
}

/// The owners of a tenant with refused credentials.
#[derive(Serialize, ToSchema)]
#[schema(as = Owners)]
pub(in crate::http::routes) struct OwnersBody {
    #[schema(value_type = Id)]
    tenant: String,
    /// The owners, ordered by name: about 1000 at the most. An owner who is not refused leaves the list after the
    /// longest lifetime of a token.
    owners: Vec<OwnerBody>,
}

problems!(ListRefusals: InvalidParameter);

/// Lists the owners of a tenant with refused credentials.
///
/// Needs the scope `admin`.
#[utoipa::path(
    get, path = "/admin/owners", tag = "admin", operation_id = "list_refused_owners", params(OwnersParams),
    responses((status = 200, body = OwnersBody, description = "The owners"), ListRefusals)
)]
pub(in crate::http::routes) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<OwnersParams>,
) -> Result<Json<OwnersBody>, AdminRefusal> {
    let tenant = tenant(&caller, params.tenant)?;
    let listing = AuditAction::OwnersListed;
    let note = state.audit.note_read(&caller, listing, Some(&tenant));
    note.await?;
    let owners = state.ports.owners.refused_owners(&tenant).await?;
    let owners = owners.into_iter();
    Ok(Json(OwnersBody {
        tenant,
        owners: owners
            .map(|refused| OwnerBody::of(refused.owner_id, refused.state))
            .collect(),
    }))
}

/// A change of an owner.
#[derive(Deserialize, ToSchema)]
#[schema(as = OwnerChange)]
pub(in crate::http::routes) struct ChangeBody {
    /// The tenant of the owner. Default: the caller's own tenant. A different tenant needs the scope `admin:all`.
    #[schema(value_type = Option<Id>)]
    tenant: Option<String>,
    /// The owner: the claim `sub` of a token, or the owner of keys.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
        example = "ann"
    )]
    owner: String,
    change: Change,
}

/// `end_sessions` ends every token and session until now, and every stream of these credentials. `refuse` also refuses
/// every further credential of the owner. `allow` ends a refusal; ended tokens and sessions stay ended.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OwnerChangeKind)]
enum Change {
    EndSessions,
    Refuse,
    Allow,
}

impl Change {
    fn action(self) -> AuditAction {
        match self {
            Self::EndSessions => AuditAction::OwnerSessionsEnded,
            Self::Refuse => AuditAction::OwnerRefused,
            Self::Allow => AuditAction::OwnerAllowed,
        }
    }
}

impl From<Change> for OwnerChange {
    fn from(change: Change) -> Self {
        match change {
            Change::EndSessions => Self::EndSessions,
            Change::Refuse => Self::Refuse,
            Change::Allow => Self::Allow,
        }
    }
}

problems!(ChangeRefusals: InvalidBody, InvalidParameter, BodyTooLarge, TooManyRefusedOwners);

/// Ends the sessions and tokens of an owner, refuses an owner, or allows the owner again.
///
/// Needs the scope `admin`. Credentials of the owner with the scope `admin:all` follow only a change by an admin with
/// `admin:all`. Other gateways follow within `key_cache` of `[auth]` (5 s), and open streams end within 15 s. Repeating
/// the request is safe. The change reaches no running turn.
#[utoipa::path(
    post, path = "/admin/owners", tag = "admin", operation_id = "change_owner", request_body = ChangeBody,
    responses((status = 200, body = OwnerBody, description = "The owner after the change"), ChangeRefusals)
)]
pub(in crate::http::routes) async fn change(
    State(state): State<GatewayState>,
    caller: Caller,
    JsonBody(body): JsonBody<ChangeBody>,
) -> Result<Json<OwnerBody>, AdminRefusal> {
    check_owner(&body.owner)?;
    let tenant = tenant(&caller, body.tenant)?;
    let target = (AuditTargetKind::Owner, body.owner.as_str());
    let mut entry = state.audit.entry(&caller, body.change.action(), target);
    entry.tenant_id = Some(tenant.clone());
    let owners = &state.ports.owners;
    let keep = longest_sign_in(&state.config.auth);
    let (change, by) = (body.change.into(), caller.scopes.reach());
    let changed = owners.change_owner(&tenant, &body.owner, change, by, keep, &entry);
    match changed.await? {
        ChangedOwner::Done => {}
        ChangedOwner::TooMany => return Err(too_many().into()),
        ChangedOwner::RefusedByAll => return Err(AuthRefusal::Scope(Scope::AdminAll).into()),
    }
    state
        .auth
        .forget_owner(&Access::owner(&tenant, &body.owner));
    let changed = owners.owner_state(&tenant, &body.owner).await?;
    Ok(Json(OwnerBody::of(body.owner, changed)))
}

fn too_many() -> Problem {
    let detail = format!(
        "The tenant has {} owners with refused credentials. Allow owners, or remove people at the identity provider.",
        RefusedOwner::MAX_OF_TENANT
    );
    Problem::new(Code::TooManyRefusedOwners, detail)
}

/// Returns the requested tenant, or the caller's own tenant.
fn tenant(caller: &Caller, asked: Option<String>) -> Result<String, AdminRefusal> {
    let own = caller.access.tenant_id.clone();
    match Seen::by(caller, Some(asked.unwrap_or_else(|| own.clone())))? {
        Seen::Tenant(tenant) => Ok(tenant),
        Seen::All => Ok(own),
    }
}

/// Returns the longest time from a sign-in to the end of its token or session.
fn longest_sign_in(config: &AuthConfig) -> TimeDelta {
    let tokens = config.oidc.iter();
    let tokens = tokens.map(|issuer| issuer.max_token_lifetime + 2 * issuer.leeway);
    let longest = tokens.fold(config.session_lifetime, Ord::max);
    TimeDelta::from_std(longest).unwrap_or(DateTime::<Utc>::MAX_UTC - Utc::now())
}
