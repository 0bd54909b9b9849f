//! What a gateway writes to the audit trail of what callers do. See `docs/operate/audit.md`.
//!
//! - `source`: where a request comes from
//! - `refusals`: credentials that are refused, of which only so many are written
//!
//! What must not be here: texts of conversations, secrets, and what only reads.

mod refusals;
mod source;

use std::sync::Arc;

use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{AuditActor, AuditTarget, AuditTrail, NewAuditEntry, StoreError};
use serde_json::{Map, Value};

pub(crate) use self::refusals::Refusals;
pub use self::source::Source;
use crate::http::auth::{Caller, Credential};

/// Writes entries.
#[derive(Clone)]
pub(crate) struct Audit {
    trail: Arc<dyn AuditTrail>,
    keep_days: u32,
}

impl Audit {
    pub(crate) fn new(trail: Arc<dyn AuditTrail>, keep_days: u32) -> Self {
        Self { trail, keep_days }
    }

    /// Makes the entry of what a caller does, as if it were done.
    pub(crate) fn entry(
        &self,
        caller: &Caller,
        action: AuditAction,
        target: (AuditTargetKind, &str),
    ) -> NewAuditEntry {
        let mut details = Map::new();
        if let Credential::Session(_) = &caller.credential
            && let Some(principal) = &caller.principal
        {
            details.insert("principal".to_owned(), principal.as_str().into());
        }
        NewAuditEntry {
            tenant_id: Some(caller.access.tenant_id.clone()),
            actor: actor(caller),
            details,
            ..self.blank(&caller.source, action, target)
        }
    }

    /// Makes the entry of what somebody does whom nobody knows.
    fn blank(
        &self,
        source: &Source,
        action: AuditAction,
        target: (AuditTargetKind, &str),
    ) -> NewAuditEntry {
        let (kind, id) = target;
        NewAuditEntry {
            tenant_id: None,
            actor: AuditActor {
                kind: AuditActorKind::Anonymous,
                id: String::new(),
            },
            action,
            target: AuditTarget {
                kind,
                id: id.to_owned(),
            },
            outcome: AuditOutcome::Done,
            address: source.address_text(),
            request_id: source.request_id.clone(),
            details: Map::new(),
            keep_days: self.keep_days,
        }
    }

    /// Appends an entry. Nothing may be answered as done before it is there.
    pub(crate) async fn append(&self, entry: &NewAuditEntry) -> Result<(), StoreError> {
        self.trail.append_audit(entry).await
    }
}

fn actor(caller: &Caller) -> AuditActor {
    let (kind, id) = match &caller.credential {
        Credential::Anonymous => (AuditActorKind::Anonymous, None),
        Credential::Key(id) => (AuditActorKind::Key, Some(id)),
        Credential::Session(id) => (AuditActorKind::Session, Some(id)),
        Credential::Token => (AuditActorKind::Token, caller.access.owner_id.as_ref()),
    };
    AuditActor {
        kind,
        id: id.cloned().unwrap_or_default(),
    }
}

/// Adds to the details of an entry.
pub(crate) trait WithDetails {
    /// The entry with this, too.
    #[must_use]
    fn with(self, name: &str, value: impl Into<Value>) -> Self;
}

impl WithDetails for NewAuditEntry {
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}
