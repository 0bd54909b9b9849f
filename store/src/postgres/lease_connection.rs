//! The connection for the leases of workers, which no other call uses.
//!
//! A call that waits for a row occupies its connection, so behind a locked table every connection of the pool may be busy
//! for seconds. A renewal that waited for the pool would then come too late, and gateways would take a living worker for
//! dead.
//!
//! A pool would keep a connection without an answer until the connection answers a ping. Here a call that fails, or is
//! given up, drops the connection, and the next call connects anew. Therefore a dead connection costs a single renewal.

use std::{
    fmt, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::sync::Mutex;

use super::options::{MAX_LIFETIME, PostgresOptions, set_up};
use crate::{api::Result, error::StoreError};

/// Connects on first use. Clones share the connection, and their calls run one after another.
#[derive(Clone)]
pub(super) struct LeaseConnection {
    connect: Arc<PgConnectOptions>,
    /// The statements that set the time-outs of a new connection.
    settings: Arc<str>,
    line: Arc<Mutex<Line>>,
}

/// The state between two calls.
#[derive(Debug, Default)]
enum Line {
    /// The next call connects.
    #[default]
    Absent,
    /// A connection whose last call was answered, and the time of its start.
    Open(PgConnection, Instant),
    /// The store is closed.
    Closed,
}

/// Leaves the options out, because they contain the password.
impl fmt::Debug for LeaseConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("LeaseConnection");
        shown.field("line", &self.line).finish_non_exhaustive()
    }
}

impl LeaseConnection {
    pub(super) fn new(options: &PostgresOptions, url: &str) -> Result<Self> {
        let name = format!("{} leases", options.application_name);
        Ok(Self {
            connect: Arc::new(options.connect(url)?.application_name(&name)),
            settings: options.settings().into(),
            line: Arc::default(),
        })
    }

    /// Runs a call, and gives up after `timeout`. The time includes the wait for other calls and for a new connection.
    pub(super) async fn call<T>(
        &self,
        timeout: Duration,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T>,
    ) -> Result<T> {
        let answered = tokio::time::timeout(timeout, self.answered(call)).await;
        answered.unwrap_or_else(|_| {
            let why = format!("PostgreSQL did not answer a call of leases within {timeout:?}");
            Err(StoreError::Unavailable(why.into()))
        })
    }

    async fn answered<T>(
        &self,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T>,
    ) -> Result<T> {
        let mut line = self.line.lock().await;
        // During the call, this future alone owns the connection. Unless the call succeeds, the connection is dropped.
        let (mut connection, since) = match mem::take(&mut *line) {
            Line::Open(connection, since) if since.elapsed() < MAX_LIFETIME => (connection, since),
            Line::Open(..) | Line::Absent => (Box::pin(self.open()).await?, Instant::now()),
            Line::Closed => {
                *line = Line::Closed;
                return Err(sqlx::Error::PoolClosed.into());
            }
        };
        let answer = call(&mut connection).await?;
        *line = Line::Open(connection, since);
        Ok(answer)
    }

    async fn open(&self) -> Result<PgConnection> {
        let mut connection = PgConnection::connect_with(&self.connect).await?;
        set_up(&mut connection, &self.settings).await?;
        Ok(connection)
    }

    /// Waits for the running call and closes the connection. Later calls fail.
    pub(super) async fn close(&self) {
        let line = mem::replace(&mut *self.line.lock().await, Line::Closed);
        if let Line::Open(connection, _) = line
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "the connection for leases was already gone");
        }
    }
}
