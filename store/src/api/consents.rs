//! Consents of people to the use of a tool server in their name.
//!
//! The store has the tokens only in sealed form. The tenant, the owner and the server are arguments of every query, so the
//! consent of one person never serves another person.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{NewAuditEntry, Result};

/// The consents of people, and the consents that people have begun.
#[async_trait]
pub trait Consents: Send + Sync {
    /// Returns the consent of a person to a server.
    async fn consent(&self, of: &ConsentOf) -> Result<Option<Consent>>;

    /// Returns the servers that an owner has consented to, by name.
    async fn consents_of(&self, tenant_id: &str, owner_id: &str) -> Result<Vec<GivenConsent>>;

    /// Stores the consent of a person in the stead of an earlier consent, together with the audit entry.
    async fn give_consent(
        &self,
        of: &ConsentOf,
        id: &str,
        sealed: &[u8],
        audit: &NewAuditEntry,
    ) -> Result<()>;

    /// Lets the caller renew the tokens of the version for the time. Returns false while another process renews them, and
    /// for tokens of another version.
    async fn claim_renewal(
        &self,
        of: &ConsentOf,
        tokens: &TokenVersion,
        time: Duration,
    ) -> Result<bool>;

    /// Stores renewed tokens in the stead of the version. Returns false when the consent has ended or has other tokens.
    async fn renew_consent(
        &self,
        of: &ConsentOf,
        tokens: &TokenVersion,
        sealed: &[u8],
    ) -> Result<bool>;

    /// Lets the next process renew the tokens, after a renewal that failed.
    async fn free_renewal(&self, of: &ConsentOf, tokens: &TokenVersion) -> Result<()>;

    /// Ends a consent whose tokens of the version are useless. A consent with other tokens stays.
    async fn lose_consent(&self, of: &ConsentOf, tokens: &TokenVersion) -> Result<()>;

    /// Ends the consent of a person together with the audit entry, and returns the consent that ended.
    async fn end_consent(&self, of: &ConsentOf, audit: &NewAuditEntry) -> Result<Option<Consent>>;

    /// Stores a consent that a person has begun. `keep` is the most begun consents of the owner; the oldest of more are
    /// removed.
    async fn begin_consent(&self, begun: &NewConsentRequest, keep: u32) -> Result<()>;

    /// Returns a begun consent within its time.
    async fn begun_consent(&self, state_hash: &[u8]) -> Result<Option<ConsentRequest>>;

    /// Takes a begun consent within its time. Only one caller gets the consent.
    async fn take_consent(&self, state_hash: &[u8]) -> Result<Option<ConsentRequest>>;
}

/// The person and the server of a consent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::FromRow)]
pub struct ConsentOf {
    /// The tenant of the person.
    pub tenant_id: String,
    /// The person: the owner of conversations.
    pub owner_id: String,
    /// The name of the tool server.
    pub server: String,
}

/// The tokens of a consent at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenVersion {
    /// The id of the consent.
    pub consent_id: String,
    /// The version of the tokens.
    pub version: i64,
}

/// A consent.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Consent {
    /// The id of the consent, which is made anew with each consent.
    pub id: String,
    /// The sealed tokens.
    pub sealed: Vec<u8>,
    /// The version of the tokens.
    pub version: i64,
    /// The time of the consent.
    pub created_at: DateTime<Utc>,
}

impl Consent {
    /// Returns the version of the tokens.
    pub fn tokens(&self) -> TokenVersion {
        TokenVersion {
            consent_id: self.id.clone(),
            version: self.version,
        }
    }
}

/// A server that an owner has consented to.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct GivenConsent {
    /// The name of the tool server.
    pub server: String,
    /// The time of the consent.
    pub created_at: DateTime<Utc>,
}

/// A consent that a person begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConsentRequest {
    /// The SHA-256 of the state.
    pub state_hash: Vec<u8>,
    /// The person and the server.
    pub of: ConsentOf,
    /// The sealed data that ends the consent.
    pub sealed: Vec<u8>,
    /// The time that the person has.
    pub time: Duration,
}

/// A consent that a person has begun.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ConsentRequest {
    /// The person and the server.
    #[sqlx(flatten)]
    pub of: ConsentOf,
    /// The sealed data that ends the consent.
    pub sealed: Vec<u8>,
}
