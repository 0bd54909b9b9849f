//! The embedded back end: one file, one writer, readers beside it.
//!
//! SQLite has one writer at a time for the whole file, so `BEGIN IMMEDIATE` is the lock of the conversation
//! (invariant 2, one order): it waits (busy time-out) for writers of other processes, then owns the file until it
//! commits. In this process one connection writes, which queues writers fairly in memory instead of letting them poll
//! the file's lock. Only signs of life pass them, on a connection of their own.
//!
//! - `options.rs`: opening the file
//! - `dialect.rs`: what SQLite does its own way
//! - `parts.rs`: how the statements of a batch are run
//! - `../backend/`: the bodies of the traits, the same text for both databases

#[path = "../backend/mod.rs"]
pub(crate) mod backend;
mod dialect;
mod options;
mod parts;

use std::{future::Future, path::Path, time::Duration};

use everturn_proto::turn::{LlmCompleteState, SaveRequest};
use sqlx::{
    Sqlite, SqliteConnection, SqlitePool, Transaction, migrate::Migrator, pool::PoolConnection,
};

pub use options::SqliteOptions;

use crate::{
    api::{
        Access, BeginTurn, BegunTurn, ConnectionUsage, Connections, NewMessage, QueuedMessage,
        Result, Saved, StepKey, ToolKey, ToolRecord,
    },
    error::StoreError,
    schema_range::{self, Tables},
};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations/sqlite");

/// The store in one SQLite file. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    write: SqlitePool,
    /// Another connection that writes, for signs of life alone: they must not wait behind the work.
    signs: SqlitePool,
    read: SqlitePool,
}

impl ConnectionUsage for SqliteStore {
    /// Counts the connections that read, and the one that writes.
    fn connections(&self) -> Connections {
        let (read, write) = (Connections::of(&self.read), Connections::of(&self.write));
        Connections {
            idle: read.idle + write.idle,
            busy: read.busy + write.busy,
            limit: read.limit + write.limit,
        }
    }
}

impl SqliteStore {
    /// Opens the file, creating it and its folder when missing, and brings its tables up to date. Several
    /// processes may have the same file open, and may open it at the same time.
    pub async fn open(path: &Path, options: SqliteOptions) -> Result<Self> {
        options::create_parent(path)?;
        let write = options.writer(path).await?;
        migrate(&write).await?;
        let (read, signs) = (options.readers(path), options.second_writer(path));
        Ok(Self { write, signs, read })
    }

    /// A store that is gone with its last clone, for tests. Reads and writes share one connection.
    pub async fn open_in_memory() -> Result<Self> {
        let write = SqliteOptions::default().in_memory().await?;
        migrate(&write).await?;
        Ok(Self {
            read: write.clone(),
            signs: write.clone(),
            write,
        })
    }

    /// Waits for running statements and closes the file. Later calls give `Unavailable`.
    pub async fn close(&self) {
        self.read.close().await;
        self.signs.close().await;
        self.write.close().await;
    }

    /// Connections for reads of one statement.
    fn reader(&self) -> &SqlitePool {
        &self.read
    }

    /// A connection for a sign of life.
    async fn sign_of_life(&self) -> Result<PoolConnection<Sqlite>> {
        Ok(self.signs.acquire().await?)
    }

    /// A connection on which each statement is a transaction of its own.
    async fn single(&self) -> Result<PoolConnection<Sqlite>> {
        Ok(self.write.acquire().await?)
    }

    /// Begins a transaction that may write. Dropping it rolls it back.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
        Ok(self.write.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Runs statements that are to be committed together.
    async fn together<T>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T>,
    ) -> Result<T> {
        self.transaction(work).await
    }

    /// Saves nothing: a transaction has no round trips here that could be saved.
    #[allow(clippy::unused_async)]
    async fn save_as_read(&self, _request: &SaveRequest) -> Result<Option<Saved>> {
        Ok(None)
    }

    /// Begins nothing, as `save_as_read`.
    #[allow(clippy::unused_async)]
    async fn begin_as_read(&self, _begin: &BeginTurn) -> Result<Option<BegunTurn>> {
        Ok(None)
    }

    /// Queues nothing, as `save_as_read`.
    #[allow(clippy::unused_async)]
    async fn queue_as_read(
        &self,
        _access: &Access,
        _new: &NewMessage,
    ) -> Result<Option<QueuedMessage>> {
        Ok(None)
    }

    /// Notes nothing: what was written is as near as what would be noted.
    #[allow(clippy::unused_self)]
    fn note_turn(&self, _begin: &BeginTurn, _begun: &BegunTurn) {}

    /// Notes nothing, as `note_turn`.
    #[allow(clippy::unused_self)]
    fn note_reply(&self, _step: &StepKey, _state: &LlmCompleteState) {}

    /// Notes nothing, as `note_turn`.
    #[allow(clippy::unused_self)]
    fn note_tool_end(&self, _key: &ToolKey, _record: &ToolRecord) {}

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

    /// A removal is like any other transaction here.
    async fn begin_removal(&self) -> Result<Transaction<'static, Sqlite>> {
        self.begin().await
    }

    async fn in_removal_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        call.await
    }

    /// Gives up on a call that must not wait for other writers for so long.
    async fn within<T>(
        &self,
        timeout: Duration,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let done = tokio::time::timeout(timeout, call).await;
        done.unwrap_or_else(|_| {
            let why = format!("the file was not free within {timeout:?}");
            Err(StoreError::Unavailable(why.into()))
        })
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
    match found(&mut transaction).await? {
        Tables::Current | Tables::Newer => {}
        Tables::Older(_) => MIGRATOR.run_direct(None, &mut *transaction, false).await?,
    }
    Ok(transaction.commit().await?)
}

/// Returns how the tables stand to this version.
async fn found(connection: &mut SqliteConnection) -> Result<Tables> {
    let own = schema_range::newest(&MIGRATOR);
    let is_there = |table: &'static str| {
        let text = "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = $1";
        sqlx::query_scalar::<_, i64>(text).bind(table)
    };
    if is_there("_sqlx_migrations")
        .fetch_one(&mut *connection)
        .await?
        == 0
    {
        return schema_range::compare(0, None, own);
    }
    let found: Option<i64> = sqlx::query_scalar(schema_range::VERSION)
        .fetch_one(&mut *connection)
        .await?;
    let mut oldest = None;
    if is_there("schema_range").fetch_one(&mut *connection).await? > 0 {
        oldest = sqlx::query_scalar(schema_range::OLDEST_VERSION)
            .fetch_optional(&mut *connection)
            .await?;
    }
    schema_range::compare(found.unwrap_or(0), oldest, own)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::api::{WorkerId, WorkerLease, WorkerLeases};

    #[tokio::test]
    async fn a_sign_of_life_does_not_wait_behind_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let store = SqliteStore::open(&file, SqliteOptions::default());
        let store = store.await.unwrap();
        // Whoever has the connection that writes keeps all others waiting.
        let _work = store.single().await.unwrap();
        let lease = WorkerLease {
            worker: WorkerId::random(),
            identity: "worker".to_owned(),
            duration: Duration::from_secs(2),
        };
        store.renew_lease(&lease).await.unwrap();
    }
}
