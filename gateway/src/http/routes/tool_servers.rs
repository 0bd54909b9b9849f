//! Tool servers that people consent to: their list with the caller's consents, and the begin and the end of a consent. The
//! browser comes back to `consent_callback`.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::ConsentOf;
use serde::Serialize;
use utoipa::ToSchema;

use super::wire::time;
use crate::{
    config::host_of,
    consents::{ConsentRefusal, ToolConsents},
    http::{
        audit::WithDetails,
        extract::Caller,
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
};

/// The path of the page to which the browser of a person comes back (`consent_callback`).
pub(super) const CALLBACK: &str = "/oauth/callback";

/// The tool servers that people consent to.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolServers)]
pub(super) struct ToolServersBody {
    servers: Vec<ToolServerBody>,
}

/// A tool server that people consent to.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolServer)]
pub(super) struct ToolServerBody {
    /// The name of the server. Its tools are called `<name>__<tool>`.
    #[schema(example = "mail")]
    name: String,
    /// The time of the caller's consent; null: the caller has not consented, is no person, or the consent has ended.
    #[schema(required = true, format = DateTime)]
    consented_at: Option<String>,
}

/// The address for the browser of the person.
#[derive(Serialize, ToSchema)]
#[schema(as = ConsentBegun)]
pub(super) struct ConsentBegunBody {
    /// The address of the authorization server. Open it in the person's browser within ten minutes.
    authorization_url: String,
}

problems!(ListRefusals:);
problems!(BeginRefusals: ConsentNeedsPerson, ToolServerNotFound, ConsentUnavailable);
problems!(EndRefusals: ConsentNeedsPerson, ToolServerNotFound);

/// Lists the tool servers that people consent to, with the caller's consents.
#[utoipa::path(
    get, path = "/tool-servers", tag = "tools", operation_id = "list_tool_servers",
    responses((status = 200, body = ToolServersBody, description = "The servers"), ListRefusals)
)]
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Json<ToolServersBody>, Problem> {
    let tenant_id = &caller.access.tenant_id;
    let Some(consents) = &state.ports.consents else {
        return Ok(Json(ToolServersBody {
            servers: Vec::new(),
        }));
    };
    let given = match &caller.access.owner_id {
        Some(owner_id) => consents.given(tenant_id, owner_id).await?,
        None => Vec::new(),
    };
    let servers = consents.servers(tenant_id).into_iter();
    let servers = servers.map(|name| {
        let consent = given.iter().find(|given| given.server == name);
        ToolServerBody {
            consented_at: consent.map(|given| time(given.created_at)),
            name,
        }
    });
    Ok(Json(ToolServersBody {
        servers: servers.collect(),
    }))
}

/// Begins the consent of the caller to the use of a tool server in the caller's name.
///
/// The person opens the returned address in a browser, signs in at the authorization server, consents, and comes back to
/// the gateway's page `/oauth/callback`. A person has five begun consents at the most; a further one ends the oldest.
/// Needs a credential with an owner.
#[utoipa::path(
    post, path = "/tool-servers/{name}/consent", tag = "tools", operation_id = "begin_consent",
    params(("name" = String, Path, example = "mail")),
    responses((status = 200, body = ConsentBegunBody, description = "The address to open"), BeginRefusals)
)]
pub(super) async fn begin(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<ConsentBegunBody>, Problem> {
    let (consents, of) = server(&state, &caller, name)?;
    let redirect_uri = redirect_uri(&state, &headers)?;
    let begun = consents.begin(&of, &redirect_uri).await;
    let authorization_url = begun.map_err(problem)?;
    let target = (AuditTargetKind::ToolServer, of.server.as_str());
    let entry = state
        .audit
        .entry(&caller, AuditAction::ConsentBegun, target);
    state
        .audit
        .append(&entry.with("owner", of.owner_id))
        .await?;
    Ok(Json(ConsentBegunBody { authorization_url }))
}

/// Ends the use of a tool server in the caller's name.
///
/// The gateway removes the tokens, and takes them back at an authorization server that can do so. Running calls go on.
/// Repeating the request is safe. Needs a credential with an owner.
#[utoipa::path(
    delete, path = "/tool-servers/{name}/consent", tag = "tools", operation_id = "end_consent",
    params(("name" = String, Path, example = "mail")),
    responses((status = 204, description = "The caller has no consent to the server"), EndRefusals)
)]
pub(super) async fn end(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let (consents, of) = server(&state, &caller, name)?;
    let target = (AuditTargetKind::ToolServer, of.server.as_str());
    let entry = state
        .audit
        .entry(&caller, AuditAction::ConsentEnded, target);
    let entry = entry.with("owner", of.owner_id.clone());
    consents.remove(&of, &entry).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the person behind the caller's credential.
fn person(caller: &Caller) -> Result<&str, Problem> {
    caller.access.owner_id.as_deref().ok_or_else(|| {
        Problem::new(
            Code::ConsentNeedsPerson,
            "Your credential belongs to no person. Use a key with an owner, or a token.",
        )
    })
}

/// Returns the server with the caller as the person.
fn server<'s>(
    state: &'s GatewayState,
    caller: &Caller,
    name: String,
) -> Result<(&'s dyn ToolConsents, ConsentOf), Problem> {
    let tenant_id = caller.access.tenant_id.clone();
    let consents = state.ports.consents.as_deref();
    let consents = consents.filter(|consents| consents.servers(&tenant_id).contains(&name));
    let consents = consents.ok_or_else(unknown)?;
    let of = ConsentOf {
        tenant_id,
        owner_id: person(caller)?.to_owned(),
        server: name,
    };
    Ok((consents, of))
}

/// Returns the address to which the authorization server sends the browser back: the configured origin, or else the
/// loopback name of the request, because the owner of any other name can point the name at the gateway.
fn redirect_uri(state: &GatewayState, headers: &HeaderMap) -> Result<String, Problem> {
    let auth = &state.config.auth;
    let origin = match &auth.public_origin {
        Some(origin) => Some(origin.as_str().to_owned()),
        None => headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .filter(|host| host_of(host).is_some_and(everturn_proto::is_loopback))
            .map(|host| format!("http://{host}")),
    };
    let origin = origin.ok_or_else(|| {
        Problem::new(
            Code::ConsentUnavailable,
            "The gateway does not know its own address for browsers. Set `public_url` in [auth].",
        )
    })?;
    Ok(format!("{origin}{CALLBACK}"))
}

fn unknown() -> Problem {
    Problem::new(
        Code::ToolServerNotFound,
        "No tool server of this name needs the consent of people. `GET /api/v1/tool-servers` lists the servers.",
    )
}

/// Returns the problem of a refused consent. The reason of an unusable authorization server is for operators, and stays in
/// the log.
pub(super) fn problem(refusal: ConsentRefusal) -> Problem {
    match refusal {
        ConsentRefusal::UnknownServer => unknown(),
        ConsentRefusal::Refused => Problem::new(
            Code::ConsentRefused,
            "The authorization server gives no tokens for the consent. Begin the consent again.",
        ),
        ConsentRefusal::Unavailable { code, reason } => {
            tracing::warn!(code, reason, "a consent cannot begin or end");
            Problem::new(
                Code::ConsentUnavailable,
                format!(
                    "The authorization server cannot be used now ({code}). Try again later, or ask the operator."
                ),
            )
        }
        ConsentRefusal::Store(error) => error.into(),
    }
}
