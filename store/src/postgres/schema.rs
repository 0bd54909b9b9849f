//! The version of the tables: migrated by `everturn migrate`, checked by everyone else.

use std::time::Duration;

use sqlx::{Connection, Error, PgConnection, migrate::Migrator};
use tokio::time::sleep;

use super::server;
use crate::{
    api::Result,
    error::StoreError,
    schema_range::{self, Tables},
};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations/postgres");

/// SQLSTATE of a table that does not exist.
const UNDEFINED_TABLE: &str = "42P01";

/// The advisory lock of those that migrate.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock(418581342581)";
/// The pause before it is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Forward only. Each migration is a transaction, unless it says otherwise. There is nothing to do to newer tables that this
/// version works with.
///
/// One process migrates at a time. The others ask again and again, and do not wait in a statement, as sqlx would: an index
/// that is built concurrently waits for all statements that began before, and so for theirs.
pub(super) async fn migrate(url: &str) -> Result<()> {
    // No time-outs: a migration takes as long as it takes.
    let mut connection = server::connect(url).await?;
    while !sqlx::query_scalar(TRY_LOCK)
        .fetch_one(&mut connection)
        .await?
    {
        sleep(LOCK_PAUSE).await;
    }
    let done = match found(&mut connection).await? {
        Tables::Newer | Tables::Current => Ok(()),
        Tables::Older(_) => MIGRATOR.run_direct(None, &mut connection, false).await,
    };
    // Closing ends the session, and with it the lock when the migration failed.
    let closed = connection.close().await;
    done?;
    Ok(closed?)
}

/// Refuses tables that this version does not work with, saying what to do.
pub(super) async fn check(connection: &mut PgConnection) -> Result<()> {
    match found(connection).await? {
        Tables::Current | Tables::Newer => Ok(()),
        Tables::Older(version) => {
            let own = schema_range::newest(&MIGRATOR);
            Err(StoreError::Corrupt(format!(
                "its tables are of version {version}, this Everturn needs version {own}; run `everturn migrate`"
            )))
        }
    }
}

/// Returns how the tables stand to this version.
async fn found(connection: &mut PgConnection) -> Result<Tables> {
    let own = schema_range::newest(&MIGRATOR);
    let found = number(connection, schema_range::VERSION)
        .await?
        .unwrap_or(0);
    let oldest = if found > own {
        number(connection, schema_range::OLDEST_VERSION).await?
    } else {
        None
    };
    schema_range::compare(found, oldest, own)
}

/// Selects a number; `None` when there is no such table.
async fn number(connection: &mut PgConnection, text: &'static str) -> Result<Option<i64>> {
    match sqlx::query_scalar(text).fetch_one(connection).await {
        Err(Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Ok(None),
        found => Ok(found?),
    }
}
