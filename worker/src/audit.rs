//! Writes audit entries about the actions of operators and processes. See `docs/operate/audit.md`.

use std::{env, sync::Arc, time::Duration};

use everturn_config::Config;
use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{AuditActor, AuditTarget, AuditTrail, NewAuditEntry};
use serde_json::{Map, Value, json};

use crate::version::version;

/// The number of attempts to write the entry of a start while the store is away, and the pause between two attempts.
const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the entry of an operator's command, with the outcome "done".
pub(crate) fn by_operator(
    action: AuditAction,
    tenant_id: Option<String>,
    target: (AuditTargetKind, &str),
    details: Value,
    keep_days: u32,
) -> NewAuditEntry {
    entry(
        (AuditActorKind::Operator, &user()),
        action,
        tenant_id,
        target,
        details,
        keep_days,
    )
}

fn entry(
    (kind, id): (AuditActorKind, &str),
    action: AuditAction,
    tenant_id: Option<String>,
    target: (AuditTargetKind, &str),
    details: Value,
    keep_days: u32,
) -> NewAuditEntry {
    let details = match details {
        Value::Object(details) => details,
        _ => Map::new(),
    };
    NewAuditEntry {
        tenant_id,
        actor: AuditActor {
            kind,
            id: Some(id.to_owned()),
        },
        action,
        target: AuditTarget {
            kind: target.0,
            id: target.1.to_owned(),
        },
        outcome: AuditOutcome::Done,
        address: None,
        request_id: None,
        details,
        keep_days,
    }
}

/// Returns the user of the command, as named by the environment. The name is no proof, because anyone with access to
/// the database can set another name.
fn user() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_default()
}

/// Writes an audit entry with this process's configuration, in a task of its own. While the store is away, the task
/// tries again for a while; after the last attempt, the log reports the missing entry.
pub(crate) fn tell_configuration(trail: Arc<dyn AuditTrail>, role: &'static str, config: &Config) {
    let details = json!({
        "role": role,
        "version": version(),
        "agents": config.agents.len(),
        "auth_required": config.gateway.auth.required,
    });
    let entry = entry(
        (AuditActorKind::Process, role),
        AuditAction::ConfigurationLoaded,
        None,
        (AuditTargetKind::Configuration, &config.hash),
        details,
        config.gateway.audit.keep_days,
    );
    tokio::spawn(async move {
        for tried in 1..=TRIES {
            match trail.append_audit(&entry).await {
                Ok(()) => return,
                Err(error) if error.is_retryable() && tried < TRIES => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "the audit trail has no record of the start");
                    return;
                }
            }
        }
    });
}
