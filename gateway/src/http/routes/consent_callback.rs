//! The page `/oauth/callback`, to which an authorization server sends the browser of a person who consents.
//!
//! The browser has no credential there: the cookie of a session does not come along from another site. Therefore the page
//! first names the person who gets the access, and asks. A person who follows the link of an attacker sees the attacker's
//! name, and the code in the address is good for nobody else, because the gateway alone has the verifier (PKCE). The answer
//! to the question comes from the gateway's own page, with the cookie of a session if there is one. The session of another
//! person is refused.

use axum::{
    body::Bytes,
    extract::{Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{Html, IntoResponse, Response},
};
use everturn_proto::words::{AuditAction, AuditActorKind, AuditTargetKind};
use everturn_store::{AuditActor, ConsentOf};
use serde::Deserialize;

use super::tool_servers::{self, CALLBACK};
use crate::{
    connections::client::Peer,
    consents::ToolConsents,
    http::{
        audit::{Doer, Source, WithDetails},
        problem::{Code, Problem},
        state::GatewayState,
    },
};

/// The policy allows the page's inline style, and a form to the gateway.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'";
/// The longest values of the address: more than authorization servers write.
const MAX_VALUE: usize = 4096;

/// The answer of an authorization server (RFC 6749, 4.1.2, and RFC 9207).
#[derive(Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    state: String,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

/// The person who consents, for the audit trail. The state of the browser proves that the person began the consent.
struct Consenting<'a> {
    of: &'a ConsentOf,
    source: &'a Source,
}

impl Doer for Consenting<'_> {
    fn tenant_id(&self) -> &str {
        &self.of.tenant_id
    }

    fn actor(&self) -> AuditActor {
        AuditActor {
            kind: AuditActorKind::Anonymous,
            id: None,
        }
    }

    fn principal_of_session(&self) -> Option<&str> {
        None
    }

    fn source(&self) -> &Source {
        self.source
    }
}

/// Asks the person whether the named person gets the access.
///
/// An authorization server sends the browser here. The page needs no credential.
#[utoipa::path(
    get, path = "/oauth/callback", tag = "tools", operation_id = "consent_page", security(()),
    responses((status = "default", content_type = "text/html", body = String, description = "A page for people"))
)]
pub(super) async fn ask(State(state): State<GatewayState>, uri: Uri) -> Response {
    let asked = async {
        let answer = answer(&uri)?;
        let consents = consents(&state)?;
        let begun = consents.begun(&answer.state).await?;
        let of = begun.ok_or_else(unknown)?;
        if let Some(error) = &answer.error {
            consents.take(&answer.state).await?;
            return Err(refused(error));
        }
        Ok(question(&of, &answer))
    };
    shown(asked.await)
}

/// Ends the consent: exchanges the code for tokens.
///
/// The form of the page at this address sends the request. The page needs no credential.
#[utoipa::path(
    post, path = "/oauth/callback", tag = "tools", operation_id = "finish_consent", security(()),
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = "default", content_type = "text/html", body = String, description = "A page for people"))
)]
pub(super) async fn finish(
    State(state): State<GatewayState>,
    peer: Option<axum::Extension<Peer>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let source = state.auth.source(&headers, peer.map(|peer| peer.0));
    let finished = async {
        let form = str::from_utf8(&body).ok();
        let uri = form.and_then(|form| format!("{CALLBACK}?{form}").parse::<Uri>().ok());
        let answer = answer(&uri.ok_or_else(unknown)?)?;
        let consents = consents(&state)?;
        let begun = consents.begun(&answer.state).await?;
        let of = begun.ok_or_else(unknown)?;
        if !state.auth.may_be_in_browser(&of, &headers, &source).await {
            return Err(other());
        }
        let taken = consents.take(&answer.state).await?;
        let taken = taken.ok_or_else(unknown)?;
        let code = answer.code.as_deref().ok_or_else(unknown)?;
        let consenting = Consenting {
            of: &taken.of,
            source: &source,
        };
        let target = (AuditTargetKind::ToolServer, taken.of.server.as_str());
        let entry = state
            .audit
            .entry(&consenting, AuditAction::ConsentGiven, target);
        let entry = entry.with("owner", taken.of.owner_id.clone());
        let issuer = answer.iss.as_deref();
        let ended = consents.end(&taken, code, issuer, &entry).await;
        ended.map_err(tool_servers::problem)?;
        Ok(done(&taken.of))
    };
    shown(finished.await)
}

fn consents(state: &GatewayState) -> Result<&dyn ToolConsents, Problem> {
    state.ports.consents.as_deref().ok_or_else(unknown)
}

fn answer(uri: &Uri) -> Result<Answer, Problem> {
    let Query(answer) = Query::<Answer>::try_from_uri(uri).map_err(|_| unknown())?;
    let values = [&answer.code, &answer.error, &answer.iss];
    let is_long = |value: &String| value.len() > MAX_VALUE;
    if is_long(&answer.state) || values.into_iter().flatten().any(is_long) {
        return Err(unknown());
    }
    Ok(answer)
}

fn unknown() -> Problem {
    Problem::new(
        Code::ConsentStateRefused,
        "This way back belongs to no consent that waits: it was used already, or its ten minutes are over. Begin again.",
    )
}

fn other() -> Problem {
    Problem::new(
        Code::ConsentOfOther,
        "Another person is signed in to this browser than the person who began the consent. Nothing was stored.",
    )
}

/// Returns the problem of an answer without a code. Only the word of the standard is shown.
fn refused(error: &str) -> Problem {
    let detail = match error {
        "access_denied" => "The access was not allowed. Nothing was stored.",
        _ => "The authorization server did not allow the access. Nothing was stored.",
    };
    Problem::new(Code::ConsentRefused, detail)
}

fn question(of: &ConsentOf, answer: &Answer) -> String {
    let field = |name: &str, value: &str| {
        format!(
            "<input type=\"hidden\" name=\"{name}\" value=\"{}\">",
            escaped(value)
        )
    };
    let optional = |name: &str, value: &Option<String>| {
        let value = value.as_deref();
        value.map(|value| field(name, value)).unwrap_or_default()
    };
    let fields = [
        field("state", &answer.state),
        optional("code", &answer.code),
        optional("iss", &answer.iss),
    ];
    let (server, owner, tenant) = (
        escaped(&of.server),
        escaped(&of.owner_id),
        escaped(&of.tenant_id),
    );
    format!(
        "<h1>Connect {server}?</h1><p>The agents of <b>{owner}</b> (tenant <b>{tenant}</b>) will use <b>{server}</b> with \
         the account that you have just signed in with.</p><p>Go on only if you are {owner}, and have just asked for \
         it.</p><form method=\"post\" action=\"{CALLBACK}\">{}<button>Connect</button></form>",
        fields.concat()
    )
}

fn done(of: &ConsentOf) -> String {
    let server = escaped(&of.server);
    format!("<h1>{server} is connected</h1><p>You may close this window.</p>")
}

/// Returns the page. The address of the page has a code, so neither a cache nor another site gets the address.
fn shown(shown: Result<String, Problem>) -> Response {
    let (status, content) = match shown {
        Ok(content) => (StatusCode::OK, content),
        Err(problem) => {
            let code = problem.code();
            let content = format!(
                "<h1>{}</h1><p>{}</p><p><a href=\"/docs/errors/{code}\">{code}</a></p>",
                escaped(code.title()),
                escaped(problem.detail()),
                code = code.as_str()
            );
            (code.status(), content)
        }
    };
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Everturn</title><style>body {{ font: \
         1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem; color-scheme: light dark; \
         overflow-wrap: anywhere }} button {{ font: inherit; padding: .4rem 1rem }}</style></head><body>{content}</body></html>"
    );
    let mut response = (status, Html(page)).into_response();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in fixed {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(name: &str) -> ConsentOf {
        ConsentOf {
            tenant_id: name.to_owned(),
            owner_id: name.to_owned(),
            server: "mail".to_owned(),
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_shown_without_markup_of_its_own(name in "\\PC{0,20}", text in "[<>\"&a-z=%+ ]{0,40}") {
            let quoted: Vec<_> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let quoted = quoted.concat();
            for uri in [format!("{CALLBACK}?state={quoted}&code={quoted}"), format!("{CALLBACK}?{}", text.replace(' ', "+"))] {
                let Ok(uri) = uri.parse::<Uri>() else { continue };
                let Ok(answer) = answer(&uri) else { continue };
                let page = question(&of(&name), &answer);
                // The tags are those of an empty question.
                let empty = Answer { state: String::new(), code: answer.code.as_ref().map(|_| String::new()), error: None,
                    iss: answer.iss.as_ref().map(|_| String::new()) };
                let tags = |page: &str| page.matches('<').count();
                prop_assert_eq!(tags(&page), tags(&question(&of(""), &empty)));
                prop_assert!(!page.contains("\"\"\""));
            }
        }
    }
}
