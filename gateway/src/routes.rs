//! The endpoints. To add one: a handler with its annotation in a file here, a line in [`endpoints`], a test in `tests/`,
//! a section in `docs/api.md`, and `make openapi`.

mod cancel;
mod chat;
mod conversations;
mod docs;
mod events;
mod health;
mod messages;
mod status;
mod timeline;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    http::StatusCode,
    middleware,
};
use tower_http::{
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
    trace::TraceLayer,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{openapi, problem, state::GatewayState};

/// Every endpoint, with its description.
pub(crate) fn endpoints() -> OpenApiRouter<GatewayState> {
    let agent = OpenApiRouter::default()
        .routes(routes!(conversations::create, conversations::list))
        .routes(routes!(conversations::show))
        .routes(routes!(messages::accept, timeline::show))
        .routes(routes!(events::page))
        .routes(routes!(events::stream))
        .routes(routes!(status::show))
        .routes(routes!(cancel::cancel))
        .routes(routes!(chat::chat));
    OpenApiRouter::with_openapi(openapi::common())
        .nest("/api/v1/agent", agent)
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(docs::document))
        .routes(routes!(docs::error_page))
}

/// Every endpoint, with request ids, tracing and problems.
pub fn router(state: GatewayState) -> Router {
    let body_limit = state.config.max_body_bytes();
    let (endpoints, _document) = endpoints().split_for_parts();
    endpoints
        .merge(docs::browser())
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
