//! Makes entries of the audit trail, and writes them.

use std::sync::Arc;

use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{AuditActor, AuditTarget, AuditTrail, NewAuditEntry, StoreError};
use serde_json::{Map, Value};

use super::source::Source;

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
        doer: &impl Doer,
        action: AuditAction,
        target: (AuditTargetKind, &str),
    ) -> NewAuditEntry {
        let mut details = Map::new();
        if let Some(principal) = doer.principal_of_session() {
            details.insert("principal".to_owned(), principal.into());
        }
        NewAuditEntry {
            tenant_id: Some(doer.tenant_id().to_owned()),
            actor: doer.actor(),
            details,
            ..self.blank(doer.source(), action, target)
        }
    }

    /// Makes the entry of what somebody does whom nobody knows.
    pub(super) fn blank(
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
                id: None,
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

/// Who does something, as the trail tells of them.
pub(crate) trait Doer {
    /// Whose the entry is to see.
    fn tenant_id(&self) -> &str;

    /// Who they are.
    fn actor(&self) -> AuditActor;

    /// Whose session it is, when they proved who they are with one.
    fn principal_of_session(&self) -> Option<&str>;

    /// Where the request comes from.
    fn source(&self) -> &Source;
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
