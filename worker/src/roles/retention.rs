//! `everturn retention`: removes old conversations in bounded batches.

use std::process::ExitCode;

use chrono::Utc;
use everturn_store::Removed;

use crate::{
    cli::{Common, RetentionOptions},
    connections, shutdown,
};

/// Conversations that one transaction removes: so few that no other transaction waits long.
const BATCH: u32 = 100;

/// Removes what is older than asked for, or says what would be. Stops between two batches when told to; running it
/// again goes on.
pub async fn run(common: &Common, options: RetentionOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let before = Utc::now() - chrono::Duration::from_std(options.older_than)?;
    let store = connections::store_of_command(common, &shutdown)
        .await?
        .retention;
    let at = before.format("%Y-%m-%d %H:%M:%S UTC");
    if options.dry_run {
        let expired = store.count_expired(before).await?;
        println!(
            "would remove {} whose last event is before {at}",
            counted(expired)
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut total = Removed::default();
    let mut after: Option<String> = None;
    loop {
        let batch = store
            .remove_expired(before, after.as_deref(), BATCH)
            .await?;
        total.conversations += batch.removed.conversations;
        total.events += batch.removed.events;
        if batch.removed.conversations > 0 {
            println!("removed {} so far", counted(total));
        }
        after = batch.next;
        if after.is_none() {
            break;
        }
        if shutdown.is_cancelled() {
            println!("stopped; run it again to go on");
            return Ok(ExitCode::FAILURE);
        }
    }
    println!(
        "removed {} whose last event was before {at}",
        counted(total)
    );
    Ok(ExitCode::SUCCESS)
}

fn counted(removed: Removed) -> String {
    format!(
        "{} conversations with {} events",
        removed.conversations, removed.events
    )
}
