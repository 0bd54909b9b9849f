//! `everturn migrate`: schema and search attributes.

use std::process::ExitCode;

use everturn_supervisor::shutdown;

use crate::{cli::Common, connections};

/// Prepares the database and Temporal. Safe to repeat and to run on several machines at once.
pub async fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    connections::check(common)?;
    connections::migrate_store(common, &shutdown).await?;
    println!(
        "database    {} is up to date",
        connections::without_password(&common.database())
    );
    let client = connections::temporal(common, &shutdown).await?;
    connections::register_search_attributes(&client, &shutdown).await?;
    println!(
        "temporal    search attributes are registered in namespace {}",
        client.options().namespace
    );
    Ok(ExitCode::SUCCESS)
}
