//! The access token for requests to a server: the installation's own, or a person's.

use everturn_untrusted::Secrets;

use super::{
    challenge::Challenge,
    client::ClientAccess,
    error::AccessError,
    options::OAuthOptions,
    person::{Person, PersonAccess},
    token::Token,
};
use crate::egress::Egress;

/// Provides the token for requests to a server.
pub(in crate::mcp) enum Access {
    /// With tokens of the installation.
    Client(Box<ClientAccess>),
    /// With tokens of a person who has consented.
    Person(Box<PersonAccess>),
}

impl Access {
    /// Makes the access of a link for everybody, for a tenant or for a person.
    pub(in crate::mcp) fn new(
        options: OAuthOptions,
        tenant_id: Option<String>,
        egress: Egress,
        person: Option<Person>,
    ) -> Self {
        match person {
            Some(person) => Self::Person(Box::new(PersonAccess::new(options, egress, person))),
            None => Self::Client(Box::new(ClientAccess::new(options, tenant_id, egress))),
        }
    }

    /// Returns the token for a request. Returns `None` while the source of tokens is unknown: the server then refuses
    /// the request, and its challenge names the source.
    pub(in crate::mcp) async fn token(&self) -> Result<Option<Token>, AccessError> {
        match self {
            Self::Client(access) => access.token().await,
            Self::Person(access) => access.token().await.map(Some),
        }
    }

    /// Returns the token after a refused token. A new token is requested once, however many callers were refused.
    pub(in crate::mcp) async fn after_refusal(
        &self,
        refused: Option<&Token>,
        challenge: Challenge,
    ) -> Result<Token, AccessError> {
        match self {
            Self::Client(access) => access.after_refusal(refused, challenge).await,
            Self::Person(access) => access.after_refusal(refused).await,
        }
    }

    /// Records that the server has refused a new token.
    pub(in crate::mcp) fn refused_anew(&self, token: &Token) -> AccessError {
        match self {
            Self::Client(access) => access.refused_anew(token),
            Self::Person(access) => access.noted(AccessError::Token),
        }
    }

    /// Records that the server accepts the token.
    pub(in crate::mcp) fn accepted(&self, token: Option<&Token>) {
        match self {
            Self::Client(access) => access.accepted(token),
            Self::Person(access) => access.accepted(),
        }
    }

    /// Returns the reason for a missing token, if the last request failed.
    pub(in crate::mcp) fn failure(&self) -> Option<AccessError> {
        match self {
            Self::Client(access) => access.failure(),
            Self::Person(access) => access.failure(),
        }
    }

    /// Returns the secrets that the server must not repeat.
    pub(in crate::mcp) fn secrets(&self) -> Secrets {
        match self {
            Self::Client(access) => access.secrets(),
            Self::Person(access) => access.secrets(),
        }
    }
}
