//! How PostgreSQL is connected to: limits and time-outs for everything that may wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{
    AssertSqlSafe, Connection, PgConnection, PgPool, Row,
    postgres::{PgConnectOptions, PgPoolOptions, PgSslMode},
};
use tokio::time::sleep;

use crate::{api::Result, connect::Peer, error::StoreError};

/// A connection that was idle for longer is pinged before its use: the server or a proxy may have dropped it. One in
/// steady use is not pinged, which saves a round trip for each call.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);
/// A connection whose call timed out must answer a ping within this, or it is dropped.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// Connections are renewed after this, so that they move to the server that a fail-over or a load balancer prefers. It is
/// looked at before a connection is used, because nothing else may look after them (docs/libraries.md, sqlx: the task that
/// looks after a pool may never end).
const MAX_LIFETIME: Duration = Duration::from_secs(30 * 60);
/// Statements that a connection keeps prepared: some 40 texts, and batches with 1 to 8 events in some kinds.
const PREPARED_STATEMENTS: usize = 150;

/// Every query that matters walks one index in order. Without statistics of a table that has just grown, a bitmap scan
/// would be taken, which reads a conversation to its end to give one page.
const NO_BITMAP_SCANS: &str = "SET enable_bitmapscan = off";

/// Each text is planned once for a connection, and not anew for the values of each call, which costs more than most of
/// the texts do. The tests of the plans look at both.
const PLANNED_ONCE: &str = "SET plan_cache_mode = force_generic_plan";

/// True of a replica, and of a server that reads its archive after a restore. Both may become the primary.
const IS_IN_RECOVERY: &str = "SELECT pg_is_in_recovery()";

/// The time between two looks whether a server has recovered.
const RECOVERY_PAUSE: Duration = Duration::from_millis(200);

/// A server in recovery answers with what was there some time ago. Who believed it could take a conversation for deleted,
/// or begin a turn again that has ended.
#[derive(Debug, thiserror::Error)]
#[error(
    "PostgreSQL is in recovery, so it lacks the last commits and nothing is asked of it; if it does not recover, it is a \
     replica: connect to the primary"
)]
struct InRecovery;

/// How to connect. What the URL says about TLS (`sslmode`, `sslrootcert`, …) holds.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The most connections of this process. Calls take milliseconds, so a few serve hundreds of turns a second;
    /// PostgreSQL's own default is 100 for all clients together. Default 10.
    pub max_connections: u32,
    /// How long to wait for a free or a new connection. Default 5 s: a save is tried locally for that long.
    pub acquire_timeout: Duration,
    /// The most calls that this process makes at once, if there is such a number. Only to warn when the pool is too
    /// small for them.
    pub max_calls: Option<u32>,
    /// The server ends a statement after this, its wait for a conversation's lock included. Default 5 s; every
    /// statement is an index look-up or an insert.
    pub statement_timeout: Duration,
    /// The server ends a transaction whose client says nothing for this long: a worker that froze must not keep its
    /// conversation locked. Default 10 s.
    pub idle_transaction_timeout: Duration,
    /// A call gives up after this when the server does not answer at all (the network or the host is gone).
    /// Default 15 s: longer than any of the others, which give better errors.
    pub call_timeout: Duration,
    /// Shown in `pg_stat_activity`. Default `everturn`.
    pub application_name: String,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: 10,
            acquire_timeout: Duration::from_secs(5),
            max_calls: None,
            statement_timeout: Duration::from_secs(5),
            idle_transaction_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(15),
            application_name: "everturn".into(),
        }
    }
}

/// Reads a URL; the error does not repeat it, for it holds a password.
fn parse(url: &str) -> Result<PgConnectOptions> {
    url.parse()
        .map_err(|error| StoreError::Conflict(format!("this is no PostgreSQL URL: {error}")))
}

/// Reads a URL, for a connection to which PgBouncer agrees: it refuses the parameter `extra_float_digits`, which sqlx
/// sends otherwise. No column is a float.
fn connect_options(url: &str) -> Result<PgConnectOptions> {
    Ok(parse(url)?.extra_float_digits(None))
}

impl PostgresOptions {
    pub(crate) fn check_url(url: &str) -> Result<()> {
        parse(url).map(drop)
    }

    /// Who would answer. The library's own reading counts: parameters and variables of PostgreSQL may name another host.
    pub(crate) fn peer(url: &str) -> Result<Peer> {
        let options = parse(url)?;
        let host = options.get_host();
        if options.get_socket().is_some() || host.starts_with('/') {
            return Ok(Peer::Local);
        }
        let sslmode = match options.get_ssl_mode() {
            PgSslMode::Disable => "disable",
            PgSslMode::Allow => "allow",
            PgSslMode::Prefer => "prefer",
            PgSslMode::Require => "require",
            PgSslMode::VerifyCa => "verify-ca",
            PgSslMode::VerifyFull => "verify-full",
        };
        Ok(Peer::Server {
            host: host.trim_matches(['[', ']']).to_owned(),
            sslmode,
        })
    }

    /// The pool. It connects when it is first used. Files of certificates that the URL names are read anew for each
    /// connection.
    ///
    /// `has_stalled` is set when a call timed out: connections are then pinged as they come back, since one on a
    /// dead network would otherwise keep its place in the pool for the quarter of an hour that TCP takes to give up.
    pub(super) fn pool(&self, url: &str, has_stalled: Arc<AtomicBool>) -> Result<PgPool> {
        let connect = connect_options(url)?
            .application_name(&self.application_name)
            .statement_cache_capacity(PREPARED_STATEMENTS);
        let settings = self.settings();
        let pool = PgPoolOptions::new()
            .max_connections(self.max_connections.max(1))
            .acquire_timeout(self.acquire_timeout)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_before_acquire(false)
            .after_connect(move |connection, _about| {
                let settings = settings.clone();
                Box::pin(async move { set_up(connection, &settings).await })
            })
            .before_acquire(|connection, about| {
                Box::pin(async move {
                    if about.age > MAX_LIFETIME {
                        return Ok(false);
                    }
                    if about.idle_for > PING_AFTER_IDLE {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .after_release(move |connection, _about| {
                let has_stalled = has_stalled.clone();
                Box::pin(async move {
                    if has_stalled.load(Ordering::Acquire) {
                        let is_alive = answers(connection).await;
                        has_stalled.store(!is_alive, Ordering::Release);
                        if !is_alive {
                            return Err(sqlx::Error::PoolTimedOut);
                        }
                    }
                    Ok(true)
                })
            });
        Ok(pool.connect_lazy_with(connect))
    }

    /// The statements that set the time-outs of a new connection. They are no parameters of the connection, because
    /// PgBouncer refuses those that it does not know.
    fn settings(&self) -> String {
        format!(
            "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
             {NO_BITMAP_SCANS}; {PLANNED_ONCE}",
            self.statement_timeout.as_millis(),
            self.idle_transaction_timeout.as_millis(),
        )
    }
}

/// Sets the time-outs of a new connection, and waits while its server is in recovery. The pool ends this after
/// `acquire_timeout`.
async fn set_up(connection: &mut PgConnection, settings: &str) -> sqlx::Result<()> {
    // One round trip.
    let texts = format!("{settings}; {IS_IN_RECOVERY}");
    let mut is_in_recovery = is_true(connection, &texts).await?;
    if is_in_recovery {
        tracing::warn!("{InRecovery}");
    }
    while is_in_recovery {
        sleep(RECOVERY_PAUSE).await;
        is_in_recovery = is_true(connection, IS_IN_RECOVERY).await?;
    }
    Ok(())
}

async fn is_true(connection: &mut PgConnection, texts: &str) -> sqlx::Result<bool> {
    let asked = sqlx::raw_sql(AssertSqlSafe(texts)).fetch_one(connection);
    asked.await?.try_get(0)
}

async fn answers(connection: &mut PgConnection) -> bool {
    matches!(
        tokio::time::timeout(PING_TIMEOUT, connection.ping()).await,
        Ok(Ok(()))
    )
}

/// One connection beside the pool, without its time-outs.
pub(super) async fn connection(url: &str) -> Result<PgConnection> {
    let options = connect_options(url)?.application_name("everturn schema");
    let mut connection = PgConnection::connect_with(&options).await?;
    if is_true(&mut connection, IS_IN_RECOVERY).await? {
        return Err(StoreError::Unavailable(InRecovery.into()));
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise sqlx looks after the pool (docs/libraries.md, sqlx: the task that looks after a pool may never end).
    #[tokio::test]
    async fn nothing_looks_after_the_pool() {
        let url = "postgres://127.0.0.1/everturn";
        let pool = PostgresOptions::default().pool(url, Arc::default());
        let options = pool.expect("nothing is connected to yet").options().clone();
        assert_eq!(options.get_max_lifetime(), None);
        assert_eq!(options.get_idle_timeout(), None);
        assert_eq!(options.get_min_connections(), 0);
    }
}
