//! The backends of a test's stack: embedded (SQLite, one process of each role) or production (PostgreSQL, Redis, the
//! production Temporal server, two processes of each role).
//!
//! The path of an end-to-end test decides. Tests in `production` always have the production backends. For tests in other
//! folders, and for programs that are no tests, `EVERTURN_TEST_BACKENDS=production` selects them.

use std::sync::Arc;

use everturn_store::{Store, StoreOptions};
use sqlx::{Row, postgres::PgPool};
use tokio::sync::OnceCell;

use crate::{
    postgres::{self, Postgres},
    redis::Redis,
    server::ServerLocation,
};

/// The backends of one stack.
pub enum Backends {
    /// A SQLite file in the stack's directory, and no Redis.
    Embedded,
    /// PostgreSQL, with a database of the stack's own, and Redis.
    Production {
        /// The PostgreSQL server that has the database.
        postgres: Arc<Postgres>,
        /// The Redis server.
        redis: Arc<Redis>,
        /// URL of the stack's database.
        database: String,
    },
}

static REDIS: OnceCell<Arc<Redis>> = OnceCell::const_new();

/// The database of the shared PostgreSQL that has the tables and no rows. Each stack gets a copy, so that the migrations
/// run once for all tests of the binary.
const TEMPLATE: &str = "everturn_template";

/// Set once the tables are in [`TEMPLATE`].
static MIGRATED: OnceCell<()> = OnceCell::const_new();

/// Returns true when this test runs on the production backends. Only the thread of the test knows the path of the test, so
/// tasks on other threads must ask the stack instead.
pub(crate) fn is_production() -> bool {
    let thread = std::thread::current();
    let is_selected = |backends| backends == "production";
    thread.name().is_some_and(is_production_path)
        || std::env::var("EVERTURN_TEST_BACKENDS").is_ok_and(is_selected)
}

/// Returns true for the path of a test that runs on the production backends alone. Rust's test harness names the thread of
/// a test after the path.
fn is_production_path(path: &str) -> bool {
    path.starts_with("production::")
}

impl Backends {
    /// Makes the backends of this test, on servers that all tests of the binary share.
    pub async fn shared() -> Self {
        if !is_production() {
            return Self::Embedded;
        }
        let postgres = postgres::shared().await;
        let redis = REDIS
            .get_or_init(|| async { Arc::new(Redis::start().await) })
            .await
            .clone();
        MIGRATED
            .get_or_init(|| async {
                postgres.create_database(TEMPLATE).await;
                migrate(&postgres.url(TEMPLATE)).await;
            })
            .await;
        let name = database_name();
        postgres.copy_database(TEMPLATE, &name).await;
        Self::of(postgres, redis, &name)
    }

    /// Makes production backends on servers that only this stack uses.
    pub async fn own() -> Self {
        let (postgres, redis) = tokio::join!(Postgres::start(), Redis::start());
        Self::on(postgres, redis).await
    }

    /// Makes backends for a measurement: PostgreSQL syncs what it commits. With `is_embedded`, the embedded ones.
    pub async fn measured(is_embedded: bool) -> Self {
        if is_embedded {
            return Self::Embedded;
        }
        let postgres = Postgres::start_at(ServerLocation::Measured);
        let (postgres, redis) = tokio::join!(postgres, Redis::start());
        Self::on(postgres.unwrap(), redis).await
    }

    /// Has processes connect to the database over this port, where a proxy listens.
    #[must_use]
    pub fn through(mut self, port: u16) -> Self {
        if let Self::Production {
            postgres, database, ..
        } = &mut self
        {
            let old = format!(":{}/", postgres.port());
            *database = database.replace(&old, &format!(":{port}/"));
        }
        self
    }

    /// Makes backends with a new database on servers that only one stack uses.
    async fn on(postgres: Postgres, redis: Redis) -> Self {
        let name = database_name();
        postgres.create_database(&name).await;
        migrate(&postgres.url(&name)).await;
        Self::of(Arc::new(postgres), Arc::new(redis), &name)
    }

    /// Makes backends with a database that has the tables.
    fn of(postgres: Arc<Postgres>, redis: Arc<Redis>, database: &str) -> Self {
        let database = postgres.url(database);
        Self::Production {
            postgres,
            redis,
            database,
        }
    }

    /// Returns the environment variables that name the backends to a process.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Embedded => Vec::new(),
            Self::Production {
                redis, database, ..
            } => {
                vec![
                    ("EVERTURN_DATABASE", database.clone()),
                    ("EVERTURN_REDIS", redis.url()),
                ]
            }
        }
    }

    /// Returns the URL of the stack's database; `None` for the embedded store.
    pub fn database(&self) -> Option<&str> {
        match self {
            Self::Embedded => None,
            Self::Production { database, .. } => Some(database),
        }
    }

    /// Returns the number of processes of each role.
    pub fn processes(&self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::Production { .. } => 2,
        }
    }

    /// Returns the PostgreSQL server; `None` for the embedded store.
    pub fn postgres(&self) -> Option<&Postgres> {
        match self {
            Self::Embedded => None,
            Self::Production { postgres, .. } => Some(postgres),
        }
    }

    /// Returns the Redis server; `None` on the embedded backends.
    pub fn redis(&self) -> Option<&Redis> {
        match self {
            Self::Embedded => None,
            Self::Production { redis, .. } => Some(redis),
        }
    }

    /// Opens the store, as a process does; `None` for the embedded one.
    pub async fn store(&self) -> Option<Store> {
        let opened = everturn_store::connect(self.database()?, StoreOptions::default());
        Some(opened.await.unwrap())
    }

    /// Runs a statement on PostgreSQL; false for the embedded store.
    pub async fn run_sql(&self, text: &str) -> bool {
        let Self::Production { database, .. } = self else {
            return false;
        };
        let pool = PgPool::connect(database).await.unwrap();
        let text = sqlx::AssertSqlSafe(text.to_owned());
        sqlx::raw_sql(text).execute(&pool).await.unwrap();
        true
    }

    /// Returns each row of each table as text; `None` for the embedded store.
    pub async fn dump(&self) -> Option<String> {
        let Self::Production { database, .. } = self else {
            return None;
        };
        let pool = PgPool::connect(database).await.unwrap();
        let mut dump = String::new();
        for (table, _) in self.rows().await? {
            let rows = sqlx::AssertSqlSafe(format!("SELECT row_to_json(t)::text FROM {table} t"));
            let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&pool).await.unwrap();
            dump.extend(rows.into_iter().map(|row| format!("{table}: {row}\n")));
        }
        Some(dump)
    }

    /// Returns the number of rows in each table of the schema; `None` for the embedded store.
    pub async fn rows(&self) -> Option<Vec<(String, i64)>> {
        let Self::Production { database, .. } = self else {
            return None;
        };
        let pool = PgPool::connect(database).await.unwrap();
        let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE '\\_sqlx%' ORDER BY 1";
        let tables = sqlx::query(tables).fetch_all(&pool).await.unwrap();
        let mut rows = Vec::new();
        for table in tables {
            let name: String = table.get(0);
            let count = sqlx::query(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {name}")));
            rows.push((name, count.fetch_one(&pool).await.unwrap().get(0)));
        }
        Some(rows)
    }
}

fn database_name() -> String {
    format!("everturn_{}", uuid::Uuid::new_v4().simple())
}

async fn migrate(url: &str) {
    let migrated = everturn_store::migrate(url, StoreOptions::default());
    migrated.await.unwrap();
}

#[cfg(test)]
mod tests {
    use super::is_production_path;

    #[test]
    fn the_path_of_a_test_says_its_backends() {
        assert!(is_production_path("production::crash::a_test"));
        for path in [
            "both::crash::a_test",
            "embedded::production::a_test",
            "main",
        ] {
            assert!(!is_production_path(path), "{path}");
        }
    }
}
