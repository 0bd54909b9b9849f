//! Requirements for the server, and for a pooler in front of the server. The store checks the requirements before its
//! first call.

use std::{collections::BTreeSet, time::Duration};

use sqlx::{Connection, FromRow, PgConnection, Row};

use super::{
    backend::statement::Statement as _,
    options::{self, PostgresOptions},
    statements::server::{Connections as SelectConnections, Session},
};
use crate::{api::Result, error::StoreError};

/// How often two connections are asked for their server sessions. A pooler shared with other clients may give two
/// connections equal answers by chance, but hardly three times.
const LOOKS: usize = 3;

/// The connections of a process beside its pool: the connection for leases. A process without leases never opens the
/// connection, and connects twice at its start anyway.
const BESIDE_POOL: i64 = 1;

/// How long a call uses a connection on a slow network: ten round trips of 10 ms.
const SLOW_CALL: Duration = Duration::from_millis(100);

/// Connects, and refuses a pooler that spreads one client's statements over several server sessions, as PgBouncer does
/// unless its `pool_mode` is `session`. With such a pooler, the next statement loses the connection's settings and
/// prepared statements, and may meet another client's.
pub(super) async fn connect(url: &str) -> Result<PgConnection> {
    let mut first = options::connection(url).await?;
    let mut second = options::connection(url).await?;
    let (mut of_first, mut of_second) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..LOOKS {
        of_first.insert(session(&mut first).await?);
        // A pooler takes either the last used session or the longest unused session. In both cases one of the queries
        // shows a session shared by the two clients, or a changed session of the second client.
        of_second.insert(session(&mut second).await?);
        of_second.insert(session(&mut second).await?);
    }
    second.close().await?;
    if of_first.len() == 1 && of_second.len() == 1 && of_first.is_disjoint(&of_second) {
        return Ok(first);
    }
    Err(StoreError::Conflict(
        "the pooler in front of PostgreSQL does not keep a session for each connection, so prepared statements and \
         settings get lost; set it to session mode (PgBouncer: `pool_mode = session`), or connect to PostgreSQL directly"
            .into(),
    ))
}

/// Returns the server session that answers.
async fn session(connection: &mut PgConnection) -> Result<i32> {
    let asked = sqlx::raw_sql(Session::TEXT).fetch_one(connection);
    Ok(asked.await?.try_get(0)?)
}

/// The row of [`SelectConnections`].
#[derive(FromRow)]
struct Connections {
    allowed: i64,
    free: i64,
}

/// Refuses a pool larger than the server's limit, because its last connections could never be opened and callers would
/// wait in vain. Warns of a pool that is too large at the moment, or too small for the process.
pub(super) async fn check_pool(
    connection: &mut PgConnection,
    options: &PostgresOptions,
) -> Result<()> {
    let size = options.max_connections;
    let found: Connections = SelectConnections.query_as()?.fetch_one(connection).await?;
    let Connections { allowed, free } = found;
    let most = allowed - BESIDE_POOL;
    if i64::from(size) > most {
        return Err(StoreError::Conflict(format!(
            "the pool may open {size} connections, and leases of workers need one more, but PostgreSQL allows this role \
             {allowed} at once; set `max_connections` of [postgres] in everturn.toml to {most} or less, or raise \
             PostgreSQL's limit (`max_connections`, or CONNECTION LIMIT of the role or the database)"
        )));
    }
    for warning in options.warnings(free) {
        tracing::warn!("{warning}");
    }
    Ok(())
}

impl PostgresOptions {
    /// Returns warnings about the size of the pool, when the server has `free` connections left.
    fn warnings(&self, free: i64) -> Vec<String> {
        let (size, mut warnings) = (self.max_connections, Vec::new());
        if i64::from(size) + BESIDE_POOL > free {
            warnings.push(format!(
                "the pool may open {size} connections, and leases of workers need one more, but PostgreSQL has only \
                 {free} left now; when it has none left, calls fail and are tried again. Lower `max_connections` of \
                 [postgres] in everturn.toml, or raise `max_connections` of PostgreSQL"
            ));
        }
        if let Some((calls, needed)) = self.too_few() {
            warnings.push(format!(
                "the pool has {size} connections for up to {calls} calls at once, so calls may wait for longer than \
                 `acquire_timeout` and fail. Raise `max_connections` of [postgres] in everturn.toml to {needed}, or \
                 lower `max_concurrent_activities` of [worker]"
            ));
        }
        warnings
    }

    /// Returns the most concurrent calls and the connections that they need, when the pool has fewer. On a slow
    /// network, the last call would wait longer than the time-out.
    fn too_few(&self) -> Option<(u32, u128)> {
        let calls = self.max_calls?;
        let timeout_ms = self.acquire_timeout.as_millis().max(1);
        let needed = (u128::from(calls) * SLOW_CALL.as_millis()).div_ceil(timeout_ms);
        (needed > u128::from(self.max_connections)).then_some((calls, needed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_too_small_when_the_last_call_waits_too_long_and_too_large_when_none_are_left() {
        let options = |max_calls, max_connections, seconds| PostgresOptions {
            max_connections,
            acquire_timeout: Duration::from_secs(seconds),
            max_calls,
            ..PostgresOptions::default()
        };
        assert_eq!(options(Some(400), 10, 5).too_few(), None);
        assert_eq!(options(Some(400), 7, 5).too_few(), Some((400, 8)));
        assert_eq!(options(Some(400), 10, 1).too_few(), Some((400, 40)));
        assert_eq!(options(None, 1, 1).too_few(), None);
        assert!(options(Some(400), 10, 5).warnings(11).is_empty());
        assert_eq!(options(Some(400), 7, 5).warnings(6).len(), 2);
    }
}
