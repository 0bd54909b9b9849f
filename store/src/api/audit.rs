//! The audit trail: the actor, action, time, address and outcome of every audited request.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use serde_json::{Map, Value};

use super::Result;
use crate::error::StoreError;

/// The audit trail. An entry is written once and never changed. An entry outlives its subject. For gateways and
/// operators.
///
/// A call that changes the store writes its audit entry in the transaction of the change, therefore a change never
/// lacks its entry: [`Keys::create_key`], [`Keys::revoke_key`], [`Conversations::delete_conversation`],
/// [`OutsideTools::note_answer`].
///
/// [`Keys::create_key`]: super::Keys::create_key
/// [`Keys::revoke_key`]: super::Keys::revoke_key
/// [`Conversations::delete_conversation`]: super::Conversations::delete_conversation
/// [`OutsideTools::note_answer`]: super::OutsideTools::note_answer
#[async_trait]
pub trait AuditTrail: Send + Sync {
    /// Appends an entry.
    async fn append_audit(&self, new: &NewAuditEntry) -> Result<()>;

    /// Returns entries by rising id. A reader that continues after the last entry's id misses no entry.
    async fn audit_entries(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>>;

    /// Removes at most `limit` entries that are older than `before` and past their own retention. Returns their number.
    /// The newest entry stays, therefore the database never reuses an id.
    async fn prune_audit(&self, before: DateTime<Utc>, limit: u32) -> Result<u64>;
}

/// An entry to append. Texts are cut to [`NewAuditEntry::MAX_TEXT_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// The tenant that may read the entry; `None`: the tenant is unknown, and only operators may read the entry.
    pub tenant_id: Option<String>,
    /// The actor.
    pub actor: AuditActor,
    /// The action.
    pub action: AuditAction,
    /// The target of the action.
    pub target: AuditTarget,
    /// The outcome of the action.
    pub outcome: AuditOutcome,
    /// The client address of the request, if known.
    pub address: Option<String>,
    /// The id of the request, if any.
    pub request_id: Option<String>,
    /// The details, without secrets and without texts of conversations. Details above
    /// [`NewAuditEntry::MAX_DETAIL_BYTES`] are left out.
    pub details: Map<String, Value>,
    /// The minimum retention of the entry, in days.
    pub keep_days: u32,
}

impl NewAuditEntry {
    /// The most bytes of a text.
    pub const MAX_TEXT_BYTES: usize = 255;
    /// The minimum retention without a configuration, in days: a year, and the month of the review.
    pub const DEFAULT_KEEP_DAYS: u32 = 400;
    /// The most bytes of the details, as JSON.
    pub const MAX_DETAIL_BYTES: usize = 4096;
}

/// The actor of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditActor {
    /// The actor's kind of authentication.
    pub kind: AuditActorKind,
    /// The id of the key or session, the subject of the token, or the user of the command; `None` for an unknown actor.
    pub id: Option<String>,
}

/// The target of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTarget {
    /// The kind of the target.
    pub kind: AuditTargetKind,
    /// The target's id.
    pub id: String,
}

/// A query for entries. The default query starts with the first entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries with a larger id.
    pub after: u64,
    /// Only entries of the tenant; `None`: every entry, also without a tenant.
    pub tenant_id: Option<String>,
    /// Only entries with the action.
    pub action: Option<AuditAction>,
    /// Only entries with the actor's id.
    pub actor: Option<String>,
    /// Only entries at or after the time.
    pub since: Option<DateTime<Utc>>,
    /// Only entries before the time.
    pub until: Option<DateTime<Utc>>,
    /// The most entries.
    pub limit: u32,
}

impl Default for AuditQuery {
    fn default() -> Self {
        Self {
            after: 0,
            tenant_id: None,
            action: None,
            actor: None,
            since: None,
            until: None,
            limit: 1000,
        }
    }
}

/// A stored entry.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct AuditEntry {
    /// The entry's number. Entries have numbers without gaps, in the order of storing.
    #[sqlx(try_from = "i64")]
    pub id: u64,
    /// When it was written.
    pub at: DateTime<Utc>,
    /// The tenant that may read the entry.
    pub tenant_id: Option<String>,
    /// The actor's kind of authentication.
    #[sqlx(try_from = "String")]
    pub actor_kind: AuditActorKind,
    /// The actor's id.
    pub actor_id: Option<String>,
    /// The action.
    #[sqlx(try_from = "String")]
    pub action: AuditAction,
    /// The kind of the target.
    #[sqlx(try_from = "String")]
    pub target_kind: AuditTargetKind,
    /// The target's id.
    pub target_id: String,
    /// The outcome of the action.
    #[sqlx(try_from = "String")]
    pub outcome: AuditOutcome,
    /// The client address of the request, if known.
    pub address: Option<String>,
    /// The id of the request, if any.
    pub request_id: Option<String>,
    /// The details.
    #[sqlx(try_from = "String")]
    pub details: AuditDetails,
}

/// The details of a stored entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditDetails(pub Map<String, Value>);

impl TryFrom<String> for AuditDetails {
    type Error = StoreError;

    fn try_from(text: String) -> Result<Self> {
        let read = serde_json::from_str(&text).map(Self);
        read.map_err(|error| StoreError::Corrupt(format!("the details of an entry: {error}")))
    }
}
