//! What PostgreSQL has done for the stack, as it counts by itself.

use everturn_tests::{backends::Backends, postgres::Postgres};
use sqlx::{Connection, PgConnection, Row};

/// The counters of a database so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DatabaseCounts {
    /// Transactions that were committed. Reads count, too.
    pub(crate) commits: u64,
    /// Rows that were inserted, updated and deleted.
    pub(crate) rows: u64,
    /// Bytes of the write-ahead log.
    pub(crate) wal_bytes: u64,
}

impl DatabaseCounts {
    /// Reads the counters; `None` for the embedded store. A connection may tell what it did up to ten
    /// seconds later.
    pub(crate) async fn of(backends: &Backends) -> Option<Self> {
        let (postgres, database) = (backends.postgres()?, backends.database()?);
        Some(read(postgres, database.rsplit('/').next()?).await)
    }

    /// What was added since an earlier time.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            commits: self.commits - earlier.commits,
            rows: self.rows - earlier.rows,
            wal_bytes: self.wal_bytes - earlier.wal_bytes,
        }
    }
}

async fn read(postgres: &Postgres, database: &str) -> DatabaseCounts {
    // Another database, so that the question does not count.
    let mut connection = PgConnection::connect(&postgres.url("postgres"))
        .await
        .unwrap();
    let text = "SELECT xact_commit, tup_inserted + tup_updated + tup_deleted, \
                CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT) FROM pg_stat_database WHERE datname = $1";
    let row = sqlx::query(text)
        .bind(database)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let count = |column| u64::try_from(row.get::<i64, _>(column)).unwrap_or_default();
    DatabaseCounts {
        commits: count(0),
        rows: count(1),
        wal_bytes: count(2),
    }
}
