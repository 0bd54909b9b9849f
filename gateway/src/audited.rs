//! Entries of the audit trail as the API and `everturn audit --json` show them.

use everturn_store::AuditEntry;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::listed::time;

/// An entry of the audit trail. Skip words that you do not know; there will be more.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryBody {
    /// Its place: entries have numbers without gaps, in their order.
    id: u64,
    #[schema(format = DateTime)]
    at: String,
    /// Null: no tenant is known. Only admins of all tenants see these.
    #[schema(required = true)]
    tenant: Option<String>,
    actor: AuditActorBody,
    #[schema(example = "key_created")]
    action: String,
    target: AuditTargetBody,
    /// `requested`, `done` or `refused`.
    #[schema(example = "done")]
    outcome: String,
    /// Where the request came from; null for what came by no request.
    #[schema(required = true, example = "192.0.2.1")]
    address: Option<String>,
    /// The id of the request, as in the header `x-request-id` and in the log.
    #[schema(required = true)]
    request_id: Option<String>,
    /// The details, which depend on the action: see `docs/operate/audit.md`.
    details: Map<String, Value>,
}

/// Who did it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditActor)]
struct AuditActorBody {
    /// `key`, `session`, `token`, `operator`, `anonymous` or `process`.
    #[schema(example = "key")]
    kind: String,
    /// The id of the key or session, the subject of the token, the user of the command; null when nobody is known.
    #[schema(required = true)]
    id: Option<String>,
}

/// What it was done to.
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
