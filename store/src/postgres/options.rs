//! Connecting to PostgreSQL: limits and time-outs for every wait.

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

use super::{backend::statement::Statement as _, statements::server::IsInRecovery};
use crate::{api::Result, error::StoreError, peer::Peer};

/// Idle time after which a connection is pinged before use, because the server or a proxy may have dropped the
/// connection. A connection in steady use is not pinged, which saves a round trip per call.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);
/// A connection whose call timed out must answer a ping within this time. Otherwise the connection is dropped.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// Connections are renewed after this time, so that they move to the server preferred by a fail-over or a load
/// balancer. The age is checked before a connection's use, because no background task may look after the connections
/// (docs/libraries.md, sqlx: the task that looks after a pool may never end).
pub(super) const MAX_LIFETIME: Duration = Duration::from_secs(30 * 60);
/// Prepared statements per connection: some 40 texts, and batches with 1 to 8 events in some kinds.
const PREPARED_STATEMENTS: usize = 150;

/// Every important query walks one index in order. Without statistics of a table that has just grown, PostgreSQL would
/// choose a bitmap scan, which reads a whole conversation for one page.
const NO_BITMAP_SCANS: &str = "SET enable_bitmapscan = off";

/// A text is planned once per connection. Planning for the values of every call would cost more than running most
/// texts. The tests of the plans check both kinds of plan.
const PLANNED_ONCE: &str = "SET plan_cache_mode = force_generic_plan";

/// Pause between two checks whether a server has recovered.
const RECOVERY_PAUSE: Duration = Duration::from_millis(200);

/// A server in recovery answers with data from some time ago. A caller that trusted the old data could take a
/// conversation for deleted, or begin an ended turn again.
#[derive(Debug, thiserror::Error)]
#[error(
    "PostgreSQL is in recovery and lacks the last commits, and Everturn sends no queries; if the recovery does not end, the \
     server is a replica: connect to the primary"
)]
struct InRecovery;

/// How to connect. The URL decides about TLS (`sslmode`, `sslrootcert`, …).
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The most connections of the pool. A worker or a gateway has one connection more, for leases. Calls take
    /// milliseconds, so a few connections serve hundreds of turns a second. PostgreSQL's own default is 100 for every client
    /// together. Default 10.
    pub max_connections: u32,
    /// How long to wait for a free or a new connection. Default 5 s: a save is retried locally for that long.
    pub acquire_timeout: Duration,
    /// The most concurrent calls of the process, if limited. Used only to warn about a pool that is too small.
    pub max_calls: Option<u32>,
    /// The server ends a statement after this time, including the wait for a conversation's lock. Default 5 s; every
    /// statement is an index look-up or an insert.
    pub statement_timeout: Duration,
    /// The server ends a transaction whose client is silent for this time, because a frozen worker must not keep its
    /// conversation locked. Default 10 s.
    pub idle_transaction_timeout: Duration,
    /// A call gives up after this time when the server does not answer (the network or the host is gone). Default 15 s:
    /// longer than the other time-outs, which give better errors.
    pub call_timeout: Duration,
    /// Name in `pg_stat_activity`. Default `everturn`.
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

/// Reads a URL. The error does not repeat the URL, because the URL contains a password.
fn parse(url: &str) -> Result<PgConnectOptions> {
    url.parse()
        .map_err(|error| StoreError::Conflict(format!("this is no PostgreSQL URL: {error}")))
}

/// Reads a URL for a connection that PgBouncer accepts. PgBouncer refuses the parameter `extra_float_digits`, which
/// sqlx sends by default. No column is a float.
fn connect_options(url: &str) -> Result<PgConnectOptions> {
    Ok(parse(url)?.extra_float_digits(None))
}

impl PostgresOptions {
    pub(crate) fn check_url(url: &str) -> Result<()> {
        parse(url).map(drop)
    }

    /// Returns the server that would answer. The library's own reading counts, because parameters and variables of
    /// PostgreSQL may name another host.
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

    /// Returns the options of a connection for calls of the store.
    pub(super) fn connect(&self, url: &str) -> Result<PgConnectOptions> {
        let connect = connect_options(url)?;
        Ok(connect
            .application_name(&self.application_name)
            .statement_cache_capacity(PREPARED_STATEMENTS))
    }

    /// Returns the pool, which connects on first use. Certificate files from the URL are read again for every
    /// connection.
    ///
    /// `has_stalled` is set when a call timed out. Returned connections are then pinged, because a connection on a dead
    /// network would otherwise stay in the pool for the quarter of an hour that TCP takes to give up.
    pub(super) fn pool(&self, url: &str, has_stalled: Arc<AtomicBool>) -> Result<PgPool> {
        let connect = self.connect(url)?;
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

    /// Returns the statements that set the time-outs of a new connection. The time-outs are not connection parameters,
    /// because PgBouncer refuses unknown parameters.
    pub(super) fn settings(&self) -> String {
        format!(
            "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
             {NO_BITMAP_SCANS}; {PLANNED_ONCE}",
            self.statement_timeout.as_millis(),
            self.idle_transaction_timeout.as_millis(),
        )
    }
}

/// Sets the time-outs of a new connection, and waits while the server is in recovery. The caller limits the wait: the pool
/// to `acquire_timeout`.
pub(super) async fn set_up(connection: &mut PgConnection, settings: &str) -> sqlx::Result<()> {
    // One round trip.
    let texts = format!("{settings}; {}", IsInRecovery::TEXT);
    let mut is_in_recovery = is_true(connection, &texts).await?;
    if is_in_recovery {
        tracing::warn!("{InRecovery}");
    }
    while is_in_recovery {
        sleep(RECOVERY_PAUSE).await;
        is_in_recovery = is_true(connection, IsInRecovery::TEXT).await?;
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

/// Opens a connection outside the pool, without the pool's time-outs.
pub(super) async fn connection(url: &str) -> Result<PgConnection> {
    let options = connect_options(url)?.application_name("everturn schema");
    let mut connection = PgConnection::connect_with(&options).await?;
    if is_true(&mut connection, IsInRecovery::TEXT).await? {
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
