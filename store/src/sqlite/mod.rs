//! The embedded back end: one file, one writer, readers beside it.
//!
//! SQLite has one writer at a time for the whole file, so `BEGIN IMMEDIATE` is the lock of the conversation
//! (invariant 2, one order): it waits (busy time-out) for writers of other processes, then owns the file until it
//! commits. In this process one connection writes, which queues writers fairly in memory instead of letting them poll
//! the file's lock.
//!
//! - `options.rs`: opening the file
//! - `dialect.rs`: what SQLite does its own way
//! - `../backend/`: the bodies of the traits, the same text for both databases

#[path = "../backend/mod.rs"]
pub(crate) mod backend;
mod dialect;
mod options;

use std::{future::Future, path::Path};

use sqlx::{Sqlite, SqlitePool, Transaction, migrate::Migrator, pool::PoolConnection};

pub use options::SqliteOptions;

use crate::api::Result;

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
        Ok(Self {
            read: write.clone(),
            write,
        })
    }

    /// Waits for running statements and closes the file. Later calls give `Unavailable`.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }

    /// Connections for reads of one statement.
    fn reader(&self) -> &SqlitePool {
        &self.read
    }

    /// A connection on which each statement is a transaction of its own.
    async fn single(&self) -> Result<PoolConnection<Sqlite>> {
        Ok(self.write.acquire().await?)
    }

    /// Begins a transaction that may write. Dropping it rolls it back.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
        Ok(self.write.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Makes a call that locks a conversation. It needs no share: whoever has the one connection that writes waits for
    /// no other conversation, and those who wait for it get it in the order in which they ask.
    async fn in_lock_share<T>(
        &self,
        _key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        call.await
    }

    /// Makes a call that writes a row of a conversation; see `in_lock_share`.
    async fn in_claim_share<T>(
        &self,
        _key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        call.await
    }

    /// A file always answers; what may wait has time-outs of its own (`SqliteOptions`).
    async fn in_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        call.await
    }
}

/// sqlx takes no lock on SQLite while it migrates, so two processes that start together would both try: the
/// whole of it is one transaction here, and the second process finds the work done.
async fn migrate(pool: &SqlitePool) -> Result<()> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    MIGRATOR.run_direct(None, &mut *transaction, false).await?;
    Ok(transaction.commit().await?)
}
