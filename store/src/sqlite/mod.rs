//! The embedded back end: one file, one writer, readers beside it.
//!
//! SQLite has one writer at a time for the whole file, so the row lock of invariant 2 is `BEGIN IMMEDIATE`: it
//! waits (busy time-out) for writers of other processes, then owns the file until it commits. In this process one
//! connection writes, which queues writers fairly in memory instead of letting them poll the file's lock.
//!
//! - `options.rs`, `error.rs`: opening the file; errors by what the caller can do
//! - `reader.rs`, `conversations.rs`, `turns.rs`: the three traits
//! - `begin.rs`, `claims.rs`, `save.rs`: the transactions behind `TurnStore`
//! - `snapshot.rs`, `write.rs`: what a batch reads and writes

mod begin;
mod claims;
mod conversations;
mod error;
mod options;
mod reader;
mod save;
mod snapshot;
mod turns;
mod write;

use std::path::Path;

use sqlx::{Sqlite, SqlitePool, Transaction, migrate::Migrator};

pub use options::SqliteOptions;

use crate::api::Result;
use error::{migration_error, sql_error};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations/sqlite");

/// The store in one SQLite file. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    write: SqlitePool,
    read: SqlitePool,
}

impl SqliteStore {
    /// Opens the file, creating it and its folder when missing, and brings its tables up to date. Several
    /// processes may have the same file open, and may open it at the same time.
    pub async fn open(path: &Path, options: SqliteOptions) -> Result<Self> {
        options::create_parent(path)?;
        let write = options.writer(path).await?;
        migrate(&write).await?;
        let read = options.readers(path);
        Ok(Self { write, read })
    }

    /// A store that is gone with its last clone, for tests. Reads and writes share one connection.
    pub async fn open_in_memory() -> Result<Self> {
        let write = SqliteOptions::default().in_memory().await?;
        migrate(&write).await?;
        Ok(Self { read: write.clone(), write })
    }

    /// Waits for running statements and closes the file. Later calls give `Unavailable`.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }

    /// Begins a transaction that may write. Dropping it rolls it back.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
        self.write.begin_with("BEGIN IMMEDIATE").await.map_err(sql_error)
    }
}

async fn commit(transaction: Transaction<'static, Sqlite>) -> Result<()> {
    transaction.commit().await.map_err(sql_error)
}

/// sqlx takes no lock on SQLite while it migrates, so two processes that start together would both try: the
/// whole of it is one transaction here, and the second process finds the work done.
async fn migrate(pool: &SqlitePool) -> Result<()> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.map_err(sql_error)?;
    MIGRATOR.run_direct(None, &mut *transaction, false).await.map_err(migration_error)?;
    commit(transaction).await
}
