//! `everturn audit`: prints the audit trail.

use std::{
    io::{self, Write, stdout},
    process::ExitCode,
};

use anyhow::Context;
use chrono::Utc;
use everturn_gateway::AuditEntryBody;
use everturn_proto::words::AuditAction;
use everturn_store::{AuditEntry, AuditQuery};
use everturn_supervisor::shutdown;
use everturn_terminal::show;

use crate::{
    cli::{AuditOptions, Common},
    connections,
};

/// The number of entries per query.
const PAGE: u32 = 500;

/// Prints the entries page by page, the oldest first.
pub async fn run(common: &Common, options: AuditOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let trail = connections::store_of_command(common, &shutdown)
        .await?
        .audit;
    let mut query = AuditQuery {
        tenant_id: options.tenant,
        action: options.action.map(AuditAction::from),
        actor: options.actor,
        since: options.since,
        // Entries that are written during the command are left out.
        until: Some(Utc::now()),
        limit: PAGE,
        ..AuditQuery::default()
    };
    let mut is_empty = true;
    loop {
        let entries = trail.audit_entries(&query).await;
        let entries = entries.context("cannot read the audit trail")?;
        let Some(last) = entries.last() else { break };
        query.after = last.id;
        if is_empty && !options.json && show::is_closed(print(&header()))? {
            break;
        }
        is_empty = false;
        let text = text(entries, options.json)?;
        if shutdown.is_cancelled() || show::is_closed(print(&text))? {
            break;
        }
    }
    if is_empty && !options.json {
        println!("no entries");
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn text(entries: Vec<AuditEntry>, is_json: bool) -> anyhow::Result<String> {
    let mut text = String::new();
    for entry in entries {
        if is_json {
            text.push_str(&serde_json::to_string(&AuditEntryBody::from(entry))?);
            text.push('\n');
        } else {
            text.push_str(&line(&entry));
        }
    }
    Ok(text)
}

fn header() -> String {
    columns([
        "TIME", "OUTCOME", "ACTION", "TENANT", "ACTOR", "TARGET", "ADDRESS", "DETAILS",
    ])
}

fn line(entry: &AuditEntry) -> String {
    let named = |kind: &str, id: &str| {
        if id.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind} {id}")
        }
    };
    let details = if entry.details.0.is_empty() {
        String::new()
    } else {
        serde_json::to_string(&entry.details.0).unwrap_or_default()
    };
    columns([
        &entry.at.format("%Y-%m-%d %H:%M:%S").to_string(),
        entry.outcome.as_str(),
        entry.action.as_str(),
        entry.tenant_id.as_deref().unwrap_or("-"),
        &named(
            entry.actor_kind.as_str(),
            entry.actor_id.as_deref().unwrap_or_default(),
        ),
        &named(entry.target_kind.as_str(), &entry.target_id),
        entry.address.as_deref().unwrap_or("-"),
        &details,
    ])
}

/// Returns a line of cells. The columns have fixed widths, because pages are printed as they arrive. Characters that
/// could control a terminal are replaced.
fn columns(cells: [&str; 8]) -> String {
    const WIDTHS: [usize; 8] = [19, 9, 20, 12, 24, 40, 15, 0];
    let cells = cells.into_iter().zip(WIDTHS).map(|(cell, width)| {
        let cell = cell.replace(char::is_control, "\u{fffd}");
        format!("{cell:<width$}")
    });
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use everturn_proto::words::{AuditActorKind, AuditOutcome, AuditTargetKind};

    use super::*;

    #[test]
    fn a_line_steers_no_terminal() {
        let entry = AuditEntry {
            id: 1,
            at: DateTime::UNIX_EPOCH,
            tenant_id: Some("acme".to_owned()),
            actor_kind: AuditActorKind::Operator,
            actor_id: Some("ann\u{1b}[2J".to_owned()),
            action: AuditAction::KeyCreated,
            target_kind: AuditTargetKind::Key,
            target_id: "0011223344556677".to_owned(),
            outcome: AuditOutcome::Done,
            address: None,
            request_id: None,
            details: everturn_store::AuditDetails::default(),
        };
        assert_eq!(
            line(&entry),
            "1970-01-01 00:00:00  done       key_created           acme          operator ann\u{fffd}[2J          \
             key 0011223344556677                      -\n"
        );
    }
}
