//! Why a request is refused: nobody knows who the caller is (401), or the caller may not do this (403).

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

/// The reason why a request is refused, which lies in who makes it.
#[derive(Debug)]
pub(crate) enum AuthRefusal {
    /// No credential, where one is required.
    Missing,
    /// A credential that is not valid. The sentence is for its owner, and says nothing that a forger could use.
    Invalid(&'static str),
    /// A key that was valid.
    Ended { why: &'static str, key: Arc<ApiKey> },
    /// A session that is not valid. The browser is told to forget its cookie, because no page can do that.
    Session {
        why: &'static str,
        forget: HeaderValue,
        /// The session, when it was valid.
        ended: Option<Arc<ApiKey>>,
    },
    /// The credential does not allow this.
    Scope(Scope),
    /// A page of another origin.
    Origin,
    /// No credential, and a name that the gateway is not known by.
    Host,
    /// The credential cannot be checked now.
    Unknown(Problem),
}

impl From<everturn_store::StoreError> for AuthRefusal {
    fn from(error: everturn_store::StoreError) -> Self {
        Self::Unknown(error.into())
    }
}

impl AuthRefusal {
    /// Why a credential was refused. `None` for requests that are refused for something else.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Invalid(why) | Self::Ended { why, .. } | Self::Session { why, .. } => Some(why),
            Self::Unknown(problem) if problem.code() == Code::RateLimited => Some(problem.detail()),
            Self::Missing | Self::Scope(_) | Self::Origin | Self::Host | Self::Unknown(_) => None,
        }
    }

    /// The key or session that was valid, and was presented with its secret.
    pub(crate) fn ended_key(&self) -> Option<&ApiKey> {
        match self {
            Self::Ended { key, .. } => Some(key),
            Self::Session { ended, .. } => ended.as_deref(),
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
            Self::Scope(scope) => {
                let detail = format!(
                    "This needs the scope `{}`. Use a credential that has it.",
                    scope.as_str()
                );
                Problem::new(Code::InsufficientScope, detail)
            }
            Self::Origin => Problem::new(
                Code::OriginNotAllowed,
                "Pages of this origin may not do that here; `allowed_origins` in the gateway's [auth] lists those that may.",
            ),
            Self::Host => Problem::new(
                Code::HostNotAllowed,
                "Ask by a name of this machine, or send a credential; `allowed_hosts` in the gateway's [auth] lists further names.",
            ),
            Self::Unknown(problem) => problem.clone(),
        }
    }

    /// `WWW-Authenticate` as RFC 6750 words it. The sentences have no quotes.
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
            Self::Origin | Self::Host | Self::Unknown(_) => None,
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
