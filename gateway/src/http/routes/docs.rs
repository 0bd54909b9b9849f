//! The gateway's own documentation: the OpenAPI document, a page to browse the document, and the pages of the error
//! codes. The binary contains every file; the pages fetch no files from elsewhere.

use std::sync::OnceLock;

use axum::{
    Extension, Router,
    body::Bytes,
    extract::Path,
    http::{HeaderValue, header},
    middleware,
    response::{IntoResponse, Response},
};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::http::{
    openapi::problems,
    problem::{Code, Problem},
    state::GatewayState,
};

/// Path of the OpenAPI document.
const DOCUMENT: &str = "/api/v1/openapi.json";

/// The policy of the browser page allows its own scripts and requests to the gateway. Style attributes are allowed,
/// because Swagger UI writes them.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! pages {
    ($($code:literal)+) => {
        /// The pages of `docs/errors` by their codes; a test compares them with the directory.
        const PAGES: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("../../../../docs/errors/", $code, ".md")))),+];
    };
}

pages! {
    "agent_execution_not_found" "approval_answered" "approval_expired" "approval_mismatch" "approval_needs_other" "approval_not_remembered" "bad_request"
    "blob_not_found" "blob_too_large" "blob_type_refused" "blobs_unavailable" "body_too_large" "budget_exhausted" "call_not_found" "client_tool_answered" "client_tool_claimed" "client_tool_expired" "conflict" "consent_needs_person" "consent_of_other" "consent_refused" "consent_state_refused" "consent_unavailable" "conversation_id_taken"
    "conversation_not_found" "execution_not_found" "host_not_allowed" "idempotency_conflict" "insufficient_scope" "internal"
    "invalid_body" "invalid_id" "invalid_input" "invalid_message" "invalid_parameter" "issuer_unavailable" "key_not_found"
    "llm_bad_request" "llm_content_policy" "llm_context_too_long" "llm_empty_reply" "llm_invalid_response" "llm_not_found" "llm_output_invalid" "llm_overloaded"
    "llm_quota_exceeded" "llm_rate_limited" "llm_reply_cut" "llm_stream_cut" "llm_timeout" "llm_unauthorized" "llm_unavailable" "mcp_address_refused" "mcp_authorization_unavailable"
    "mcp_client_refused" "mcp_consent_needed" "mcp_grant_refused" "mcp_metadata_refused" "mcp_scope_missing" "mcp_secret_unreadable" "mcp_token_refused" "message_too_long" "method_not_allowed" "model_not_configured"
    "no_checkpoint" "not_found" "not_here" "not_retryable" "origin_not_allowed" "outcome_known" "outcome_settled" "owner_refused" "queue_full" "range_not_satisfiable" "rate_limited" "repeated_key" "request_timeout" "result_too_large" "run_replaced" "shutting_down"
    "step_limit" "store_behind" "store_unavailable" "sub_agent_lost" "temporal_unavailable" "too_many_attachments"
    "too_many_blobs" "too_many_refused_owners" "too_many_streams" "too_many_streams_of_owner" "too_many_streams_of_tenant" "too_many_turns" "too_much_at_once" "tool_server_not_found" "tool_unavailable" "turn_complete" "turn_lost" "turn_not_running"
    "turn_not_started" "turn_running" "turn_timeout" "turn_unavailable" "unauthenticated" "unknown_agent" "unknown_message" "unknown_model"
    "worker_lost"
}

/// Builds the OpenAPI document as JSON text.
#[derive(Clone, Copy)]
pub(super) struct Document(pub(super) fn() -> String);

/// The OpenAPI document. The first request for the document builds the text, because the text takes longer to build than the
/// router.
static TEXT: OnceLock<Bytes> = OnceLock::new();

/// The OpenAPI document.
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "docs", operation_id = "openapi", security(()),
    responses((status = 200, content_type = "application/json", body = Object, description = "OpenAPI 3.2"))
)]
pub(super) async fn document(Extension(Document(build)): Extension<Document>) -> Response {
    let text = TEXT.get_or_init(|| build().into()).clone();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Returns the error codes with a page.
pub(super) fn error_codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}

problems!(only NoPage: NotFound);

/// Explains an error code: cause and remedy.
///
/// The `type` of a problem is the path of the code's page.
#[utoipa::path(
    get, path = "/docs/errors/{code}", tag = "docs", operation_id = "error_page", security(()),
    params(("code" = String, Path, example = "queue_full")),
    responses((status = 200, content_type = "text/plain", body = String, description = "Markdown"), NoPage)
)]
pub(super) async fn error_page(Path(code): Path<String>) -> Result<&'static str, Problem> {
    let page = PAGES.iter().find(|(name, _)| *name == code);
    page.map(|(_, text)| *text)
        .ok_or_else(|| Problem::new(Code::NotFound, "No error has this code."))
}

/// Returns the routes of Swagger UI at `/docs`, where people browse the OpenAPI document.
pub(super) fn browser() -> Router<GatewayState> {
    let page = SwaggerUi::new("/docs").config(Config::from(DOCUMENT).validator_url("none"));
    Router::from(page).layer(middleware::map_response(async |mut response: Response| {
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(CONTENT_SECURITY_POLICY),
        );
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }))
}
