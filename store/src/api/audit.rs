//! The audit trail: who did what, when, from where, and what became of it.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use serde_json::{Map, Value};

use super::Result;
use crate::error::StoreError;

/// The audit trail. An entry is written once and never changed; it outlives what it tells of. For gateways and operators.
///
/// What changes the store itself takes its entry along, and both are there or neither is: [`Keys::create_key`],
/// [`Keys::revoke_key`], [`Conversations::delete_conversation`], [`OutsideTools::note_answer`].
///
/// [`Keys::create_key`]: super::Keys::create_key
/// [`Keys::revoke_key`]: super::Keys::revoke_key
/// [`Conversations::delete_conversation`]: super::Conversations::delete_conversation
/// [`OutsideTools::note_answer`]: super::OutsideTools::note_answer
#[async_trait]
pub trait AuditTrail: Send + Sync {
    /// Appends an entry.
    async fn append_audit(&self, new: &NewAuditEntry) -> Result<()>;

    /// Returns entries in their order. Who reads on from the id of the last one misses none.
    async fn audit_entries(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>>;

    /// Removes at most `limit` entries that are older than `before` and whose own retention is over, and says how many.
    /// The newest entry stays, so that ids are never given again.
    async fn prune_audit(&self, before: DateTime<Utc>, limit: u32) -> Result<u64>;
}

/// An entry to append. Texts are cut to [`NewAuditEntry::MAX_TEXT_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// The tenant that sees the entry; `None`: no tenant is known, and only operators see it.
    pub tenant_id: Option<String>,
    /// Who did it.
    pub actor: AuditActor,
    /// What was done.
    pub action: AuditAction,
    /// What it was done to.
    pub target: AuditTarget,
    /// What became of it.
    pub outcome: AuditOutcome,
    /// The address that the request came from, if it is known.
    pub address: Option<String>,
    /// The id of the request, if there was one.
    pub request_id: Option<String>,
    /// The details, without secrets and without texts of conversations. What is larger than
    /// [`NewAuditEntry::MAX_DETAIL_BYTES`] is left out.
    pub details: Map<String, Value>,
    /// The number of days for which it cannot be removed.
    pub keep_days: u32,
}

impl NewAuditEntry {
    /// The most bytes of a text.
    pub const MAX_TEXT_BYTES: usize = 255;
    /// The most bytes of the details, as JSON.
    pub const MAX_DETAIL_BYTES: usize = 4096;
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditActor {
    /// How they proved who they are.
    pub kind: AuditActorKind,
    /// The id of the key or session, the subject of the token, the user of the command; `None` when nobody is known.
    pub id: Option<String>,
}

/// What something was done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTarget {
    /// The kind of thing.
    pub kind: AuditTargetKind,
    /// Its id.
    pub id: String,
}

/// Which entries are asked for. The default is the first of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only those behind the entry with this id.
    pub after: u64,
    /// Only those of this tenant; `None`: all, also those of no tenant.
    pub tenant_id: Option<String>,
    /// Only those of this action.
    pub action: Option<AuditAction>,
    /// Only those of the actor with this id.
    pub actor: Option<String>,
    /// Only those of this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Only those before this time.
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
    /// Its place: entries have numbers without gaps, in the order in which they were stored.
    #[sqlx(try_from = "i64")]
    pub id: u64,
    /// When it was written.
    pub at: DateTime<Utc>,
    /// The tenant that sees the entry.
    pub tenant_id: Option<String>,
    /// How who did it proved who they are.
    #[sqlx(try_from = "String")]
    pub actor_kind: AuditActorKind,
    /// Who did it.
    pub actor_id: Option<String>,
    /// What was done.
    #[sqlx(try_from = "String")]
    pub action: AuditAction,
    /// The kind of thing that it was done to.
    #[sqlx(try_from = "String")]
    pub target_kind: AuditTargetKind,
    /// The id of this thing.
    pub target_id: String,
    /// What became of it.
    #[sqlx(try_from = "String")]
    pub outcome: AuditOutcome,
    /// The address that the request came from, if it is known.
    pub address: Option<String>,
    /// The id of the request, if there was one.
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
