//! Who one is, and sessions for browsers, which cannot keep a key where scripts do not see it.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::SecondsFormat;
use serde::Serialize;

use crate::{
    auth::{self, Caller, Credential, Refusal},
    state::GatewayState,
};

#[derive(Serialize)]
pub(super) struct Shown {
    /// `key`, `session`, `token` or `none`.
    credential: &'static str,
    tenant: String,
    /// `null`: every owner's of the tenant.
    owner: Option<String>,
    scopes: Vec<&'static str>,
    /// `null`: not by time.
    expires_at: Option<String>,
}

/// `GET /auth/session`: who the caller is, whatever their credential.
pub(super) async fn show(caller: Caller) -> Response {
    let shown = Shown {
        credential: match caller.credential {
            Credential::Anonymous => "none",
            Credential::Key(_) => "key",
            Credential::Session(_) => "session",
            Credential::Token => "token",
        },
        tenant: caller.access.tenant_id,
        owner: caller.access.owner_id,
        scopes: caller.scopes.words().collect(),
        expires_at: caller.expires_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true)),
    };
    private(Json(shown).into_response())
}

/// `POST /auth/session`: a cookie with the rights of the bearer.
pub(super) async fn open(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let opened = state.auth.open_session(&caller).await?;
    Ok(with_cookie(auth::keep_session(&headers, &opened.session, opened.lifetime)))
}

/// `DELETE /auth/session`: ends the session, and has the browser forget it.
pub(super) async fn end(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    state.auth.end_session(&caller).await?;
    Ok(with_cookie(auth::forget_session(&headers)))
}

fn with_cookie(cookie: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    private(response)
}

/// For this caller only.
fn private(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
