//! Reasons for a missing or useless token.

use crate::egress::{EgressError, Refused};

/// The reason why a server cannot be asked. Texts are for the operator and the log. They contain no secret, and no
/// text written by an authorization server.
#[derive(Debug, Clone, thiserror::Error)]
pub(in crate::mcp) enum AccessError {
    #[error(
        "{0}. Write the client's id and secret into the files or variables of `[mcp.NAME.oauth]`"
    )]
    Secret(String),
    #[error(
        "the authorization server does not take the client ({0}). Check the client's id and secret, and whether the \
         client may use the grant `client_credentials`"
    )]
    Client(&'static str),
    #[error(
        "the authorization server gives no token for the server ({0}). Check `scopes`, and the client's rights at the \
         authorization server"
    )]
    Request(&'static str),
    #[error("the person has not consented to the use of the server, or the consent has ended")]
    Consent,
    #[error("{0}")]
    Metadata(String),
    #[error(
        "{0} Authorization servers are at public addresses, or at addresses in `[egress] allow`"
    )]
    Address(Refused),
    #[error("the authorization server cannot be asked: {0}")]
    Unavailable(String),
    #[error(
        "the server refuses a new token of the authorization server. Check `scopes`, and whether the authorization \
         server gives tokens for the server"
    )]
    Token,
    #[error(
        "the server wants more than the token allows ({0}). Add the missing scopes to `scopes`"
    )]
    Scope(String),
}

impl AccessError {
    /// Returns the stable code, which has a page in docs/errors.
    pub(in crate::mcp) fn code(&self) -> &'static str {
        match self {
            Self::Secret(_) => "mcp_secret_unreadable",
            Self::Client(_) => "mcp_client_refused",
            Self::Request(_) => "mcp_grant_refused",
            Self::Consent => "mcp_consent_needed",
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
            Self::Secret(_) => "the client id or secret cannot be read",
            Self::Client(_) => "the authorization server does not take the client",
            Self::Request(_) => "the authorization server gives no token for the server",
            Self::Consent => "the user has not consented to its use, or the consent has ended",
            Self::Metadata(_) => "the metadata about authorization is not trusted",
            Self::Address(_) => "the address of the authorization server is not allowed",
            Self::Unavailable(_) => "the authorization server cannot be asked",
            Self::Token => "the server refuses the token of the authorization server",
            Self::Scope(_) => "the server wants more than the token allows",
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
