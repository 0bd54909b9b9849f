//! Reasons for a missing or useless token.

use crate::egress::{EgressError, Refused};

/// The reason why a server cannot be asked. Texts are for the operator and the log. They contain no secret, and no
/// text written by an authorization server.
#[derive(Debug, Clone, thiserror::Error)]
pub(in crate::mcp) enum AccessError {
    #[error("{0}. Write the client's id and secret where `[mcp.NAME.oauth]` says that they are")]
    Secret(String),
    #[error(
        "the authorization server does not take the client ({0}). Check the client's id and secret, and that it may use the \
         grant `client_credentials`"
    )]
    Client(&'static str),
    #[error(
        "the authorization server gives no token for this server ({0}). Check `scopes`, and what the client may do there"
    )]
    Request(&'static str),
    #[error("{0}")]
    Metadata(String),
    #[error("{0} Authorization servers are at public addresses, or at those of `[egress] allow`")]
    Address(Refused),
    #[error("the authorization server cannot be asked: {0}")]
    Unavailable(String),
    #[error(
        "the server refuses the token that the authorization server has just given. Check `scopes`, and that the \
         authorization server gives tokens for this server"
    )]
    Token,
    #[error("the server wants more than the token allows ({0}). Write what it wants into `scopes`")]
    Scope(String),
}

impl AccessError {
    /// Returns the stable code, which has a page in docs/errors.
    pub(in crate::mcp) fn code(&self) -> &'static str {
        match self {
            Self::Secret(_) => "mcp_secret_unreadable",
            Self::Client(_) => "mcp_client_refused",
            Self::Request(_) => "mcp_grant_refused",
            Self::Metadata(_) => "mcp_metadata_refused",
            Self::Address(_) => "mcp_address_refused",
            Self::Unavailable(_) => "mcp_authorization_unavailable",
            Self::Token => "mcp_token_refused",
            Self::Scope(_) => "mcp_scope_missing",
        }
    }

    /// Returns the reason for a model, without addresses and paths.
    pub(in crate::mcp) fn for_model(&self) -> &'static str {
        match self {
            Self::Secret(_) => "its client id or secret cannot be read",
            Self::Client(_) => "its authorization server does not take the client",
            Self::Request(_) => "its authorization server gives no token for it",
            Self::Metadata(_) => "what it says of its authorization is not believed",
            Self::Address(_) => "its authorization server is where nothing may connect to",
            Self::Unavailable(_) => "its authorization server cannot be asked",
            Self::Token => "it refuses the token that its authorization server gives",
            Self::Scope(_) => "it wants more than its token allows",
        }
    }

    /// Converts the error of a request without an answer.
    pub(super) fn unanswered(error: &EgressError) -> Self {
        match error {
            EgressError::Refused(refused) => Self::Address(refused.clone()),
            error => Self::Unavailable(error.to_string()),
        }
    }
}
