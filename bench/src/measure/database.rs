//! PostgreSQL's own counters of the stack's database.

use everturn_tests::{backends::Backends, postgres::Postgres};
use sqlx::{Connection, PgConnection, Row};

/// Values of a database's counters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DatabaseCounts {
    /// Committed transactions, including reads.
    pub(crate) commits: u64,
    /// Inserted, updated and deleted rows.
    pub(crate) rows: u64,
    /// Bytes of the write-ahead log.
    pub(crate) wal_bytes: u64,
}

impl DatabaseCounts {
    /// Reads the counters; `None` for the embedded store. PostgreSQL may add a connection's work to the counters up to
    /// ten seconds late.
    pub(crate) async fn of(backends: &Backends) -> Option<Self> {
        let (postgres, database) = (backends.postgres()?, backends.database()?);
        Some(read(postgres, database.rsplit('/').next()?).await)
    }

    /// Returns the growth since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            commits: self.commits - earlier.commits,
            rows: self.rows - earlier.rows,
            wal_bytes: self.wal_bytes - earlier.wal_bytes,
        }
    }
}

async fn read(postgres: &Postgres, database: &str) -> DatabaseCounts {
    // The query runs in a different database, because the measured database must not count the query.
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
