//! The endpoints. To add one: a file here, a line in [`router`], a test in `tests/`.

mod cancel;
mod chat;
mod conversations;
mod events;
mod executions;
mod health;
mod messages;
mod resume;
mod status;
mod timeline;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    http::StatusCode,
    middleware,
    routing::{get, post},
};
use tower_http::{
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
    trace::TraceLayer,
};

use crate::{problem, state::GatewayState};

/// Every endpoint, with request ids, tracing and problems.
pub fn router(state: GatewayState) -> Router {
    let body_limit = state.config.max_body_bytes();
    let agent = Router::new()
        .route("/conversations", post(conversations::create).get(conversations::list))
        .route("/conversations/{id}", get(conversations::show))
        .route("/conversations/{id}/messages", post(messages::accept).get(timeline::show))
        .route("/conversations/{id}/events", get(events::page))
        .route("/conversations/{id}/events/stream", get(events::stream))
        .route("/conversations/{id}/execution-status", get(status::show))
        .route("/conversations/{id}/executions", get(executions::list))
        .route("/conversations/{id}/executions/{execution_id}", get(executions::show))
        .route("/conversations/{id}/cancel", post(cancel::cancel))
        .route("/conversations/{id}/resume", post(resume::resume))
        .route("/chat", post(chat::chat));
    Router::new()
        .nest("/api/v1/agent", agent)
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(middleware::from_fn(problem::finish))
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .with_state(state)
}

fn span(request: &Request) -> tracing::Span {
    let request_id = request.headers().get(problem::REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    tracing::info_span!("request", method = %request.method(), path = request.uri().path(), request_id)
}
