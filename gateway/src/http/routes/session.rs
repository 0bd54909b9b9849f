//! Who one is, and sessions for browsers, which cannot keep a key where scripts do not see it.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::schema::{Array, Object},
};

use super::wire::time;
use crate::{
    config::Scope,
    http::{
        auth::{AuthRefusal, Caller, Credential},
        openapi::problems,
        state::GatewayState,
    },
    schema::one_of,
};

/// Who the caller is.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionBody {
    /// How they proved it.
    #[schema(schema_with = credentials)]
    credential: &'static str,
    tenant: String,
    /// Null: they see every owner's conversations of the tenant.
    #[schema(required = true)]
    owner: Option<String>,
    /// What they may do.
    #[schema(schema_with = scopes)]
    scopes: Vec<&'static str>,
    /// When their credential ends; null: not by time.
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
}

fn credentials() -> Object {
    one_of(&["key", "session", "token", "none"])
}

fn scopes() -> Array {
    Array::new(one_of(&Scope::ALL.map(Scope::as_str)))
}

problems!(only ShowRefusals: Unauthenticated, HostNotAllowed, RateLimited, Internal, IssuerUnavailable, StoreUnavailable);
problems!(
    only ChangeRefusals: Unauthenticated, OriginNotAllowed, HostNotAllowed, RateLimited, TooMuchAtOnce, Internal, IssuerUnavailable, StoreUnavailable
);

/// Shows who the caller is, whatever their credential and scopes.
#[utoipa::path(
    get, path = "/auth/session", tag = "auth", operation_id = "show_session",
    responses((status = 200, body = SessionBody, description = "The caller"), ShowRefusals)
)]
pub(super) async fn show(caller: Caller) -> Response {
    let shown = SessionBody {
        credential: match caller.credential {
            Credential::Anonymous => "none",
            Credential::Key(_) => "key",
            Credential::Session(_) => "session",
            Credential::Token => "token",
        },
        tenant: caller.access.tenant_id,
        owner: caller.access.owner_id,
        scopes: caller.scopes.words().collect(),
        expires_at: caller.expires_at.map(time),
    };
    private(Json(shown).into_response())
}

/// Opens a session for a browser: a cookie with the rights of the bearer.
///
/// Only a key or a token opens one, whatever the gateway requires.
#[utoipa::path(
    post, path = "/auth/session", tag = "auth", operation_id = "open_session", security(("bearer" = [])),
    responses(
        (status = 204, description = "Open", headers(("set-cookie" = String, description = "The session"))),
        ChangeRefusals
    )
)]
pub(super) async fn open(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, AuthRefusal> {
    let opened = state.auth.open_session(&caller).await?;
    Ok(with_cookie(state.auth.keep(&headers, &opened)))
}

/// Ends the session, and has the browser forget it.
///
/// A key or a token does not end.
#[utoipa::path(
    delete, path = "/auth/session", tag = "auth", operation_id = "end_session",
    responses(
        (status = 204, description = "Ended", headers(("set-cookie" = String, description = "Forgets the session"))),
        ChangeRefusals
    )
)]
pub(super) async fn end(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, AuthRefusal> {
    state.auth.end_session(&caller).await?;
    Ok(with_cookie(state.auth.forget(&headers)))
}

fn with_cookie(cookie: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    private(response)
}

/// Marks a response that is for this caller only, so that no cache keeps it.
fn private(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
