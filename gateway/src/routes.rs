//! The endpoints. To add one: a file here, a line in [`router`], a test in `tests/`.

mod approvals;
mod cancel;
mod chat;
mod client_tools;
mod conversations;
mod events;
mod executions;
mod health;
mod messages;
mod resume;
mod session;
mod status;
mod timeline;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};
use tower_http::{
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
    trace::TraceLayer,
};

use crate::{
    auth,
    extract::Caller,
    problem::{self, Problem},
    state::GatewayState,
};

/// Every endpoint, with callers, request ids, tracing and problems.
pub fn router(state: GatewayState) -> Router {
    let body_limit = state.config.max_body_bytes();
    // Allowing a tool is a right of its own, with or without that to write.
    let approving = Router::new()
        .route("/conversations/{id}/approvals/{execution_id}", post(approvals::resolve))
        .route_layer(middleware::from_fn(auth::check_approve));
    let agent = Router::new()
        .route("/conversations", post(conversations::create).get(conversations::list))
        .route(
            "/conversations/{id}",
            get(conversations::show).patch(conversations::rename).delete(conversations::delete),
        )
        .route("/conversations/{id}/messages", post(messages::accept).get(timeline::show))
        .route("/conversations/{id}/events", get(events::page))
        .route("/conversations/{id}/events/stream", get(events::stream))
        .route("/conversations/{id}/execution-status", get(status::show))
        .route("/conversations/{id}/executions", get(executions::list))
        .route("/conversations/{id}/executions/{execution_id}", get(executions::show))
        .route("/conversations/{id}/cancel", post(cancel::cancel))
        .route("/conversations/{id}/resume", post(resume::resume))
        .route("/conversations/{id}/approvals", get(approvals::list))
        .route("/conversations/{id}/client-tools", get(client_tools::list))
        .route("/conversations/{id}/client-tools/{execution_id}", post(client_tools::accept))
        .route("/chat", post(chat::chat))
        .route_layer(middleware::from_fn(auth::check_scope))
        .merge(approving);
    let session = get(session::show).post(session::open).delete(session::end);
    let api = Router::new()
        .nest("/agent", agent)
        .route("/auth/session", session)
        .route_layer(middleware::from_fn_with_state(state.clone(), within_limits))
        .route_layer(middleware::from_fn_with_state(state.clone(), auth::authenticate));
    let router = Router::new()
        .nest("/api/v1", api)
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(middleware::from_fn(problem::finish));
    let router = match auth::origin::cors(&state.config.auth) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .with_state(state)
}

/// Middleware: counts each request to its tenant, once it is known who asks: it lies inside of what authenticates.
/// Health is asked by no tenant.
async fn within_limits(
    State(state): State<GatewayState>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    state.limits.check(&caller.access)?;
    Ok(next.run(request).await)
}

fn span(request: &Request) -> tracing::Span {
    let request_id = request.headers().get(problem::REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    tracing::info_span!("request", method = %request.method(), path = request.uri().path(), request_id)
}
