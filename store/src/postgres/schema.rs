//! The version of the tables: migrated by `everturn migrate`, checked by everyone else.

use sqlx::{Connection, Error, PgConnection, migrate::Migrator};

use super::server;
use crate::{api::Result, error::StoreError};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations/postgres");

/// SQLSTATE of a table that does not exist.
const UNDEFINED_TABLE: &str = "42P01";

/// Forward only. sqlx takes an advisory lock of the database around all of it, and each migration is a transaction.
pub(super) async fn migrate(url: &str) -> Result<()> {
    // No time-outs: a migration takes as long as it takes.
    let mut connection = server::connect(url).await?;
    let done = MIGRATOR.run_direct(None, &mut connection, false).await;
    // Closing ends the session, and with it the lock when the migration failed.
    let closed = connection.close().await;
    done?;
    Ok(closed?)
}

/// Refuses tables of another version, saying what to do.
pub(super) async fn check(connection: &mut PgConnection) -> Result<()> {
    let text = "SELECT MAX(version) FROM _sqlx_migrations WHERE success";
    let found = sqlx::query_scalar(text).fetch_one(connection).await;
    let found: Option<i64> = match found {
        Err(Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => None,
        other => other?,
    };
    let (found, expected) = (found.unwrap_or(0), newest());
    match found.cmp(&expected) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(StoreError::Corrupt(format!(
            "its tables are of version {found}, this Everturn needs version {expected}; run `everturn migrate`"
        ))),
        std::cmp::Ordering::Greater => Err(StoreError::Corrupt(format!(
            "its tables are of version {found}, newer than this Everturn, which knows version {expected}; update it"
        ))),
    }
}

fn newest() -> i64 {
    MIGRATOR
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}
