//! Makes entries of the audit trail, and writes them.

use std::sync::Arc;

use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{AuditActor, AuditTarget, AuditTrail, NewAuditEntry, StoreError};
use serde_json::{Map, Value};

use super::{reads::Reads, source::Source};

/// Writes entries.
#[derive(Clone)]
pub(crate) struct Audit {
    trail: Arc<dyn AuditTrail>,
    keep_days: u32,
    reads: Reads,
}

impl Audit {
    pub(crate) fn new(trail: Arc<dyn AuditTrail>, keep_days: u32) -> Self {
        Self {
            trail,
            keep_days,
            reads: Reads::new(),
        }
    }

    /// Makes the entry of a caller's action, with the outcome `done`.
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

    /// Makes the entry of an action by an unknown actor.
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

    /// Appends the entry of a read by an admin, unless a recent entry stands for the read. `tenant` is the tenant whose
    /// data the caller reads; `None`: every tenant.
    pub(crate) async fn note_read(
        &self,
        doer: &impl Doer,
        action: AuditAction,
        tenant: Option<&str>,
    ) -> Result<(), StoreError> {
        let target = (AuditTargetKind::Tenant, tenant.unwrap_or_default());
        let entry = self.entry(doer, action, target);
        if !self.reads.have(&entry) {
            self.append(&entry).await?;
            self.reads.note(&entry);
        }
        Ok(())
    }

    /// Appends an entry. A handler must append the entry before the handler reports the action as done.
    pub(crate) async fn append(&self, entry: &NewAuditEntry) -> Result<(), StoreError> {
        self.trail.append_audit(entry).await
    }
}

/// The actor of an entry.
pub(crate) trait Doer {
    /// Returns the tenant that may read the entry.
    fn tenant_id(&self) -> &str;

    /// Returns the actor's kind and id.
    fn actor(&self) -> AuditActor;

    /// Returns the principal behind the actor's session. Returns `None` for an actor without a session.
    fn principal_of_session(&self) -> Option<&str>;

    /// Returns the source of the request.
    fn source(&self) -> &Source;
}

/// Adds details to an entry.
pub(crate) trait WithDetails {
    /// Returns the entry with a further detail.
    #[must_use]
    fn with(self, name: &str, value: impl Into<Value>) -> Self;
}

impl WithDetails for NewAuditEntry {
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}
