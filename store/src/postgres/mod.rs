//! PostgreSQL 15 or newer: many workers and gateways, with a small pool of connections per process.
//!
//! - `options.rs`: connecting, with limits and time-outs
//! - `lease_connection.rs`: the connection for the leases of workers, beside the pool
//! - `shares.rs`: how many connections the calls of one conversation may occupy
//! - `server.rs`: the required settings of the server and of a pooler
//! - `schema.rs`: migrating the tables; refusing tables of an incompatible version
//! - `as_read/`: begins and saves without waiting for a lock, for turns without surprises
//! - `dialect.rs`: PostgreSQL's own ways
//! - `parts.rs`: running the statements of a batch
//! - `../backend/`: the bodies of the traits, shared by the two databases; also the order of row locks

pub(crate) mod as_read;
#[path = "../backend/mod.rs"]
pub(crate) mod backend;
mod dialect;
mod json_text;
mod lease_connection;
mod options;
mod parts;
mod schema;
mod server;
mod shares;

/// The statements of `sql/`, a module for each subject.
#[allow(clippy::pedantic, reason = "the build script writes this code")]
pub(crate) mod statements {
    use super::{
        backend::{
            statement::{Rows, Statement},
            write::values::Values,
        },
        dialect::list,
        json_text::JsonText as Json,
    };
    use chrono::{DateTime, Utc};
    use serde::Serialize;

    include!(concat!(env!("OUT_DIR"), "/postgres.rs"));
}

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{Connection, PgConnection, PgPool, Postgres, Transaction, pool::PoolConnection};

pub use options::PostgresOptions;

use crate::{
    api::{ConnectionUsage, Connections, NewAuditEntry, Result},
    error::StoreError,
};
use as_read::known::KnownTurns;
use lease_connection::LeaseConnection;
use shares::Shares;

/// How many connections the calls that lock one conversation may occupy. A single connection is enough, because the
/// calls run in sequence. A call that waits for the lock needs no connection.
const LOCKING_CONNECTIONS: usize = 1;

/// Begins a transaction with a fixed isolation level, whatever the database's default is. The locks of `backend/` need
/// READ COMMITTED.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Begins a removal. One statement may remove millions of rows, so the statement gets the time limit of the whole
/// removal.
const BEGIN_REMOVAL: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = '10min'";

/// How long the removal of conversations may take. A million events take about ten seconds.
const REMOVAL_TIMEOUT: Duration = Duration::from_mins(10);

/// The store in a PostgreSQL database. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: PgPool,
    /// The connection for the leases of workers.
    leases: LeaseConnection,
    call_timeout: Duration,
    /// True when a call has timed out since a connection last answered.
    has_stalled: Arc<AtomicBool>,
    /// The connections of calls that lock a conversation.
    locking: Shares,
    /// The connections of calls that write a conversation's row without its lock. Together with `locking`, they are
    /// half of the pool. The parallel tools of one conversation leave the second half to other conversations.
    claiming: Shares,
    /// The process's cache of recently written rows.
    known: Arc<KnownTurns>,
    /// The minimum retention of the entries of [`approvals`](backend::approvals).
    audit_keep_days: u32,
}

impl ConnectionUsage for PostgresStore {
    /// Counts the connections of the pool, without the connection for leases.
    fn connections(&self) -> Connections {
        Connections::of(&self.pool)
    }
}

impl PostgresStore {
    /// Connects to a database with tables of a compatible version. Connecting changes no table, so the roles of workers
    /// and gateways need no right to create tables.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self> {
        let has_stalled = Arc::new(AtomicBool::new(false));
        let pool = options.pool(url, has_stalled.clone())?;
        let leases = LeaseConnection::new(&options, url)?;
        let half = usize::try_from(options.max_connections / 2).unwrap_or(LOCKING_CONNECTIONS);
        let claiming = half.saturating_sub(LOCKING_CONNECTIONS).max(1);
        // The longest time that a call might wait for a connection and then for the row, if other calls had the
        // connections.
        let wait = options.acquire_timeout + options.statement_timeout;
        let store = Self {
            pool,
            leases,
            call_timeout: options.call_timeout,
            has_stalled,
            locking: Shares::new(LOCKING_CONNECTIONS, wait),
            claiming: Shares::new(claiming, wait),
            known: Arc::default(),
            audit_keep_days: NewAuditEntry::DEFAULT_KEEP_DAYS,
        };
        store.in_time(check(url, &options)).await?;
        Ok(store)
    }

    /// Creates or migrates the tables, under a role with the right to do so. Concurrent migrations are safe: an
    /// advisory lock admits one process, and the next process finds the tables up to date.
    pub async fn migrate(url: &str) -> Result<()> {
        schema::migrate(url).await
    }

    /// Sets the minimum retention of the audit entries that the store writes by itself, in days.
    #[must_use]
    pub fn keeping_audit(self, keep_days: u32) -> Self {
        Self {
            audit_keep_days: keep_days,
            ..self
        }
    }

    /// Waits for running statements and closes the connections. Later calls give `Unavailable`.
    pub async fn close(&self) {
        self.leases.close().await;
        self.pool.close().await;
    }

    /// Returns the pool, for tests of query plans.
    #[doc(hidden)]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Returns the connections for reads of one statement.
    fn reader(&self) -> &PgPool {
        &self.pool
    }

    /// Runs a call about leases, without a wait for the calls of the pool. Gives up after `timeout`.
    async fn sign_of_life<T>(
        &self,
        timeout: Duration,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T>,
    ) -> Result<T> {
        self.leases.call(timeout, call).await
    }

    /// Returns a connection on which every statement is a transaction of its own.
    ///
    /// Here and below, a future that waits for a connection is on the heap. The future may have to connect, and would
    /// otherwise make every call's future large.
    async fn single(&self) -> Result<PoolConnection<Postgres>> {
        Ok(Box::pin(self.pool.acquire()).await?)
    }

    /// Begins a transaction. A dropped transaction is rolled back.
    async fn begin(&self) -> Result<Transaction<'static, Postgres>> {
        Ok(Box::pin(self.pool.begin_with(BEGIN)).await?)
    }

    /// Commits a transaction.
    #[allow(clippy::unused_self)]
    async fn commit(&self, transaction: Transaction<'static, Postgres>) -> Result<()> {
        Ok(transaction.commit().await?)
    }

    /// Always succeeds, because only the server knows its disk.
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)]
    fn check_room(&self) -> Result<()> {
        Ok(())
    }

    /// Runs statements without a transaction. At most one of the statements may write.
    async fn together<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T>,
    ) -> Result<T> {
        self.in_time(async { work(&mut *self.single().await?).await })
            .await
    }

    async fn begin_removal(&self) -> Result<Transaction<'static, Postgres>> {
        Ok(Box::pin(self.pool.begin_with(BEGIN_REMOVAL)).await?)
    }

    /// Runs a call that locks the conversation of `key`.
    async fn in_lock_share<T>(
        &self,
        key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _share = self.locking.take(key).await?;
        call.await
    }

    /// Runs a call that writes a row of `key`'s conversation without the conversation's lock.
    async fn in_claim_share<T>(
        &self,
        key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        // On the heap, because the future is large and would be in the surrounding future twice.
        let call = Box::pin(call);
        let _share = self.claiming.take(key).await?;
        call.await
    }

    /// Gives up on a server without an answer. Whether the call took effect is then unknown; every call may be
    /// repeated.
    async fn in_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.within(self.call_timeout, call).await
    }

    /// Gives up on a removal that exceeds its time limit.
    async fn in_removal_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.within(REMOVAL_TIMEOUT, call).await
    }

    async fn within<T>(
        &self,
        timeout: Duration,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut call = pin!(call);
        if let Ok(done) = tokio::time::timeout(timeout, call.as_mut()).await {
            return done;
        }
        // The flag is set before the call is dropped, because dropping the call returns its connection.
        self.has_stalled.store(true, Ordering::Release);
        Err(StoreError::Unavailable(
            format!("PostgreSQL did not answer within {timeout:?}").into(),
        ))
    }
}

/// Refuses an unusable database. The check uses a connection of its own, because a pool would retry until its time-out
/// and then hide the cause.
async fn check(url: &str, options: &PostgresOptions) -> Result<()> {
    let mut connection = server::connect(url).await?;
    schema::check(&mut connection).await?;
    server::check_pool(&mut connection, options).await?;
    Ok(connection.close().await?)
}
