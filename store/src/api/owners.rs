//! Owners with refused credentials: an admin has ended the owner's sessions, or refuses the owner.
//!
//! A token's scopes are in the token only, so the store cannot know the rights of an owner. The state of an owner
//! therefore has two halves: one for credentials with rights over one tenant, and one for credentials with rights over
//! every tenant ([`Reach`]).

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

    /// Changes the state of an owner by an admin with the reach, together with the audit entry. The row stays for `keep`,
    /// the longest lifetime of a token or session, and as long as the owner is refused. The call also removes a few rows
    /// that are over.
    async fn change_owner(
        &self,
        tenant_id: &str,
        owner_id: &str,
        change: OwnerChange,
        by: Reach,
        keep: TimeDelta,
        audit: &NewAuditEntry,
    ) -> Result<ChangedOwner>;
}

/// The tenants that a credential has rights over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The tenant of the credential.
    Tenant,
    /// Every tenant.
    All,
}

impl Reach {
    /// Returns true if an admin with the reach may end a credential with the reach `other`. An admin of one tenant ends no
    /// credential with rights over every tenant.
    pub fn covers(self, other: Self) -> bool {
        self == Self::All || other == Self::Tenant
    }
}

/// The outcome of a change of an owner's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedOwner {
    /// The owner has the state.
    Done,
    /// The tenant has the most rows, and nothing was changed.
    TooMany,
    /// An admin of every tenant refuses the owner. Nothing was changed, because an admin of one tenant may not allow the
    /// owner.
    RefusedByAll,
}

/// A change of an owner's state by an admin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerChange {
    /// Ends every token and session of the owner that was issued until now, and that the admin's reach covers.
    EndSessions,
    /// Ends every token and session, and refuses every credential of the owner that the admin's reach covers.
    Refuse,
    /// Allows a refused owner. Ended tokens and sessions stay ended. Does nothing for another owner.
    Allow,
}

/// The state of an owner. The default state refuses no credential. A change by an admin of every tenant sets both halves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct OwnerState {
    /// True while credentials of the owner with rights over one tenant are refused.
    pub is_refused: bool,
    /// Tokens and sessions of sign-ins up to the time are refused, unless they have rights over every tenant.
    pub ended_at: Option<DateTime<Utc>>,
    /// True while every credential of the owner is refused.
    pub is_all_refused: bool,
    /// Every token and session of a sign-in up to the time is refused.
    pub all_ended_at: Option<DateTime<Utc>>,
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
    /// Returns why a credential of the owner with the reach is refused. `signed_in_at` is the time of the sign-in behind a
    /// token or a session; `None`: the credential is a key, which has no sign-in.
    pub fn refusal(
        &self,
        reach: Reach,
        signed_in_at: Option<DateTime<Utc>>,
    ) -> Option<OwnerRefusal> {
        let (is_refused, ended_at) = match reach {
            Reach::Tenant => (self.is_refused, self.ended_at),
            Reach::All => (self.is_all_refused, self.all_ended_at),
        };
        if is_refused {
            return Some(OwnerRefusal::Refused);
        }
        let has_ended = signed_in_at
            .zip(ended_at)
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
