//! PostgreSQL 15 or newer: many workers and gateways, each with a small pool of connections.
//!
//! - `options.rs`: connecting, with limits and time-outs
//! - `shares.rs`: how many connections the calls of one conversation may hold
//! - `server.rs`: what the server and a pooler must allow
//! - `schema.rs`: migrating the tables; refusing those of another version
//! - `as_read/`: begins and saves that wait for no lock when all is as expected
//! - `dialect.rs`: what PostgreSQL does its own way
//! - `parts.rs`: how the statements of a batch are run
//! - `../backend/`: the bodies of the traits, the same text for both databases; also how rows are locked

#[macro_use]
#[path = "../backend/mod.rs"]
pub(crate) mod backend;
pub(crate) mod as_read;
mod dialect;
mod options;
mod parts;
mod schema;
mod server;
mod shares;

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
    api::{ConnectionUsage, Connections, Result},
    error::StoreError,
};
use as_read::known::KnownTurns;
use shares::Shares;

/// How many connections the calls hold that lock one conversation. They run one after the other anyway, and whoever
/// waits for the lock needs no connection for that.
const LOCKING_CONNECTIONS: usize = 1;

/// The isolation level is named whatever the database's default is: the locks of `backend/` are made for this one.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Begins a removal. One statement of it may remove millions of rows, so it has the time of the whole removal.
const BEGIN_REMOVAL: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = '10min'";

/// How long the removal of conversations may take. A million events take some ten seconds.
const REMOVAL_TIMEOUT: Duration = Duration::from_mins(10);

/// The store in a PostgreSQL database. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: PgPool,
    call_timeout: Duration,
    /// True when a call has timed out since a connection last answered.
    has_stalled: Arc<AtomicBool>,
    /// The connections of calls that lock a conversation.
    locking: Shares,
    /// The connections of calls that write a row of a conversation without its lock. With those above they are half of
    /// the pool, so that the parallel tools of one conversation leave the other half to the others.
    claiming: Shares,
    /// What this process has just written of its turns.
    known: Arc<KnownTurns>,
}

impl ConnectionUsage for PostgresStore {
    fn connections(&self) -> Connections {
        Connections::of(&self.pool)
    }
}

impl PostgresStore {
    /// Connects to a database whose tables are of this version. It changes nothing: roles that run workers and
    /// gateways need no right to create tables.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self> {
        let has_stalled = Arc::new(AtomicBool::new(false));
        let pool = options.pool(url, has_stalled.clone())?;
        let half = usize::try_from(options.max_connections / 2).unwrap_or(LOCKING_CONNECTIONS);
        let claiming = half.saturating_sub(LOCKING_CONNECTIONS).max(1);
        // As long as a call may wait for a connection and then for the row, if the others had connections.
        let wait = options.acquire_timeout + options.statement_timeout;
        let store = Self {
            pool,
            call_timeout: options.call_timeout,
            has_stalled,
            locking: Shares::new(LOCKING_CONNECTIONS, wait),
            claiming: Shares::new(claiming, wait),
            known: Arc::default(),
        };
        store.in_time(check(url, &options)).await?;
        Ok(store)
    }

    /// Creates the tables or brings them up to date, as a role that may. Several may do so at once: an advisory lock
    /// lets one work, the others find it done.
    pub async fn migrate(url: &str) -> Result<()> {
        schema::migrate(url).await
    }

    /// Waits for running statements and closes the connections. Later calls give `Unavailable`.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// The connections, for tests that look at plans of queries.
    #[doc(hidden)]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Connections for reads of one statement.
    fn reader(&self) -> &PgPool {
        &self.pool
    }

    /// A connection for a sign of life.
    async fn sign_of_life(&self) -> Result<PoolConnection<Postgres>> {
        self.single().await
    }

    /// A connection on which each statement is a transaction of its own.
    ///
    /// Here and below, what waits for a connection is on the heap: it may have to connect, and the state of that would
    /// otherwise be a part of each call.
    async fn single(&self) -> Result<PoolConnection<Postgres>> {
        Ok(Box::pin(self.pool.acquire()).await?)
    }

    /// Begins a transaction. Dropping it rolls it back.
    async fn begin(&self) -> Result<Transaction<'static, Postgres>> {
        Ok(Box::pin(self.pool.begin_with(BEGIN)).await?)
    }

    /// Runs statements of which only one writes, so that they need no transaction.
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

    /// Makes a call that locks the conversation that `key` stands for.
    async fn in_lock_share<T>(
        &self,
        key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _share = self.locking.take(key).await?;
        call.await
    }

    /// Makes a call that writes a row of the conversation that `key` stands for without its lock.
    async fn in_claim_share<T>(
        &self,
        key: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        // On the heap, because it is large, and would be in this future twice.
        let call = Box::pin(call);
        let _share = self.claiming.take(key).await?;
        call.await
    }

    /// Gives up on a server that does not answer. What the call did is then not known; every call may be repeated.
    async fn in_time<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.within(self.call_timeout, call).await
    }

    /// Gives up on a removal that does not end.
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
        // Before the call is dropped, and with it its connection returned.
        self.has_stalled.store(true, Ordering::Release);
        Err(StoreError::Unavailable(
            format!("PostgreSQL did not answer within {timeout:?}").into(),
        ))
    }
}

/// Refuses a database that cannot be used. On a connection of its own: a pool would try again until its time-out, and
/// then not say what was wrong.
async fn check(url: &str, options: &PostgresOptions) -> Result<()> {
    let mut connection = server::connect(url).await?;
    schema::check(&mut connection).await?;
    server::check_pool(&mut connection, options).await?;
    Ok(connection.close().await?)
}
