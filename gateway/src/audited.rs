//! The body of an audit entry, as the API and `everturn audit --json` show entries.

use everturn_store::AuditEntry;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::listed::time;

/// An entry of the audit trail. Ignore unknown words, because later versions add words.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryBody {
    /// The entry's position in the trail. Entries are numbered in order and without gaps.
    id: u64,
    #[schema(format = DateTime)]
    at: String,
    /// The tenant of the entry; null when no tenant is known. Only admins of every tenant see an entry without a
    /// tenant.
    #[schema(required = true)]
    tenant: Option<String>,
    actor: AuditActorBody,
    #[schema(example = "key_created")]
    action: String,
    target: AuditTargetBody,
    /// `requested`, `done` or `refused`.
    #[schema(example = "done")]
    outcome: String,
    /// The client's address; null when the action did not come from a request.
    #[schema(required = true, example = "192.0.2.1")]
    address: Option<String>,
    /// The id of the request, as in the header `x-request-id` and in the log.
    #[schema(required = true)]
    request_id: Option<String>,
    /// The details of the action. Their names depend on the action: see `docs/operate/audit.md`.
    details: Map<String, Value>,
}

/// The actor: a key, a session, a person or a process.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditActor)]
struct AuditActorBody {
    /// `key`, `session`, `token`, `operator`, `anonymous` or `process`.
    #[schema(example = "key")]
    kind: String,
    /// The id of the key or session, the subject of the token, or the user of the command; null when the actor is
    /// unknown.
    #[schema(required = true)]
    id: Option<String>,
}

/// The target of the action.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditTarget)]
struct AuditTargetBody {
    #[schema(example = "key")]
    kind: String,
    #[schema(required = true)]
    id: Option<String>,
}

impl From<AuditEntry> for AuditEntryBody {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: time(entry.at),
            tenant: entry.tenant_id,
            actor: AuditActorBody {
                kind: entry.actor_kind.into(),
                id: entry.actor_id,
            },
            action: entry.action.into(),
            target: AuditTargetBody {
                kind: entry.target_kind.into(),
                id: Some(entry.target_id).filter(|id| !id.is_empty()),
            },
            outcome: entry.outcome.into(),
            address: entry.address,
            request_id: entry.request_id,
            details: entry.details.0,
        }
    }
}
