//! Refusals of requests: the caller is unknown (401), or the caller lacks a right (403).

use std::sync::Arc;

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use everturn_store::ApiKey;

use crate::{
    config::Scope,
    http::problem::{Code, Problem},
};

/// The detail for an owner whom an admin refuses.
const OWNER_REFUSED: &str =
    "An admin of the tenant refuses the owner of the credential. Ask an admin to allow the owner.";

/// The reason why authentication or authorization refuses a request.
#[derive(Debug)]
pub(crate) enum AuthRefusal {
    /// The request has no credential, and the gateway requires a credential.
    Missing,
    /// The credential is not valid. The sentence helps the credential's owner, and gives no hint to a forger.
    Invalid(&'static str),
    /// The key was valid before, and has expired or was revoked.
    Ended { why: &'static str, key: Arc<ApiKey> },
    /// The session is not valid. The response tells the browser to forget the cookie, because no page can delete the
    /// cookie.
    Session {
        why: &'static str,
        forget: HeaderValue,
        /// The session's row, when the session was valid before.
        ended: Option<Arc<ApiKey>>,
    },
    /// An admin refuses the owner of the credential. The key or the session is missing for a token.
    OwnerRefused(Option<Arc<ApiKey>>),
    /// The credential lacks the scope.
    Scope(Scope),
    /// The request came from a page of another origin.
    Origin,
    /// The request has no credential, and a host name that the gateway does not know as its own.
    Host,
    /// The gateway cannot check the credential now.
    Unknown(Problem),
}

impl From<everturn_store::StoreError> for AuthRefusal {
    fn from(error: everturn_store::StoreError) -> Self {
        Self::Unknown(error.into())
    }
}

impl AuthRefusal {
    /// Returns the reason why a credential was refused. Returns `None` for requests refused for another reason.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Invalid(why) | Self::Ended { why, .. } | Self::Session { why, .. } => Some(why),
            Self::OwnerRefused(_) => Some(OWNER_REFUSED),
            Self::Unknown(problem) if problem.code() == Code::RateLimited => Some(problem.detail()),
            Self::Missing | Self::Scope(_) | Self::Origin | Self::Host | Self::Unknown(_) => None,
        }
    }

    /// Returns the formerly valid key or session, when the request had its right secret.
    pub(crate) fn ended_key(&self) -> Option<&ApiKey> {
        match self {
            Self::Ended { key, .. } => Some(key),
            Self::Session { ended, .. } => ended.as_deref(),
            Self::OwnerRefused(key) => key.as_deref(),
            Self::Missing
            | Self::Invalid(_)
            | Self::Scope(_)
            | Self::Origin
            | Self::Host
            | Self::Unknown(_) => None,
        }
    }

    fn problem(&self) -> Problem {
        match self {
            Self::Missing => Problem::new(
                Code::Unauthenticated,
                "Send a key or a token in the header `Authorization: Bearer …`, or open a session.",
            ),
            Self::Invalid(why) | Self::Ended { why, .. } | Self::Session { why, .. } => {
                Problem::new(Code::Unauthenticated, *why)
            }
            Self::OwnerRefused(_) => Problem::new(Code::OwnerRefused, OWNER_REFUSED),
            Self::Scope(scope) => {
                let detail = format!(
                    "The request needs the scope `{}`. Use a credential with the scope.",
                    scope.as_str()
                );
                Problem::new(Code::InsufficientScope, detail)
            }
            Self::Origin => Problem::new(
                Code::OriginNotAllowed,
                "The page's origin may not send the request; `allowed_origins` in the gateway's [auth] lists the allowed origins.",
            ),
            Self::Host => Problem::new(
                Code::HostNotAllowed,
                "Use a host name of the local machine, or send a credential; `allowed_hosts` in the gateway's [auth] lists \
                 further names.",
            ),
            Self::Unknown(problem) => problem.clone(),
        }
    }

    /// Returns the header `WWW-Authenticate` as in RFC 6750. The sentences have no quotes and need no escapes.
    fn challenge(&self) -> Option<String> {
        match self {
            // A request without a credential gets no error code, as RFC 6750 says.
            Self::Missing => Some("Bearer".to_owned()),
            Self::Invalid(why) | Self::Ended { why, .. } | Self::Session { why, .. } => Some(
                format!("Bearer error=\"invalid_token\", error_description=\"{why}\""),
            ),
            Self::Scope(scope) => Some(format!(
                "Bearer error=\"insufficient_scope\", scope=\"{}\"",
                scope.as_str()
            )),
            Self::OwnerRefused(_) | Self::Origin | Self::Host | Self::Unknown(_) => None,
        }
    }
}

impl IntoResponse for AuthRefusal {
    fn into_response(self) -> Response {
        let mut response = self.problem().into_response();
        let challenge = self
            .challenge()
            .and_then(|challenge| HeaderValue::try_from(challenge).ok());
        if let Some(challenge) = challenge {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Self::Session { forget, .. } = self {
            response.headers_mut().insert(header::SET_COOKIE, forget);
        }
        response
    }
}
