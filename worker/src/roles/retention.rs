//! `everturn retention`: removes old conversations and other old data in bounded batches.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use everturn_config::Config;
use everturn_proto::words::{AuditAction, AuditOutcome, AuditTargetKind};
use everturn_store::{
    AuditTrail, BlobFiles, NewAuditEntry, Removed, Retention, StoreError, TenantUsage,
};
use everturn_supervisor::shutdown;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    audit::by_operator,
    cli::{Common, RetentionOptions},
    connections,
};

/// The most conversations of one transaction. The number is small, because a long transaction delays the rest.
const BATCH: u32 = 100;

/// The most rows of a large conversation in one transaction. Removing the rows takes a few hundred milliseconds.
const MAX_ROWS: u32 = 10_000;

/// The most definitions of agents of one transaction. The transaction keeps turns with the definitions waiting.
const DEFINITIONS: u32 = 100;

/// The most audit entries of one transaction.
const AUDIT_BATCH: u32 = 1000;

/// The time for which the tenants' daily usage is kept, even after their conversations are removed: a year, plus a
/// month to read it.
const KEPT_USAGE: chrono::Duration = chrono::Duration::days(400);

/// After this number of failed removals in a row, the cause is not a single conversation, and the command fails.
const MAX_KEPT: u32 = 10;

/// Removes old conversations, or prints what would be removed. A signal stops the command between two batches; the
/// next run continues.
pub async fn run(common: &Common, options: RetentionOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let before = Utc::now() - chrono::Duration::from_std(options.older_than)?;
    let config = Config::load_for_gateway(common.config.as_deref())?;
    let keep_days = config.gateway.audit.keep_days;
    let store = connections::store_of_command(common, &shutdown).await?;
    let blobs = config.blobs.files(store.blobs.clone())?;
    let (usage, audit, store) = (store.usage, store.audit, store.retention);
    let at = before.format("%Y-%m-%d %H:%M:%S UTC");
    if options.dry_run {
        let expired = store.count_expired(before).await?;
        println!(
            "would remove {} whose last event is before {at}",
            counted(expired)
        );
        return Ok(ExitCode::SUCCESS);
    }
    let entry = begun(audit.as_ref(), before, keep_days).await?;
    let mut run = Run {
        retention: store.as_ref(),
        before,
        total: Removed::default(),
        kept: 0,
    };
    let is_done = run.remove_all(&shutdown).await? && run.remove_rest(&shutdown).await?;
    println!(
        "removed {} whose last event was before {at}",
        counted(run.total)
    );
    ended(audit.as_ref(), entry, &run).await?;
    forget_definitions(store.as_ref(), &shutdown).await?;
    prune(audit.as_ref(), keep_days).await?;
    forget_usage(usage.as_ref(), before).await?;
    remove_files(&blobs).await?;
    if run.kept > 0 {
        println!(
            "kept {} conversations that could not be removed; see the errors above, and run the command again",
            run.kept
        );
    }
    if !is_done {
        println!("stopped; run the command again to go on");
    }
    Ok(if is_done && run.kept == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes an audit entry at the beginning, so every removal has an entry.
async fn begun(
    audit: &dyn AuditTrail,
    before: DateTime<Utc>,
    keep_days: u32,
) -> anyhow::Result<NewAuditEntry> {
    let before = before.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let mut entry = by_operator(
        AuditAction::RetentionRun,
        None,
        (AuditTargetKind::Tenant, ""),
        json!({ "before": before }),
        keep_days,
    );
    entry.outcome = AuditOutcome::Requested;
    audit.append_audit(&entry).await?;
    Ok(entry)
}

/// Writes an audit entry with the number of removed conversations.
async fn ended(
    audit: &dyn AuditTrail,
    mut entry: NewAuditEntry,
    run: &Run<'_>,
) -> anyhow::Result<()> {
    entry.outcome = AuditOutcome::Done;
    let counts = [
        ("conversations", run.total.conversations),
        ("events", run.total.events),
        ("kept", run.kept.into()),
    ];
    let counts = counts.map(|(name, count)| (name.to_owned(), count.into()));
    entry.details.extend(counts);
    Ok(audit.append_audit(&entry).await?)
}

/// Removes the definitions of agents that no agent execution names any more.
async fn forget_definitions(
    store: &dyn Retention,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let mut removed = 0;
    while !shutdown.is_cancelled() {
        let batch = store.remove_definitions(DEFINITIONS).await?;
        removed += batch;
        if batch == 0 {
            break;
        }
    }
    if removed > 0 {
        println!("removed {removed} definitions of agents without a turn");
    }
    Ok(())
}

/// Removes the old sums of tenants' usage.
async fn forget_usage(usage: &dyn TenantUsage, before: DateTime<Utc>) -> anyhow::Result<()> {
    let oldest = before.min(Utc::now() - KEPT_USAGE);
    let oldest = oldest.format("%Y-%m-%d").to_string();
    let days = usage.forget_usage(&oldest).await?;
    if days > 0 {
        println!("removed {days} daily sums of the tenants' usage before {oldest}");
    }
    Ok(())
}

/// Removes audit entries after their retention: an entry must exceed both the current `keep_days` and the `keep_days`
/// at the time of writing.
async fn prune(audit: &dyn AuditTrail, keep_days: u32) -> anyhow::Result<()> {
    let before = Utc::now() - chrono::Duration::days(keep_days.into());
    let mut removed = 0;
    loop {
        let batch = audit.prune_audit(before, AUDIT_BATCH).await?;
        removed += batch;
        if batch < AUDIT_BATCH.into() {
            break;
        }
    }
    if removed > 0 {
        println!(
            "removed {removed} entries of the audit trail that are older than {keep_days} days"
        );
    }
    Ok(())
}

/// Removes files without a message, and objects of removed files.
async fn remove_files(blobs: &BlobFiles) -> anyhow::Result<()> {
    let files = blobs.remove_unattached().await?;
    if files > 0 {
        println!(
            "removed {files} files that were uploaded more than a day ago and have no message"
        );
    }
    let objects = blobs.remove_objects().await?;
    if objects > 0 {
        println!("removed {objects} objects of removed files");
    }
    Ok(())
}

/// A run of the command.
struct Run<'a> {
    retention: &'a dyn Retention,
    before: DateTime<Utc>,
    total: Removed,
    /// Conversations that could not be removed.
    kept: u32,
}

impl Run<'_> {
    /// Removes batch after batch, and skips conversations that cannot be removed. Returns false after a stop signal.
    async fn remove_all(&mut self, shutdown: &CancellationToken) -> anyhow::Result<bool> {
        let (mut after, mut limit, mut kept_in_a_row) = (None::<String>, BATCH, 0);
        loop {
            let batch = self
                .retention
                .remove_expired(self.before, after.as_deref(), limit)
                .await;
            match batch {
                Ok(batch) => {
                    (limit, kept_in_a_row) = (BATCH, 0);
                    self.total.conversations += batch.removed.conversations;
                    self.total.events += batch.removed.events;
                    if batch.removed.conversations > 0 {
                        println!("removed {} so far", counted(self.total));
                    }
                    after = batch.next;
                    if after.is_none() {
                        return Ok(true);
                    }
                }
                // A single conversation may have failed the batch. Therefore the next transactions remove one
                // conversation each.
                Err(_) if limit > 1 => limit = 1,
                Err(error) if kept_in_a_row < MAX_KEPT => {
                    after = self.pass_by(after.as_deref(), &error).await?;
                    kept_in_a_row += 1;
                    if after.is_none() {
                        return Ok(true);
                    }
                }
                Err(error) => return Err(error.into()),
            }
            if shutdown.is_cancelled() {
                return Ok(false);
            }
        }
    }

    /// Removes the rows of large conversations, also of an earlier run and of deleted conversations. Returns false after a
    /// stop signal.
    async fn remove_rest(&self, shutdown: &CancellationToken) -> anyhow::Result<bool> {
        let mut failed_in_a_row = 0;
        loop {
            if shutdown.is_cancelled() {
                return Ok(false);
            }
            match self.retention.remove_rest(MAX_ROWS).await {
                Ok(true) => failed_in_a_row = 0,
                Ok(false) => return Ok(true),
                // The next transaction removes the late row of a worker.
                Err(_) if failed_in_a_row < MAX_KEPT => failed_in_a_row += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Prints the conversation that cannot be removed. Returns its id, after which the next batch begins. An error
    /// means: the database is away.
    async fn pass_by(
        &mut self,
        after: Option<&str>,
        error: &StoreError,
    ) -> anyhow::Result<Option<String>> {
        let id = self.retention.next_expired(self.before, after).await?;
        if let Some(id) = &id {
            self.kept += 1;
            println!("could not remove conversation {id}: {error}");
        }
        Ok(id)
    }
}

fn counted(removed: Removed) -> String {
    format!(
        "{} conversations with {} events",
        removed.conversations, removed.events
    )
}
