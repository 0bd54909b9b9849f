//! Middleware before the handlers: finds the caller of a request and checks the caller's scopes.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{authenticator::Authenticator, caller::Caller};
use crate::{
    config::Scope,
    connections::client::Peer,
    http::problem::{Code, Problem},
};

/// Middleware of every route but health: adds the caller to the request, or refuses the request.
pub(crate) async fn authenticate(
    State(authenticator): State<Arc<Authenticator>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let source = authenticator.source(request.headers(), peer);
    let caller = authenticator
        .caller(request.method(), request.headers(), source.clone())
        .await;
    let endpoint = endpoint(&request);
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let response = next.run(request).await;
            let problem = response.extensions().get::<Problem>();
            if problem.is_some_and(|problem| problem.code() == Code::InsufficientScope) {
                let scopes = caller.scopes.to_string();
                let refusals = authenticator.refusals();
                refusals.of_scope(&caller, &scopes, &endpoint);
            }
            response
        }
        Err(refusal) => {
            // A request without a credential is not noted, because every visit of a browser begins with one.
            if let Some(reason) = refusal.reason() {
                let claimed = authenticator.claimed(request.headers());
                let (ended, claimed) = (refusal.ended_key(), claimed.as_deref());
                let refusals = authenticator.refusals();
                refusals.of_credential(reason, ended, claimed, &source, &endpoint);
            }
            refusal.into_response()
        }
    }
}

/// Returns the method and the path of an endpoint, without ids.
fn endpoint(request: &Request) -> String {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str);
    format!("{} {path}", request.method())
}

/// Middleware of the agent's routes, behind [`authenticate`]. Safe methods need `read`, every other method `write`.
pub(crate) async fn check_scope(caller: Caller, request: Request, next: Next) -> Response {
    let scope = if request.method().is_safe() {
        Scope::Read
    } else {
        Scope::Write
    };
    run_with(scope, &caller, request, next).await
}

/// Middleware of the routes of admins, behind [`authenticate`].
pub(crate) async fn check_admin(caller: Caller, request: Request, next: Next) -> Response {
    run_with(Scope::Admin, &caller, request, next).await
}

/// Middleware of the route that answers approvals, behind [`authenticate`].
pub(crate) async fn check_approve(caller: Caller, request: Request, next: Next) -> Response {
    run_with(Scope::Approve, &caller, request, next).await
}

/// Middleware of the route that reads the content of LLM calls, behind [`authenticate`].
pub(crate) async fn check_calls(caller: Caller, request: Request, next: Next) -> Response {
    run_with(Scope::Calls, &caller, request, next).await
}

/// Middleware of the codec server, behind [`authenticate`].
pub(crate) async fn check_codec(caller: Caller, request: Request, next: Next) -> Response {
    run_with(Scope::Codec, &caller, request, next).await
}

async fn run_with(scope: Scope, caller: &Caller, request: Request, next: Next) -> Response {
    match caller.require(scope) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}
