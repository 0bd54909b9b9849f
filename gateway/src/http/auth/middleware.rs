//! What runs before the handlers: it finds out who is asking, and whether they may.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{authenticator::Authenticator, caller::Caller};
use crate::{config::Scope, connections::client::Peer};

/// Middleware of every route but health: tells who is asking, or refuses.
pub(crate) async fn authenticate(
    State(authenticator): State<Arc<Authenticator>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let caller = authenticator
        .caller(request.method(), request.headers(), peer)
        .await;
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Middleware of the agent's routes, behind [`authenticate`]: reading needs `read`, everything else `write`.
pub(crate) async fn check_scope(caller: Caller, request: Request, next: Next) -> Response {
    let scope = if request.method().is_safe() {
        Scope::Read
    } else {
        Scope::Write
    };
    run_with(scope, &caller, request, next).await
}

/// Middleware of the route that answers approvals, behind [`authenticate`].
pub(crate) async fn check_approve(caller: Caller, request: Request, next: Next) -> Response {
    run_with(Scope::Approve, &caller, request, next).await
}

async fn run_with(scope: Scope, caller: &Caller, request: Request, next: Next) -> Response {
    match caller.require(scope) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}
