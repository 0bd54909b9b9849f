//! The endpoints. To add one: a handler with its annotation in a file here, a line in [`endpoints`], a test in
//! `tests/`, a row in `docs/api.md`, a section in `docs/api/`, and `make openapi`.

mod admin;
mod agents;
mod answers;
mod approval_list;
mod approvals;
mod attachments;
mod blobs;
mod call_content;
mod call_tries;
mod calls;
mod cancel;
mod chat;
mod client_tool_claims;
mod client_tools;
mod codec;
mod consent_callback;
mod conversation_list;
mod conversations;
mod docs;
mod events;
mod execution_records;
mod executions;
mod health;
mod home;
mod idempotency;
mod mcp;
mod messages;
mod metadata;
mod model_choice;
mod outcomes;
mod page;
mod questions;
mod remote_tools;
mod resume;
mod retry;
mod session;
mod status;
mod stored_results;
mod timeline;
mod tool_results;
mod tool_servers;
mod usage;
mod waiting_calls;
mod wire;

pub use health::ready;

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, MatchedPath, Request, State},
    http::{Method, StatusCode},
    middleware::{self, Next},
    response::Response,
};
use everturn_telemetry::{
    gateway as telemetry,
    trace::{Received, RequestSpan, TRACE_PARENT, TRACE_STATE},
};
use tower_http::{
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
    trace::TraceLayer,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::http::{
    auth,
    extract::Caller,
    openapi,
    problem::{self, Problem},
    state::GatewayState,
};

/// Returns the OpenAPI document of every endpoint, built from the handlers' annotations.
pub fn openapi_document() -> String {
    let document = OpenApiRouter::with_openapi(openapi::common()).nest("/api/v1", api());
    openapi::text(document.merge(public()).into_openapi())
}

/// The endpoints behind authentication, which every router of the process shares. Their annotations take longer to build
/// than their routes.
static API: LazyLock<Router<GatewayState>> = LazyLock::new(|| api().into());

/// The public endpoints, which every router of the process shares.
static PUBLIC: LazyLock<Router<GatewayState>> = LazyLock::new(|| public().into());

/// Returns the endpoints behind authentication.
fn api() -> OpenApiRouter<GatewayState> {
    // Approving a tool call, finding calls to approve, and settling the outcome of a call need the scope `approve`: a person
    // answers for the effect of a tool, and the model believes the person. The scope `write` does not include `approve`, nor the
    // reverse.
    let approving = OpenApiRouter::default()
        .routes(routes!(approvals::resolve))
        .routes(routes!(approval_list::inbox))
        .routes(routes!(outcomes::settle))
        .route_layer(middleware::from_fn(auth::check_approve));
    // Reading the content of an LLM call needs `calls` beside `read`.
    let calls = OpenApiRouter::default()
        .routes(routes!(calls::show))
        .route_layer(middleware::from_fn(auth::check_calls))
        .route_layer(middleware::from_fn(auth::check_scope));
    let agent = OpenApiRouter::default()
        .routes(routes!(agents::list))
        .routes(routes!(conversations::create, conversation_list::list))
        .routes(routes!(conversation_list::stream))
        .routes(routes!(
            conversations::show,
            conversations::change,
            conversations::delete
        ))
        .routes(routes!(messages::accept, timeline::show))
        .routes(routes!(events::page))
        .routes(routes!(events::stream))
        .routes(routes!(status::show))
        .routes(routes!(executions::list))
        .routes(routes!(executions::show))
        .routes(routes!(calls::list))
        .routes(routes!(cancel::cancel))
        .routes(routes!(resume::resume))
        .routes(routes!(retry::retry))
        .routes(routes!(approval_list::list))
        .routes(routes!(client_tools::list))
        .routes(routes!(client_tools::accept))
        .routes(routes!(client_tool_claims::claim))
        .routes(routes!(remote_tools::accept))
        .routes(routes!(tool_results::read))
        .routes(routes!(blobs::upload))
        .routes(routes!(blobs::read))
        .routes(routes!(chat::chat))
        .route_layer(middleware::from_fn(auth::check_scope))
        .merge(approving)
        .merge(calls);
    let of_tenant = OpenApiRouter::default()
        .routes(routes!(usage::list))
        .routes(routes!(tool_servers::list))
        .routes(routes!(tool_servers::begin, tool_servers::end))
        .route_layer(middleware::from_fn(auth::check_scope));
    let codec = OpenApiRouter::default()
        .routes(routes!(codec::decode))
        .routes(routes!(codec::encode))
        .route_layer(middleware::from_fn(auth::check_codec))
        .layer(DefaultBodyLimit::max(codec::MAX_BODY_BYTES));
    OpenApiRouter::default()
        .nest("/agent", agent)
        .nest("/codec", codec)
        .merge(of_tenant)
        .merge(admin())
        .routes(routes!(session::show, session::open, session::end))
}

/// Returns the endpoints of operators.
fn admin() -> OpenApiRouter<GatewayState> {
    OpenApiRouter::default()
        .routes(routes!(admin::audit::read))
        .routes(routes!(admin::keys::list, admin::keys::create))
        .routes(routes!(admin::keys::revoke))
        .routes(routes!(admin::failures::list))
        .routes(routes!(admin::failures::count))
        .routes(routes!(admin::owners::list, admin::owners::change))
        .routes(routes!(admin::tenants::list))
        .routes(routes!(admin::usage::list))
        .route_layer(middleware::from_fn(auth::check_admin))
}

/// Returns the endpoints without authentication.
fn public() -> OpenApiRouter<GatewayState> {
    OpenApiRouter::default()
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(page::index))
        .routes(routes!(page::file))
        .routes(routes!(home::home))
        .routes(routes!(consent_callback::ask, consent_callback::finish))
        .routes(routes!(docs::document))
        .routes(routes!(docs::error_page))
}

/// Returns the router of every endpoint, with authentication, request ids, tracing and problems.
pub fn router(state: GatewayState) -> Router {
    let body_limit = state.config.max_body_bytes();
    let api = API
        .clone()
        .route_layer(middleware::from_fn_with_state(state.clone(), within_limits))
        .route_layer(middleware::from_fn_with_state(
            Arc::clone(&state.auth),
            auth::authenticate,
        ));
    let router = Router::new()
        .nest("/api/v1", api)
        .merge(PUBLIC.clone())
        .merge(docs::browser())
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(Extension(docs::Document(openapi_document)))
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(middleware::from_fn(problem::finish))
        .merge(
            mcp::router()
                .route_layer(middleware::from_fn_with_state(state.clone(), within_limits))
                .route_layer(middleware::from_fn_with_state(
                    Arc::clone(&state.auth),
                    auth::authenticate,
                ))
                .layer(DefaultBodyLimit::max(body_limit))
                .layer(middleware::from_fn(problem::finish_rpc)),
        );
    let router = match auth::cors(&state.config.auth) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(middleware::from_fn(measured))
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .with_state(state)
}

/// Middleware: checks the limits of the caller's tenant, reserves memory for a large request body, counts the memory of
/// the response, and encrypts Temporal payloads for the tenant. Runs after `authenticate`, which finds the caller.
/// Health checks have no tenant and skip the middleware.
async fn within_limits(
    State(state): State<GatewayState>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    state.limits.check(&caller.access)?;
    let bytes = state.bytes_of_body(&request);
    let _room = match bytes {
        Some(bytes) => Some(state.room(&caller, bytes).await?),
        None => None,
    };
    // Payloads sent to Temporal are encrypted for the caller's tenant.
    let tenant_id = &caller.access.tenant_id;
    let response = everturn_codec::tenant::within(tenant_id, next.run(request)).await;
    Ok(state.counted(&caller, response))
}

/// Middleware: counts a request by its endpoint and opens the request's trace span. Unknown paths share the label
/// `none` and unknown methods the label `other`, because clients can invent any number of paths and methods.
async fn measured(path: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let mut answered = Answered {
        begun: Instant::now(),
        method: match *request.method() {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        },
        path,
        status: None,
    };
    let path = answered.path.as_ref();
    let response = match span_in_trace(&request, answered.method, path) {
        Some(span) => {
            let response = span.around(next.run(request)).await;
            span.answered(response.status().as_u16());
            response
        }
        None => next.run(request).await,
    };
    answered.status = Some(response.status());
    response
}

/// Begins the span of a request, in the trace named by the request's headers.
fn span_in_trace(
    request: &Request,
    method: &'static str,
    path: Option<&MatchedPath>,
) -> Option<RequestSpan> {
    let header = |name: &str| request.headers().get(name)?.to_str().ok();
    let received = Received {
        parent: header(TRACE_PARENT),
        state: header(TRACE_STATE),
    };
    RequestSpan::begin(method, path.map(MatchedPath::as_str), received)
}

/// Status for a client that disconnects before the response; proxies log the status, too.
const CLIENT_GONE: &str = "499";

/// A request. Its drop counts the request: after the response, or when the client disconnects.
struct Answered {
    begun: Instant,
    method: &'static str,
    path: Option<MatchedPath>,
    /// `None` until the response.
    status: Option<StatusCode>,
}

impl Drop for Answered {
    fn drop(&mut self) {
        let path = self.path.as_ref().map_or("none", MatchedPath::as_str);
        let status = self.status.as_ref().map_or(CLIENT_GONE, StatusCode::as_str);
        telemetry::answered(self.method, path, status, self.begun.elapsed());
    }
}

fn span(request: &Request) -> tracing::Span {
    let request_id = request
        .headers()
        .get(problem::REQUEST_ID)
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default();
    tracing::info_span!("request", method = %request.method(), path = request.uri().path(), request_id)
}
