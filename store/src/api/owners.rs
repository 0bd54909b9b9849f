//! Owners with refused credentials: an admin has ended the owner's sessions, or refuses the owner.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::{NewAuditEntry, Result};

/// The owners with refused credentials. The most owners of a tenant are [`RefusedOwner::MAX_OF_TENANT`].
#[async_trait]
pub trait Owners: Send + Sync {
    /// Returns the state of an owner of a tenant.
    async fn owner_state(&self, tenant_id: &str, owner_id: &str) -> Result<OwnerState>;

    /// Returns the owners of a tenant with refused credentials, by id.
    async fn refused_owners(&self, tenant_id: &str) -> Result<Vec<RefusedOwner>>;

    /// Changes the state of an owner, together with the audit entry. The row stays for `keep`, the longest lifetime of a
    /// token or session, and as long as the owner is refused. The call also removes a few rows that are over. Returns
    /// false if the tenant has the most rows, and nothing was changed.
    async fn change_owner(
        &self,
        tenant_id: &str,
        owner_id: &str,
        change: OwnerChange,
        keep: TimeDelta,
        audit: &NewAuditEntry,
    ) -> Result<bool>;
}

/// A change of an owner's state by an admin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerChange {
    /// Ends every token and session of the owner that was issued until now.
    EndSessions,
    /// Ends every token and session, and refuses every credential of the owner.
    Refuse,
    /// Allows a refused owner. Ended tokens and sessions stay ended. Does nothing for another owner.
    Allow,
}

/// The state of an owner. The default state refuses no credential.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct OwnerState {
    /// True while every credential of the owner is refused.
    pub is_refused: bool,
    /// Tokens and sessions of sign-ins up to the time are refused.
    pub ended_at: Option<DateTime<Utc>>,
}

/// The reason why gateways refuse an owner's credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerRefusal {
    /// An admin has ended the sign-in.
    Ended,
    /// An admin refuses the owner.
    Refused,
}

impl OwnerState {
    /// Returns why a credential of the owner is refused. `signed_in_at` is the time of the sign-in behind a token or a
    /// session; `None`: the credential is a key, which has no sign-in.
    pub fn refusal(&self, signed_in_at: Option<DateTime<Utc>>) -> Option<OwnerRefusal> {
        if self.is_refused {
            return Some(OwnerRefusal::Refused);
        }
        let has_ended = signed_in_at
            .zip(self.ended_at)
            .is_some_and(|(signed_in_at, ended_at)| signed_in_at <= ended_at);
        has_ended.then_some(OwnerRefusal::Ended)
    }
}

/// An owner with refused credentials.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RefusedOwner {
    /// The owner: the subject of the owner's tokens.
    pub owner_id: String,
    /// The state of the owner.
    #[sqlx(flatten)]
    pub state: OwnerState,
}

impl RefusedOwner {
    /// The most owners with refused credentials in a tenant: some 100 KB of rows.
    pub const MAX_OF_TENANT: u32 = 1000;
}
