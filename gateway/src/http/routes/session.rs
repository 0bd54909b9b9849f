//! The caller's identity, and sessions for browsers. A browser cannot hide a key from a page's scripts, but a script
//! cannot read the session's cookie.

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

/// The caller's identity and rights.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionBody {
    /// Kind of the caller's credential.
    #[schema(schema_with = credentials)]
    credential: &'static str,
    tenant: String,
    /// Owner of the visible conversations; null: the caller sees every owner's conversations of the tenant.
    #[schema(required = true)]
    owner: Option<String>,
    /// The caller's rights.
    #[schema(schema_with = scopes)]
    scopes: Vec<&'static str>,
    /// End of the credential; null when the credential has no end.
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

/// Shows the caller's identity and rights, with any credential and any scopes.
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

/// Opens a session for a browser: a cookie with the rights of the key or token.
///
/// Only a key or a token opens a session, even on a gateway that requires no credential.
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

/// Ends the session and removes the browser's cookie.
///
/// A key or a token stays valid.
#[utoipa::path(
    delete, path = "/auth/session", tag = "auth", operation_id = "end_session",
    responses(
        (status = 204, description = "Ended", headers(("set-cookie" = String, description = "Removes the session's cookie"))),
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

/// Marks a caller's private response with `no-store`, so that no cache keeps the response.
fn private(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
