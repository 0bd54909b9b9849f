//! What the server, and a pooler in front of it, must allow. It is checked before the first call.

use std::{collections::BTreeSet, time::Duration};

use sqlx::{Connection, FromRow, PgConnection, Row};

use super::options::{self, PostgresOptions};
use crate::{api::Result, error::StoreError};

/// How often two connections are asked which sessions of the server they have. A pooler that other clients use, too, may
/// give both of them the same answers by chance, but hardly so often.
const LOOKS: usize = 3;

/// How long a call has a connection when the network is slow: ten round trips of 10 ms.
const SLOW_CALL: Duration = Duration::from_millis(100);

/// Connects, and refuses a pooler that gives the statements of one client to several sessions of the server, as
/// PgBouncer does unless its `pool_mode` is `session`. There, the settings and the prepared statements of a connection
/// are gone with the next statement, and those of other clients are met instead.
pub(super) async fn connect(url: &str) -> Result<PgConnection> {
    let mut first = options::connection(url).await?;
    let mut second = options::connection(url).await?;
    let (mut of_first, mut of_second) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..LOOKS {
        of_first.insert(session(&mut first).await?);
        // Whether a pooler takes the session that was used last or the one that was not used for longest: one of these
        // looks finds that both clients have the same one, or that the second client has another one than before.
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

/// Returns the session of the server that answers. It is asked without a prepared statement, which a pooler may lose.
async fn session(connection: &mut PgConnection) -> Result<i32> {
    let asked = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection);
    Ok(asked.await?.try_get(0)?)
}

/// `allowed`: connections that this role may have at once; `free`: those of the server that nobody has now. Superusers
/// may have the reserved ones, too, and are not limited otherwise.
const CONNECTIONS: &str = "SELECT LEAST(server, \
     CASE WHEN NOT rolsuper AND rolconnlimit >= 0 THEN rolconnlimit END, \
     CASE WHEN NOT rolsuper AND datconnlimit >= 0 THEN datconnlimit END) AS allowed, server - taken AS free FROM \
     (SELECT rolsuper, rolconnlimit, CAST(current_setting('max_connections') AS BIGINT) - CASE WHEN rolsuper THEN 0 \
      ELSE CAST(current_setting('superuser_reserved_connections') AS BIGINT) \
      + CAST(COALESCE(current_setting('reserved_connections', TRUE), '0') AS BIGINT) END AS server, \
      (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS datconnlimit, \
      (SELECT COUNT(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND pid <> pg_backend_pid()) AS taken \
      FROM pg_roles WHERE rolname = session_user) AS limits";

#[derive(FromRow)]
struct Connections {
    allowed: i64,
    free: i64,
}

/// Refuses a pool that is larger than what the server allows, because its last connections could never be made, and
/// whoever needs one would wait for it in vain. Warns of a pool that is too large for now, or too small for the process.
pub(super) async fn check_pool(
    connection: &mut PgConnection,
    options: &PostgresOptions,
) -> Result<()> {
    let size = options.max_connections;
    let found: Connections = sqlx::query_as(CONNECTIONS).fetch_one(connection).await?;
    let Connections { allowed, free } = found;
    if i64::from(size) > allowed {
        return Err(StoreError::Conflict(format!(
            "the pool may open {size} connections, but PostgreSQL allows this role {allowed} at once; set \
             `max_connections` of [postgres] in everturn.toml to {allowed} or less, or raise PostgreSQL's limit \
             (`max_connections`, or CONNECTION LIMIT of the role or the database)"
        )));
    }
    for warning in options.warnings(free) {
        tracing::warn!("{warning}");
    }
    Ok(())
}

impl PostgresOptions {
    /// Says what is doubtful about the size of the pool, when the server has `free` connections left.
    fn warnings(&self, free: i64) -> Vec<String> {
        let (size, mut warnings) = (self.max_connections, Vec::new());
        if i64::from(size) > free {
            warnings.push(format!(
                "the pool may open {size} connections, but PostgreSQL has only {free} left now; when it has none left, \
                 calls fail and are tried again. Lower `max_connections` of [postgres] in everturn.toml, or raise \
                 `max_connections` of PostgreSQL"
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

    /// Returns how many calls there may be at once and how many connections they need, when the pool has fewer: on a
    /// slow network, the last of the calls would wait for longer than the time-out.
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
        assert!(options(Some(400), 10, 5).warnings(10).is_empty());
        assert_eq!(options(Some(400), 7, 5).warnings(6).len(), 2);
    }
}
