//! Gives each test a database of its own, on one PostgreSQL server for the test binary.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use everturn_store::PostgresStore;
use everturn_test_servers::postgres;
use sqlx::{Connection, PgConnection};
use tokio::sync::OnceCell;

/// A database of one test.
pub struct Database {
    pub url: String,
    port: u16,
}

impl Database {
    /// Makes a database with the tables of this version.
    pub async fn migrated() -> Self {
        static TEMPLATE: OnceCell<()> = OnceCell::const_new();
        let name = "everturn_template";
        TEMPLATE
            .get_or_init(|| async {
                let server = postgres::shared().await;
                server.create_database(name).await;
                PostgresStore::migrate(&server.url(name)).await.unwrap();
            })
            .await;
        Self::copy_of(name).await
    }

    /// Makes a database without tables.
    pub async fn empty() -> Self {
        Self::copy_of("template0").await
    }

    async fn copy_of(template: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let server = postgres::shared().await;
        server.copy_database(template, &name).await;
        Self {
            url: server.url(&name),
            port: server.port(),
        }
    }

    /// Returns the URL of the same database over another port of this machine.
    pub fn url_at(&self, port: u16) -> String {
        self.url
            .replace(&format!(":{}/", self.port), &format!(":{port}/"))
    }

    /// Returns the server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the same database for another role.
    pub fn url_as(&self, role: &str) -> String {
        self.url.replace(
            &format!("postgres://{}@", postgres::USER),
            &format!("postgres://{role}@"),
        )
    }

    pub async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Returns the tables as `pg_dump` writes them, without what changes from run to run.
    pub fn schema(&self) -> String {
        let dump = Command::new(postgres::program("pg_dump").unwrap())
            .args([
                "--schema-only",
                "--no-owner",
                "--no-privileges",
                "--exclude-table=_sqlx_migrations",
                &self.url,
            ])
            .output()
            .unwrap();
        assert!(
            dump.status.success(),
            "{}",
            String::from_utf8_lossy(&dump.stderr)
        );
        let text = String::from_utf8(dump.stdout).unwrap();
        let kept = text.lines().filter(|line| {
            let is_setting = line.starts_with("SET ")
                || line.starts_with("SELECT pg_catalog.")
                || line.starts_with('\\');
            !(line.is_empty() || line.starts_with("--") || is_setting)
        });
        kept.fold(String::new(), |schema, line| schema + line + "\n")
    }
}

/// Compares `text` with a file of the repository. With EVERTURN_UPDATE_SCHEMA=1 it writes the file instead.
pub fn assert_is_file(text: &str, path: &Path) {
    if std::env::var_os("EVERTURN_UPDATE_SCHEMA").is_some() {
        fs::write(path, text).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(
        text == expected,
        "{} is out of date: run the test with EVERTURN_UPDATE_SCHEMA=1",
        path.display()
    );
}
