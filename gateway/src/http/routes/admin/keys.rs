//! API keys: admins list, create and revoke keys. A new key has at most the rights of the admin's own credential.

use std::num::NonZeroU32;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{Access, ApiKey, KeyKind, NewKey};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Number;
use utoipa::{IntoParams, ToSchema, openapi::schema::Array};

use super::{AdminRefusal, Seen};
use crate::{
    config::{Scope, Scopes},
    http::{
        audit::WithDetails,
        auth::{AuthRefusal, Secret},
        extract::{Caller, JsonBody, Params, checked_id},
        openapi::problems,
        problem::{Code, Problem},
        routes::wire::{checked_limit, cut, time},
        state::GatewayState,
    },
    schema::{Id, one_of},
};

/// Keys of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
/// Maximum bytes of an owner and of a key's name.
const MAX_NAME_BYTES: usize = 255;

/// An API key, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
pub(in crate::http::routes) struct KeyBody {
    #[schema(value_type = Id)]
    id: String,
    tenant: String,
    /// Owner of the visible conversations; null: the key sees every owner's conversations of the tenant.
    #[schema(required = true)]
    owner: Option<String>,
    /// Scopes of the key. Skip unknown scopes, because later versions may add scopes.
    scopes: Vec<String>,
    /// Purpose of the key.
    name: String,
    /// The key that made the key, also through a session of the key; null: a token or a command made the key.
    #[schema(required = true, value_type = Option<Id>)]
    made_by_key: Option<String>,
    /// The subject of the token that made the key; null: a key or a command made the key.
    #[schema(required = true)]
    made_by_subject: Option<String>,
    #[schema(schema_with = states)]
    state: &'static str,
    #[schema(format = DateTime)]
    created_at: String,
    /// End of the key; null: the key is valid until a revocation.
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
    #[schema(required = true, format = DateTime)]
    revoked_at: Option<String>,
    /// When the key was last used, exact to about a minute.
    #[schema(required = true, format = DateTime)]
    last_used_at: Option<String>,
}

fn states() -> utoipa::openapi::schema::Object {
    one_of(&["valid", "expired", "revoked"])
}

impl From<ApiKey> for KeyBody {
    fn from(key: ApiKey) -> Self {
        let state = match key.revoked_at {
            Some(_) => "revoked",
            None if key.is_valid_at(Utc::now()) => "valid",
            None => "expired",
        };
        Self {
            state,
            id: key.id,
            tenant: key.access.tenant_id,
            owner: key.access.owner_id,
            scopes: key.scopes.split_whitespace().map(str::to_owned).collect(),
            name: key.name,
            made_by_key: key.made_by.key,
            made_by_subject: key.made_by.subject,
            created_at: time(key.created_at),
            expires_at: key.expires_at.map(time),
            revoked_at: key.revoked_at.map(time),
            last_used_at: key.last_used_at.map(time),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct KeysParams {
    /// Only keys of the given tenant. Default: the caller's own tenant; with the scope `admin:all`, every tenant.
    #[param(value_type = Option<Id>, example = "acme")]
    tenant: Option<String>,
    /// Maximum keys of the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next_after` of the page before.
    #[param(value_type = Option<Id>)]
    after: Option<String>,
}

/// A page of keys.
#[derive(Serialize, ToSchema)]
#[schema(as = KeyPage)]
pub(in crate::http::routes) struct KeyPageBody {
    /// The keys, ordered by id.
    keys: Vec<KeyBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

problems!(ListRefusals: InvalidParameter, InvalidId);

/// Lists API keys, never their secrets.
///
/// Needs the scope `admin`.
#[utoipa::path(
    get, path = "/admin/keys", tag = "admin", operation_id = "list_keys", params(KeysParams),
    responses((status = 200, body = KeyPageBody, description = "A page"), ListRefusals)
)]
pub(in crate::http::routes) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<KeysParams>,
) -> Result<Json<KeyPageBody>, AdminRefusal> {
    let limit = checked_limit(params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let after = params.after.map(|after| checked_id("key id", after));
    let after = after.transpose()?;
    let seen = Seen::by(&caller, params.tenant)?;
    let listing = AuditAction::KeysListed;
    state
        .audit
        .note_read(&caller, listing, seen.tenant())
        .await?;
    let store = &state.ports.keys;
    let listed = store.list_keys(seen.tenant(), after.as_deref(), limit + 1);
    let mut keys = listed.await?;
    let next_after = cut(&mut keys, limit).map(|last| last.id.clone());
    Ok(Json(KeyPageBody {
        keys: keys.into_iter().map(KeyBody::from).collect(),
        next_after,
    }))
}

/// Properties of a new key.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewKey)]
pub(in crate::http::routes) struct NewKeyBody {
    /// The tenant of the key. Default: the caller's own tenant. A different tenant needs the scope `admin:all`.
    #[schema(value_type = Option<Id>)]
    tenant: Option<String>,
    /// Owner of the conversations that the key sees. Default: the owner of the caller's credential.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
    )]
    owner: Option<String>,
    /// Scopes of the key, among the caller's own scopes. Default: `read` and `write`.
    #[schema(schema_with = scopes)]
    #[serde(default = "default_scopes")]
    scopes: Vec<String>,
    /// Purpose of the key.
    #[schema(
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
        example = "night jobs"
    )]
    #[serde(default)]
    name: String,
    /// Lifetime of the key in seconds; a lifetime beyond the end of the caller's own credential is refused. Default:
    /// `key_lifetime` of `[auth]`, or else valid until a revocation, but at most until the end of the caller's
    /// credential.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_294_967_295_u64)]
    #[serde(default, deserialize_with = "lifetime")]
    lifetime_s: Option<NonZeroU32>,
}

/// Reads a lifetime. In JSON Schema, `60.0` is a whole number, too.
fn lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU32>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let fraction = || number.as_f64().filter(|number| number.fract() == 0.0);
    let whole = number
        .as_u64()
        .or_else(|| format!("{:.0}", fraction()?).parse().ok());
    let seconds = whole.and_then(|number| NonZeroU32::new(u32::try_from(number).ok()?));
    seconds
        .map(Some)
        .ok_or_else(|| D::Error::custom("lifetime_s must be a whole number from 1 to 4294967295"))
}

fn scopes() -> Array {
    Array::new(one_of(&Scope::ALL.map(Scope::as_str)))
}

fn default_scopes() -> Vec<String> {
    [Scope::Read, Scope::Write]
        .map(|scope| scope.as_str().to_owned())
        .into()
}

/// A created key, with its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = CreatedKey)]
pub(in crate::http::routes) struct CreatedKeyBody {
    #[schema(value_type = Id)]
    id: String,
    /// The secret key. Only the creation's response contains the secret, because the gateway stores a hash.
    #[schema(example = "evk_3f9c2b7a51d06e84_AAAA")]
    key: String,
    tenant: String,
    #[schema(required = true)]
    owner: Option<String>,
    scopes: Vec<&'static str>,
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
}

problems!(CreateRefusals: InvalidBody, InvalidParameter, BodyTooLarge);

/// Creates an API key.
///
/// Needs the scope `admin`. The key cannot exceed the caller's own credential in tenant, owner, scopes or lifetime.
/// Repeating the request creates another key.
#[utoipa::path(
    post, path = "/admin/keys", tag = "admin", operation_id = "create_key", request_body = NewKeyBody,
    responses((status = 201, body = CreatedKeyBody, description = "Created"), CreateRefusals)
)]
pub(in crate::http::routes) async fn create(
    State(state): State<GatewayState>,
    caller: Caller,
    JsonBody(body): JsonBody<NewKeyBody>,
) -> Result<Response, AdminRefusal> {
    let scopes = checked_scopes(&caller, &body.scopes)?;
    let own_tenant = || Some(caller.access.tenant_id.clone());
    let tenant = match Seen::by(&caller, body.tenant.or_else(own_tenant))? {
        Seen::Tenant(tenant) => tenant,
        Seen::All => caller.access.tenant_id.clone(),
    };
    let access = Access {
        tenant_id: tenant,
        owner_id: checked_owner(&caller, body.owner)?,
    };
    check_text("name", &body.name)?;
    let default = state.config.auth.key_lifetime;
    let asked = body
        .lifetime_s
        .map(|seconds| TimeDelta::seconds(seconds.get().into()));
    let expires_at = end(
        &caller,
        asked,
        default.and_then(|it| TimeDelta::from_std(it).ok()),
    )?;
    let secret = Secret::generate(KeyKind::Key).map_err(|error| {
        tracing::error!(%error, "the system gives no random bytes");
        Problem::internal()
    })?;
    let target = (AuditTargetKind::Key, secret.id());
    let mut entry = state.audit.entry(&caller, AuditAction::KeyCreated, target);
    entry.tenant_id = Some(access.tenant_id.clone());
    let entry = entry
        .with("scopes", scopes.to_string())
        .with("owner", access.owner_id.clone())
        .with("name", body.name.as_str())
        .with("expires_at", expires_at.map(time));
    let created = CreatedKeyBody {
        id: secret.id().to_owned(),
        key: secret.reveal(),
        tenant: access.tenant_id.clone(),
        owner: access.owner_id.clone(),
        scopes: scopes.words().collect(),
        expires_at: expires_at.map(time),
    };
    let new = NewKey {
        id: secret.id().to_owned(),
        kind: KeyKind::Key,
        parent_id: None,
        secret_hash: secret.hash(),
        access,
        scopes: scopes.to_string(),
        name: body.name,
        made_by: caller.maker(),
        expires_at,
        signed_in_at: None,
    };
    state.ports.keys.create_key(new, Some(&entry)).await?;
    let mut response = (StatusCode::CREATED, Json(created)).into_response();
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    Ok(response)
}

fn checked_scopes(caller: &Caller, words: &[String]) -> Result<Scopes, AdminRefusal> {
    let known = |word: &String| {
        Scope::of(word).ok_or_else(|| {
            let detail = format!("A scope is unknown. The scopes are: {}.", Scopes::all());
            Problem::new(Code::InvalidBody, detail)
        })
    };
    let scopes: Scopes = words.iter().map(known).collect::<Result<_, _>>()?;
    match scopes.beyond(caller.scopes) {
        Some(scope) => Err(AuthRefusal::Scope(scope).into()),
        None => Ok(scopes),
    }
}

/// Returns the new key's owner. A credential with an owner creates keys of the credential's owner only.
fn checked_owner(caller: &Caller, asked: Option<String>) -> Result<Option<String>, Problem> {
    if let Some(owner) = &asked {
        check_owner(owner)?;
    }
    let own = &caller.access.owner_id;
    match (own, asked) {
        (Some(own), Some(asked)) if *own != asked => Err(Problem::new(
            Code::InsufficientScope,
            "Your credential belongs to one owner. Create keys of your own owner only.",
        )),
        (own, asked) => Ok(asked.or_else(|| own.clone())),
    }
}

/// Checks the name of an owner.
pub(super) fn check_owner(owner: &str) -> Result<(), Problem> {
    if owner.is_empty() {
        let detail = "`owner` must not be empty.";
        return Err(Problem::new(Code::InvalidBody, detail));
    }
    check_text("owner", owner)
}

fn check_text(name: &str, text: &str) -> Result<(), Problem> {
    if text.len() <= MAX_NAME_BYTES && !text.contains(char::is_control) {
        return Ok(());
    }
    let detail =
        format!("`{name}` may have at most {MAX_NAME_BYTES} bytes and no control characters.");
    Err(Problem::new(Code::InvalidBody, detail))
}

/// Returns the new key's end. A requested end after the end of the caller's credential is refused, and the default end
/// is cut to the end of the credential.
fn end(
    caller: &Caller,
    asked: Option<TimeDelta>,
    default: Option<TimeDelta>,
) -> Result<Option<DateTime<Utc>>, Problem> {
    let after = |lifetime: TimeDelta| Utc::now().checked_add_signed(lifetime);
    match (asked, caller.expires_at) {
        (Some(lifetime), Some(own)) if after(lifetime).is_none_or(|end| end > own) => {
            let detail = format!(
                "The key would outlive your credential. The credential ends at {}. Send a shorter `lifetime_s`.",
                time(own)
            );
            Err(Problem::new(Code::InvalidBody, detail))
        }
        (Some(lifetime), _) => Ok(after(lifetime)),
        (None, own) => {
            let default = default.and_then(after);
            Ok(match (default, own) {
                (Some(default), Some(own)) => Some(default.min(own)),
                (default, own) => default.or(own),
            })
        }
    }
}

/// Maximum keys that a request revokes, because one transaction revokes the keys.
const MAX_REVOKED: u32 = 1000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::routes) struct RevokeParams {
    /// True: also revoke the keys that the key made, directly or through other keys, at most 1000 keys in a request.
    #[serde(default)]
    made: bool,
}

/// The revoked keys.
#[derive(Serialize, ToSchema)]
#[schema(as = RevokedKeys)]
pub(in crate::http::routes) struct RevokedBody {
    /// The keys that the request revoked, ordered by id. Keys that were revoked before are left out.
    #[schema(value_type = Vec<Id>)]
    revoked: Vec<String>,
    /// True: more keys may be left. Repeat the request.
    has_more: bool,
}

problems!(RevokeRefusals: InvalidId, InvalidParameter, KeyNotFound);

/// Revokes an API key, and ends the key's sessions.
///
/// Needs the scope `admin`. Other gateways refuse the key within seconds (`key_cache` of `[auth]`). Repeating the
/// request is safe. With `made=true`, the request also revokes the keys that the key made.
#[utoipa::path(
    delete, path = "/admin/keys/{key_id}", tag = "admin", operation_id = "revoke_key",
    params(("key_id" = Id, Path, description = "The key."), RevokeParams),
    responses((status = 200, body = RevokedBody, description = "Revoked"), RevokeRefusals)
)]
pub(in crate::http::routes) async fn revoke(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<RevokeParams>,
) -> Result<Json<RevokedBody>, AdminRefusal> {
    let id = checked_id("key id", id)?;
    let not_found = || Problem::new(Code::KeyNotFound, format!("No key has the id `{id}`."));
    let store = &state.ports.keys;
    let seen = Seen::by(&caller, None)?;
    let is_seen = |key: &ApiKey| {
        let of_tenant = seen.tenant().is_none_or(|own| key.access.tenant_id == own);
        key.kind == KeyKind::Key && of_tenant
    };
    let found = store.find_key(&id).await?.filter(is_seen);
    let key = found.ok_or_else(not_found)?;
    // The keys that a key made have no more rights than the key, so the check of the key covers the made keys.
    let reach = Scopes::parse(&key.scopes).reach();
    if !caller.scopes.reach().covers(reach) {
        return Err(AuthRefusal::Scope(Scope::AdminAll).into());
    }
    let target = (AuditTargetKind::Key, id.as_str());
    let mut entry = state.audit.entry(&caller, AuditAction::KeyRevoked, target);
    entry.tenant_id = Some(key.access.tenant_id.clone());
    let revoked = if params.made {
        let entry = entry.with("with_keys_made_by", id.as_str());
        store.revoke_made_keys(&id, MAX_REVOKED, &entry).await?
    } else if !store.revoke_key(&id, Some(&entry)).await? {
        return Err(not_found().into());
    } else if key.revoked_at.is_none() {
        vec![id.clone()]
    } else {
        Vec::new()
    };
    for id in &revoked {
        state.auth.forget_key(id);
    }
    Ok(Json(RevokedBody {
        has_more: params.made && revoked.len() >= MAX_REVOKED as usize,
        revoked,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lifetime_is_a_whole_number_of_seconds() {
        let read = |value| {
            let body = serde_json::from_value::<NewKeyBody>(json!({"lifetime_s": value}));
            body.map(|body| body.lifetime_s.map(NonZeroU32::get))
        };
        assert_eq!(read(json!(60)).unwrap(), Some(60));
        assert_eq!(read(json!(60.0)).unwrap(), Some(60));
        assert_eq!(read(json!(null)).unwrap(), None);
        for wrong in [
            json!(0),
            json!(1.5),
            json!(-1),
            json!(4_294_967_296_u64),
            json!("60"),
        ] {
            assert!(read(wrong).is_err());
        }
    }
}
