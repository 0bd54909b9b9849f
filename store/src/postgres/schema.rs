//! The version of the tables: `everturn migrate` migrates the tables, and other processes check the version.

use std::time::Duration;

use sqlx::{
    Connection, Error, PgConnection,
    migrate::{MigrateError, Migrator},
};
use tokio::time::{Instant, sleep};

use super::server;
use crate::{
    api::Result,
    error::StoreError,
    schema_range::{self, Tables},
};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations/postgres");

/// SQLSTATE of a table that does not exist.
const UNDEFINED_TABLE: &str = "42P01";

/// The advisory lock of migrations.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock(418581342581)";
/// Pause before the next try to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// How long a migration waits for the lock of a table. Every later statement on the table waits behind the migration, so
/// the time is the longest that workers and gateways stand still.
const WAIT_FOR_TABLE: &str = "SET lock_timeout = '1s'";
/// A migration without a transaction builds an index concurrently. The migration holds no statement up while it waits,
/// and a time-out would leave an invalid index behind.
const WAIT_LONG: &str = "SET lock_timeout = 0";
/// SQLSTATE of a lock that was not free within `lock_timeout`.
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// Pause before the next try of a migration, in which the waiting statements run.
const TABLE_PAUSE: Duration = Duration::from_secs(1);
/// How long a migration tries. A dump of a large database takes longer; then the operator must choose.
const TABLE_PATIENCE: Duration = Duration::from_mins(10);

/// Migrates the tables, forward only. A migration is a transaction, unless it says otherwise. Newer, compatible tables
/// need no migration.
///
/// One process migrates at a time. Other processes poll for the lock instead of waiting in a statement as sqlx would:
/// building an index concurrently waits for every statement that began before, and would therefore wait for theirs.
pub(super) async fn migrate(url: &str) -> Result<()> {
    migrate_with(url, &MIGRATOR).await
}

async fn migrate_with(url: &str, migrator: &Migrator) -> Result<()> {
    // No limit of the statements' time, because a migration may take any time.
    let mut connection = server::connect(url).await?;
    while !sqlx::query_scalar(TRY_LOCK)
        .fetch_one(&mut connection)
        .await?
    {
        sleep(LOCK_PAUSE).await;
    }
    let done = match found(&mut connection, migrator).await? {
        Tables::Newer | Tables::Current => Ok(()),
        Tables::Older(_) => apply(&mut connection, migrator).await,
    };
    // Closing ends the session, and releases the lock after a failed migration.
    let closed = connection.close().await;
    done?;
    Ok(closed?)
}

/// Runs the missing migrations. A migration waits briefly for a table that a long transaction uses, and tries again.
async fn apply(connection: &mut PgConnection, migrator: &Migrator) -> Result<()> {
    for migration in migrator.iter() {
        let wait = if migration.no_tx {
            WAIT_LONG
        } else {
            WAIT_FOR_TABLE
        };
        sqlx::query(wait).execute(&mut *connection).await?;
        let last_try = Instant::now() + TABLE_PATIENCE;
        let version = migration.version;
        while let Err(error) = migrator.run_direct(Some(version), connection, false).await {
            if !is_locked(&error) || Instant::now() > last_try {
                return Err(error.into());
            }
            tracing::warn!(
                version,
                "a migration waits for a table that another transaction uses; end long transactions, like a dump of the database"
            );
            sleep(TABLE_PAUSE).await;
        }
    }
    Ok(())
}

/// True when a table was not free in time.
fn is_locked(error: &MigrateError) -> bool {
    matches!(
        error,
        MigrateError::Execute(Error::Database(error)) | MigrateError::ExecuteMigration(Error::Database(error), _)
            if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE)
    )
}

/// Refuses tables of an incompatible version, with advice.
pub(super) async fn check(connection: &mut PgConnection) -> Result<()> {
    match found(connection, &MIGRATOR).await? {
        Tables::Current | Tables::Newer => Ok(()),
        Tables::Older(version) => {
            let own = schema_range::newest(&MIGRATOR);
            Err(StoreError::Corrupt(format!(
                "the tables have version {version}, but Everturn needs version {own}; run `everturn migrate`"
            )))
        }
    }
}

/// Compares the tables with the newest version of the given migrations.
async fn found(connection: &mut PgConnection, migrator: &Migrator) -> Result<Tables> {
    let own = schema_range::newest(migrator);
    let found = number(connection, schema_range::VERSION)
        .await?
        .unwrap_or(0);
    let oldest = if found > own {
        number(connection, schema_range::OLDEST_VERSION).await?
    } else {
        None
    };
    schema_range::compare(found, oldest, own)
}

/// Selects a number; `None` when the table does not exist.
async fn number(connection: &mut PgConnection, text: &'static str) -> Result<Option<i64>> {
    match sqlx::query_scalar(text).fetch_one(connection).await {
        Err(Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Ok(None),
        found => Ok(found?),
    }
}

/// How later migrations run, shown with migrations of the tests: the product has only its tables yet.
#[cfg(test)]
mod tests {
    use everturn_test_servers::postgres;
    use sqlx::{
        SqlSafeStr,
        migrate::{Migration, MigrationType},
    };

    use super::*;

    const TABLES: &str = "CREATE TABLE schema_range (oldest_version BIGINT NOT NULL); \
                          INSERT INTO schema_range VALUES (1); \
                          CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT NOT NULL); \
                          INSERT INTO items VALUES (1, 'old')";
    const EXPANDED: &str = "ALTER TABLE items ADD COLUMN size BIGINT NOT NULL DEFAULT 0";
    const INDEXED: &str = "CREATE UNIQUE INDEX CONCURRENTLY items_by_name ON items (name)";

    /// The first `count` migrations.
    fn migrator(count: usize) -> Migrator {
        let texts = [TABLES, EXPANDED, INDEXED].into_iter().take(count);
        let migrations = (1..).zip(texts).map(|(version, text)| {
            let is_concurrent = text.contains("CONCURRENTLY");
            let kind = MigrationType::Simple;
            Migration::new(version, "".into(), kind, text.into_sql_str(), is_concurrent)
        });
        Migrator::with_migrations(migrations.collect())
    }

    async fn database(name: &str) -> (PgConnection, String) {
        let server = postgres::shared().await;
        server.create_database(name).await;
        (server.connect(name).await.unwrap(), server.url(name))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_pods_expand_tables_with_rows_while_an_old_process_writes() {
        let (mut old, url) = database("expanded").await;
        migrate_with(&url, &migrator(1)).await.unwrap();
        let pods: Vec<_> = (0..8)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move { migrate_with(&url, &migrator(3)).await })
            })
            .collect();
        let insert = "INSERT INTO items (id, name) SELECT MAX(id) + 1, 'new' || MAX(id) FROM items";
        for pod in pods {
            sqlx::query(insert).execute(&mut old).await.unwrap();
            pod.await.unwrap().unwrap();
        }
        let rows = "SELECT COUNT(*) FROM items WHERE size = 0";
        let rows: i64 = sqlx::query_scalar(rows).fetch_one(&mut old).await.unwrap();
        assert_eq!(rows, 9);
        let index = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'items_by_name'::regclass";
        let is_valid: bool = sqlx::query_scalar(index).fetch_one(&mut old).await.unwrap();
        assert!(is_valid);
        // The old version restarts, and somebody runs its `everturn migrate`.
        migrate_with(&url, &migrator(1)).await.unwrap();
        assert_eq!(found(&mut old, &migrator(1)).await.unwrap(), Tables::Newer);
        let contracted = "UPDATE schema_range SET oldest_version = 3";
        sqlx::query(contracted).execute(&mut old).await.unwrap();
        let refused = migrate_with(&url, &migrator(1)).await.unwrap_err();
        assert!(refused.to_string().contains("newer"), "{refused}");
    }

    #[tokio::test]
    async fn a_migration_behind_a_long_reader_holds_no_other_reader_up() {
        let (mut long, url) = database("read").await;
        let (server, rows) = (postgres::shared().await, "SELECT COUNT(*) FROM items");
        migrate_with(&url, &migrator(1)).await.unwrap();
        sqlx::query("BEGIN").execute(&mut long).await.unwrap();
        sqlx::query(rows).execute(&mut long).await.unwrap();
        let migration = tokio::spawn(async move { migrate_with(&url, &migrator(3)).await });
        let mut other = server.connect("read").await.unwrap();
        // Twice, so that a later try of the migration is seen, too.
        for _ in 0..2 {
            let waits =
                "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND relation = 'items'::regclass";
            while sqlx::query_scalar::<_, i64>(waits)
                .fetch_one(&mut other)
                .await
                .unwrap()
                == 0
            {
                sleep(Duration::from_millis(10)).await;
            }
            let read = sqlx::query(rows).execute(&mut other);
            tokio::time::timeout(Duration::from_secs(60), read)
                .await
                .expect("a reader waits behind the migration")
                .unwrap();
        }
        sqlx::query("COMMIT").execute(&mut long).await.unwrap();
        migration.await.unwrap().unwrap();
        let version = number(&mut other, "SELECT MAX(version) FROM _sqlx_migrations").await;
        assert_eq!(version.unwrap(), Some(3));
    }

    #[tokio::test]
    async fn tables_from_before_the_first_release_are_refused() {
        let (_connection, url) = database("early").await;
        migrate_with(&url, &migrator(2)).await.unwrap();
        let refused = migrate(&url).await.unwrap_err();
        assert!(refused.to_string().contains("empty database"), "{refused}");
    }
}
