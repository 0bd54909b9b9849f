//! The embedded back end: a single file with a single writer and concurrent readers.
//!
//! SQLite has one writer at a time for the whole file, so `BEGIN IMMEDIATE` is the lock of the conversation (invariant
//! 2, one order). The statement waits (busy time-out) for writers of other processes, then owns the file until the
//! commit. The process has a single writing connection. Writers therefore queue fairly in memory instead of polling the
//! file's lock. Only signs of life pass the queue, on a connection of their own.
//!
//! - `options.rs`: opening the file
//! - `dialect.rs`: SQLite's own ways
//! - `parts.rs`: running the statements of a batch
//! - `rights.rs`: who may read the file
//! - `room.rs`: remembers that the disk is full
//! - `template.rs`: the empty tables of a store in memory
//! - `../backend/`: the bodies of the traits, shared by the two databases

#[path = "../backend/mod.rs"]
pub(crate) mod backend;
mod dialect;
mod options;
mod parts;
mod rights;
mod room;
mod template;

/// The statements of `sql/`, a module for each subject.
#[allow(clippy::pedantic, reason = "the build script writes this code")]
pub(crate) mod statements {
    use chrono::{DateTime, Utc};
    use serde::Serialize;
    use sqlx::types::Json;

    use super::{
        backend::{
            statement::{Rows, Statement},
            write::values::Values,
        },
        dialect::list,
    };

    include!(concat!(env!("OUT_DIR"), "/sqlite.rs"));
}

use std::{future::Future, path::Path, time::Duration};

use everturn_proto::turn::{LlmCompleteState, SaveRequest};
use sqlx::{
    Sqlite, SqliteConnection, SqlitePool, Transaction, migrate::Migrator, pool::PoolConnection,
};

pub use options::SqliteOptions;

use backend::statement::Statement as _;
use room::Room;
use statements::server::HasTable;

use crate::{
    api::{
        Access, BeginTurn, BegunTurn, ConnectionUsage, Connections, NewAuditEntry, NewMessage,
        QueuedMessage, Result, Saved, StepKey, ToolKey, ToolRecord,
    },
    error::StoreError,
    schema_range::{self, Tables},
};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations/sqlite");

/// The store in an SQLite file. Cheap to clone; clones share the connections.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    write: SqlitePool,
    /// A second writing connection, only for signs of life, which must not wait behind the work.
    signs: SqlitePool,
    read: SqlitePool,
    room: Room,
    /// The minimum retention of the entries of [`approvals`](backend::approvals).
    audit_keep_days: u32,
}

impl ConnectionUsage for SqliteStore {
    /// Counts the reading connections and the writing connection, without the connection for signs of life.
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
    /// Opens the file and migrates its tables. Creates a missing file and folder, for the process's user alone. Several processes may use the file at
    /// once, and may open it concurrently.
    pub async fn open(path: &Path, options: SqliteOptions) -> Result<Self> {
        rights::prepare(path)?;
        let write = options.writer(path).await?;
        migrate(&write).await?;
        let (read, signs) = (options.readers(path), options.second_writer(path));
        Ok(Self {
            write,
            signs,
            read,
            room: Room::default(),
            audit_keep_days: NewAuditEntry::DEFAULT_KEEP_DAYS,
        })
    }

    /// Opens a store for tests. The store disappears with its last clone. Reads and writes share a connection.
    pub async fn open_in_memory() -> Result<Self> {
        let write = SqliteOptions::default().in_memory().await?;
        template::fill(&write).await?;
        Ok(Self {
            read: write.clone(),
            signs: write.clone(),
            write,
            room: Room::default(),
            audit_keep_days: NewAuditEntry::DEFAULT_KEEP_DAYS,
        })
    }

    /// Returns the writing connection, for tests that store rows themselves.
    #[doc(hidden)]
    pub fn pool(&self) -> &SqlitePool {
        &self.write
    }

    /// Sets the minimum retention of the audit entries that the store writes by itself, in days.
    #[must_use]
    pub fn keeping_audit(self, keep_days: u32) -> Self {
        Self {
            audit_keep_days: keep_days,
            ..self
        }
    }

    /// Waits for running statements and closes the file. Later calls give `Unavailable`.
    pub async fn close(&self) {
        self.read.close().await;
        self.signs.close().await;
        self.write.close().await;
    }

    /// Returns the connections for reads of one statement.
    fn reader(&self) -> &SqlitePool {
        &self.read
    }

    /// Runs a call about leases, without a wait for the writers of the process. Gives up after `timeout`.
    async fn sign_of_life<T>(
        &self,
        timeout: Duration,
        call: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T>,
    ) -> Result<T> {
        self.within(timeout, async {
            call(&mut *self.signs.acquire().await?).await
        })
        .await
    }

    /// Returns a connection without a transaction: every statement commits alone.
    async fn single(&self) -> Result<PoolConnection<Sqlite>> {
        Ok(self.write.acquire().await?)
    }

    /// Begins a writing transaction. A dropped transaction is rolled back.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>> {
        Ok(self.write.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Commits a transaction.
    async fn commit(&self, transaction: Transaction<'static, Sqlite>) -> Result<()> {
        transaction.commit().await?;
        self.room.has_written();
        Ok(())
    }

    /// Fails while the disk is full.
    fn check_room(&self) -> Result<()> {
        self.room.check()
    }

    /// Runs statements in one transaction.
    async fn together<T>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T>,
    ) -> Result<T> {
        self.transaction(work).await
    }

    /// Saves nothing, because SQLite transactions have no round trips to avoid.
    #[allow(clippy::unused_async)]
    async fn save_as_read(&self, _request: &SaveRequest) -> Result<Option<Saved>> {
        Ok(None)
    }

    /// Begins nothing, like `save_as_read`.
    #[allow(clippy::unused_async)]
    async fn begin_as_read(&self, _begin: &BeginTurn) -> Result<Option<BegunTurn>> {
        Ok(None)
    }

    /// Queues nothing, like `save_as_read`.
    #[allow(clippy::unused_async)]
    async fn queue_as_read(
        &self,
        _access: &Access,
        _new: &NewMessage,
    ) -> Result<Option<QueuedMessage>> {
        Ok(None)
    }

    /// Notes nothing, because reading from SQLite is as fast as a cache.
    #[allow(clippy::unused_self)]
    fn note_turn(&self, _begin: &BeginTurn, _begun: &BegunTurn) {}

    /// Notes nothing, like `note_turn`.
    #[allow(clippy::unused_self)]
    fn note_reply(&self, _step: &StepKey, _state: &LlmCompleteState) {}

    /// Notes nothing, like `note_turn`.
    #[allow(clippy::unused_self)]
    fn note_repeated_call(&self, _step: &StepKey) {}

    /// Notes nothing, like `note_turn`.
    #[allow(clippy::unused_self)]
    fn note_tool_end(&self, _key: &ToolKey, _record: &ToolRecord) {}

    /// Runs a call that locks a conversation. The call needs no share, because the owner of the writing connection
    /// waits for no conversation. Waiting calls get the connection in the order of their requests.
    async fn in_lock_share<T>(
        &self,
        _key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        call.await
    }

    /// Runs a call that writes a row of a conversation; see `in_lock_share`.
    async fn in_claim_share<T>(
        &self,
        _key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        call.await
    }

    /// Begins a removal, which is an ordinary transaction in SQLite.
    async fn begin_removal(&self) -> Result<Transaction<'static, Sqlite>> {
        self.begin().await
    }

    async fn in_removal_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.room.note(call.await)
    }

    /// Gives up on a call that must not wait longer than `timeout` for other writers.
    async fn within<T>(
        &self,
        timeout: Duration,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let done = tokio::time::timeout(timeout, call).await;
        let done = done.unwrap_or_else(|_| {
            let why = format!("the file was not free within {timeout:?}");
            Err(StoreError::Unavailable(why.into()))
        });
        self.room.note(done)
    }

    /// Sets no limit, because a file always answers; waits have time-outs of their own (`SqliteOptions`).
    async fn in_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.room.note(call.await)
    }
}

/// Migrates the tables in one transaction. sqlx takes no lock on SQLite for a migration, so two processes starting
/// together would both migrate. With the transaction, the second process finds the tables up to date.
async fn migrate(pool: &SqlitePool) -> Result<()> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    match found(&mut transaction).await? {
        Tables::Current | Tables::Newer => {}
        Tables::Older(_) => MIGRATOR.run_direct(None, &mut *transaction, false).await?,
    }
    Ok(transaction.commit().await?)
}

/// Compares the tables with the version of the program.
async fn found(connection: &mut SqliteConnection) -> Result<Tables> {
    let own = schema_range::newest(&MIGRATOR);
    if !has_table(connection, "_sqlx_migrations").await? {
        return schema_range::compare(0, None, own);
    }
    let found: Option<i64> = sqlx::query_scalar(schema_range::VERSION)
        .fetch_one(&mut *connection)
        .await?;
    let mut oldest = None;
    if has_table(connection, "schema_range").await? {
        oldest = sqlx::query_scalar(schema_range::OLDEST_VERSION)
            .fetch_optional(&mut *connection)
            .await?;
    }
    schema_range::compare(found.unwrap_or(0), oldest, own)
}

async fn has_table(connection: &mut SqliteConnection, table: &str) -> sqlx::Result<bool> {
    let select = HasTable { table };
    select.query_scalar()?.fetch_one(connection).await
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
        // The owner of the writing connection keeps every other writer waiting.
        let _work = store.single().await.unwrap();
        let lease = WorkerLease {
            worker: WorkerId::random(),
            identity: "worker".to_owned(),
            duration: Duration::from_secs(2),
        };
        store.renew_lease(&lease).await.unwrap();
    }
}
