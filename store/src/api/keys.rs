//! API keys and browser sessions: what callers prove who they are with. Secrets are never here, only their hashes.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Access, NewAuditEntry, Result};
use crate::error::StoreError;

/// API keys and browser sessions. A session is a short-lived key in the same table, so that every gateway knows it.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Stores a key, together with the entry of the audit trail about it. [`StoreError::Conflict`] when its id is
    /// taken; [`StoreError::NotFound`] when its parent does not exist.
    ///
    /// [`StoreError::Conflict`]: crate::StoreError::Conflict
    /// [`StoreError::NotFound`]: crate::StoreError::NotFound
    async fn create_key(&self, new: NewKey, audit: Option<&NewAuditEntry>) -> Result<()>;

    /// Returns one key or session, also when it has expired or was revoked: the caller decides by
    /// [`ApiKey::is_valid_at`].
    async fn find_key(&self, id: &str) -> Result<Option<ApiKey>>;

    /// Returns keys by id behind `after` (`None`: from the first), at most `limit` of them, of one tenant or of all.
    /// Sessions are not among them.
    async fn list_keys(
        &self,
        tenant_id: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ApiKey>>;

    /// Revokes a key or ends a session; a key's sessions end with it. False when there is no such key. Repeating it
    /// keeps the first time. The entry of the audit trail is stored together with it.
    async fn revoke_key(&self, id: &str, audit: Option<&NewAuditEntry>) -> Result<bool>;

    /// Notes that the key was used now, unless that was noted after `before`.
    async fn touch_key(&self, id: &str, before: DateTime<Utc>) -> Result<()>;

    /// Ends the oldest sessions of a key or an owner, so that `keep` of them stay, at most `limit` of them, and says how
    /// many. They are removed.
    async fn end_oldest_sessions(&self, of: SessionsOf<'_>, keep: u32, limit: u32) -> Result<u64>;

    /// Removes at most `limit` sessions that ended before this time, and says how many. Keys stay: they are the record
    /// of who could do what.
    async fn remove_ended_sessions(&self, before: DateTime<Utc>, limit: u32) -> Result<u64>;
}

/// Sessions that count together.
#[derive(Debug, Clone, Copy)]
pub enum SessionsOf<'a> {
    /// The sessions that were opened with the key with this id.
    Key(&'a str),
    /// The sessions of this tenant and owner that were opened with tokens.
    Owner(&'a Access),
}

/// What a row of `api_keys` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A key that an operator made. Clients send it as a bearer token.
    Key,
    /// A session that was made for a browser, which sends it as a cookie.
    Session,
}

impl KeyKind {
    /// The word for it in the column.
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

/// A key to store.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Unique, and no secret.
    pub id: String,
    /// Key or session.
    pub kind: KeyKind,
    /// The key that a session was opened with; `None`: it was opened with a token that is not stored.
    pub parent_id: Option<String>,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// Whose conversations its bearer sees.
    pub access: Access,
    /// What its bearer may do: words separated by spaces, as in OAuth.
    pub scopes: String,
    /// A name for people, possibly empty.
    pub name: String,
    /// The time from which it is not valid; `None`: it is valid until it is revoked.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A stored key or session.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ApiKey {
    /// Its id.
    pub id: String,
    /// Key or session.
    #[sqlx(try_from = "String")]
    pub kind: KeyKind,
    /// The key that a session was opened with.
    pub parent_id: Option<String>,
    /// SHA-256 of the secret.
    pub secret_hash: Vec<u8>,
    /// Whose conversations its bearer sees.
    #[sqlx(flatten)]
    pub access: Access,
    /// What its bearer may do: words separated by spaces.
    pub scopes: String,
    /// A name for people, possibly empty.
    pub name: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// The time from which it is not valid.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked, or the key that it was opened with.
    pub revoked_at: Option<DateTime<Utc>>,
    /// When it was last used, to a minute or so.
    pub last_used_at: Option<DateTime<Utc>>,
}

impl ApiKey {
    /// True when it is neither revoked nor expired at this time.
    pub fn is_valid_at(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}
