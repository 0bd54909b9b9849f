//! The port to the consents of people: the way to the authorization servers of tool servers and back.

use async_trait::async_trait;
use everturn_store::{ConsentOf, ConsentRequest, GivenConsent, NewAuditEntry, StoreError};

/// Begins and ends consents of people to the use of tool servers in their names.
#[async_trait]
pub trait ToolConsents: Send + Sync {
    /// Returns the names of the servers that need a consent and that the tenant may use.
    fn servers(&self, tenant_id: &str) -> Vec<String>;

    /// Returns the servers that a person has consented to.
    async fn given(&self, tenant_id: &str, owner_id: &str)
    -> Result<Vec<GivenConsent>, StoreError>;

    /// Begins the consent of a person, and returns the address for the person's browser.
    async fn begin(&self, of: &ConsentOf, redirect_uri: &str) -> Result<String, ConsentRefusal>;

    /// Returns the begun consent of a state, within its time.
    async fn begun(&self, state: &str) -> Result<Option<ConsentOf>, StoreError>;

    /// Takes the begun consent of a state, within its time. Only one caller gets the consent.
    async fn take(&self, state: &str) -> Result<Option<ConsentRequest>, StoreError>;

    /// Ends a taken consent with the code of the authorization server: stores the tokens together with the audit entry.
    /// `issuer` is the name that the answer gives its authorization server.
    async fn end(
        &self,
        taken: &ConsentRequest,
        code: &str,
        issuer: Option<&str>,
        audit: &NewAuditEntry,
    ) -> Result<(), ConsentRefusal>;

    /// Removes the consent of a person together with the audit entry, and takes the tokens back at the authorization server.
    /// Returns false without a consent.
    async fn remove(&self, of: &ConsentOf, audit: &NewAuditEntry) -> Result<bool, StoreError>;
}

/// The reason why a consent cannot begin or end.
#[derive(Debug, thiserror::Error)]
pub enum ConsentRefusal {
    /// The configuration does not have the server.
    #[error("no tool server of this name needs a consent")]
    UnknownServer,
    /// The authorization server does not give tokens for the code.
    #[error("the authorization server gives no tokens for the answer of the browser")]
    Refused,
    /// The authorization server, its metadata or the client. The code has a page in `docs/errors`.
    #[error("{reason} ({code})")]
    Unavailable {
        /// The stable code.
        code: &'static str,
        /// The reason, for operators.
        reason: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}
