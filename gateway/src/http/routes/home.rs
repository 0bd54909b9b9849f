//! The page at `/about`: a description of Everturn, links to its documentation, and commands to try. The page has no
//! script and fetches no files.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, header, uri::Authority},
    response::{Html, IntoResponse, Response},
};

use super::docs;
use crate::http::state::GatewayState;

const PAGE: &str = include_str!("home.html");

/// The policy allows the page's inline style only.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// The host in the commands for a caller who sends no usable `Host`.
const DEFAULT_HOST: &str = "127.0.0.1:8080";

/// Describes Everturn for people.
///
/// Readers can copy and run the commands on the page unchanged.
#[utoipa::path(
    get, path = "/about", tag = "docs", operation_id = "home", security(()),
    responses((status = 200, content_type = "text/html", body = String, description = "A page"))
)]
pub(super) async fn home(State(state): State<GatewayState>, headers: HeaderMap) -> Response {
    let needs_credential = state.config.auth.required;
    let mut response = Html(page(&base_url(&headers), needs_credential)).into_response();
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONTENT_SECURITY_POLICY),
    );
    response
}

fn page(base_url: &str, needs_credential: bool) -> String {
    let authorization = if needs_credential {
        " -H \"authorization: Bearer $EVERTURN_TOKEN\""
    } else {
        ""
    };
    let credential = if needs_credential {
        "<p>The commands need a key or a token in <code>EVERTURN_TOKEN</code>.</p>\n"
    } else {
        ""
    };
    let api = format!("{base_url}/api/v1/agent");
    let json = "-H 'content-type: application/json'";
    let create =
        format!(r#"curl -s {api}/conversations{authorization} {json} -d '{{"id":"hello"}}'"#);
    let chat = format!(
        r#"curl -sN {api}/chat{authorization} {json} -d '{{"conversation_id":"hello","message":"What is 2 + 2?"}}'"#
    );
    let read = format!("curl -s {api}/conversations/hello/messages{authorization}");
    let links = docs::error_codes()
        .map(|code| format!("<a href=\"/docs/errors/{code}\">{code}</a>"))
        .collect::<Vec<_>>();
    PAGE.replace("{{credential}}", credential)
        .replace("{{create}}", &escaped(&create))
        .replace("{{chat}}", &escaped(&chat))
        .replace("{{read}}", &escaped(&read))
        .replace("{{errors}}", &links.join("\n"))
}

/// Returns the gateway's URL as the caller sees the gateway. A proxy that speaks HTTPS with the caller sends
/// `x-forwarded-proto: https`.
fn base_url(headers: &HeaderMap) -> String {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let is_https = text("x-forwarded-proto") == Some("https");
    let host = text("host").filter(|host| is_plain(host));
    format!(
        "{}://{}",
        if is_https { "https" } else { "http" },
        host.unwrap_or(DEFAULT_HOST)
    )
}

/// Returns true for a host and port without characters that a shell interprets, because people copy the commands into a
/// shell.
fn is_plain(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    host.parse::<Authority>().is_ok() && host.bytes().all(is_plain)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
