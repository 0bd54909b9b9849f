//! API keys and browser sessions, the credentials of callers. The store has hashes only, and no secrets.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Access, NewAuditEntry, OwnerRefusal, OwnerState, Reach, Result};
use crate::error::StoreError;

/// API keys and browser sessions. A session is a short-lived key in the table of keys, therefore every gateway knows
/// every session.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Stores a key, together with the audit entry. Returns [`StoreError::Conflict`] if the id is taken, and
    /// [`StoreError::NotFound`] if the parent does not exist.
    ///
    /// [`StoreError::Conflict`]: crate::StoreError::Conflict
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    async fn create_key(&self, new: NewKey, audit: Option<&NewAuditEntry>) -> Result<()>;

    /// Returns a key or session, even if expired or revoked. The caller checks [`ApiKey::is_valid_at`].
    async fn find_key(&self, id: &str) -> Result<Option<ApiKey>>;

    /// Returns at most `limit` keys behind `after` by id (`None`: from the first), of one tenant or of every tenant.
    /// The list has no sessions.
    async fn list_keys(
        &self,
        tenant_id: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ApiKey>>;

    /// Revokes a key with its sessions, or ends a session. Returns false for an unknown id. A repeated call keeps the
    /// first time. The audit entry is stored together with the change.
    async fn revoke_key(&self, id: &str, audit: Option<&NewAuditEntry>) -> Result<bool>;

    /// Revokes a key, and the keys that the key made, directly or through other keys: at most `limit` keys in one
    /// transaction, with an entry each. An entry is the given entry, with the id and the tenant of its key. Returns the ids
    /// of the keys that this call revoked; a repeated call continues after `limit` keys.
    async fn revoke_made_keys(
        &self,
        id: &str,
        limit: u32,
        audit: &NewAuditEntry,
    ) -> Result<Vec<String>>;

    /// Notes the key's use at the present time, unless a use after `before` is noted already.
    async fn touch_key(&self, id: &str, before: DateTime<Utc>) -> Result<()>;

    /// Removes the oldest sessions of a key or an owner, at most `limit` sessions, until `keep` sessions remain.
    /// Returns the number of removed sessions.
    async fn end_oldest_sessions(&self, of: SessionsOf<'_>, keep: u32, limit: u32) -> Result<u64>;

    /// Removes at most `limit` sessions that ended before the time. Returns their number. Keys stay, because keys are
    /// the record of callers' rights.
    async fn remove_ended_sessions(&self, before: DateTime<Utc>, limit: u32) -> Result<u64>;
}

/// The sessions under a common limit.
#[derive(Debug, Clone, Copy)]
pub enum SessionsOf<'a> {
    /// The sessions opened with the key, given by its id.
    Key(&'a str),
    /// The sessions of the tenant and owner opened with tokens.
    Owner(&'a Access),
}

/// The kind of a row in `api_keys`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A key made by an operator. Clients send the key as a bearer token.
    Key,
    /// A session of a browser, which sends the session as a cookie.
    Session,
}

impl KeyKind {
    /// Returns the kind's word in the column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Session => "session",
        }
    }
}

impl TryFrom<String> for KeyKind {
    type Error = StoreError;

    fn try_from(text: String) -> Result<Self> {
        [Self::Key, Self::Session]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| StoreError::Corrupt(format!("a key of the unknown kind `{text}`")))
    }
}

/// The maker of a key. Without a key and a subject, an operator made the key on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct KeyMaker {
    /// The key that made the key, also through a session.
    #[sqlx(rename = "made_by_key")]
    pub key: Option<String>,
    /// The subject of the token that made the key, also through a session.
    #[sqlx(rename = "made_by_subject")]
    pub subject: Option<String>,
}

/// A key to store.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The id: unique, and no secret.
    pub id: String,
    /// Key or session.
    pub kind: KeyKind,
    /// The key that opened the session; `None`: a token opened the session, and the store has no tokens.
    pub parent_id: Option<String>,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// The conversations visible to the bearer.
    pub access: Access,
    /// The bearer's scopes, separated by spaces as in OAuth.
    pub scopes: String,
    /// A name for people, possibly empty.
    pub name: String,
    /// The maker of the key.
    pub made_by: KeyMaker,
    /// The expiry time; `None`: the key is valid until its revocation.
    pub expires_at: Option<DateTime<Utc>>,
    /// When the token behind a session was issued. `None`: now.
    pub signed_in_at: Option<DateTime<Utc>>,
}

/// A stored key or session.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ApiKey {
    /// The id.
    pub id: String,
    /// Key or session.
    #[sqlx(try_from = "String")]
    pub kind: KeyKind,
    /// The key that opened the session.
    pub parent_id: Option<String>,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// The conversations visible to the bearer.
    #[sqlx(flatten)]
    pub access: Access,
    /// The bearer's scopes, separated by spaces as in OAuth.
    pub scopes: String,
    /// A name for people, possibly empty.
    pub name: String,
    /// The maker of the key.
    #[sqlx(flatten)]
    pub made_by: KeyMaker,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The expiry time.
    pub expires_at: Option<DateTime<Utc>>,
    /// The time at which the key, or the session's parent key, was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// The time of the last use, to a minute or so.
    pub last_used_at: Option<DateTime<Utc>>,
    /// When the token behind a session was issued; for another key the time of creation.
    pub signed_in_at: DateTime<Utc>,
    /// The state of the key's owner.
    #[sqlx(flatten)]
    pub owner_state: OwnerState,
}

impl ApiKey {
    /// Returns why gateways refuse the owner's credential, whose scopes have the reach. The end of an owner's sign-ins ends
    /// sessions, and no keys.
    pub fn owner_refusal(&self, reach: Reach) -> Option<OwnerRefusal> {
        let signed_in_at = match self.kind {
            KeyKind::Key => None,
            KeyKind::Session => Some(self.signed_in_at),
        };
        self.owner_state.refusal(reach, signed_in_at)
    }

    /// Returns true if the key is neither revoked nor expired at `now`.
    pub fn is_valid_at(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}
