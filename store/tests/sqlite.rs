//! The SQLite back end against the conformance suite, and what only it does: files, processes, migrations.

#![allow(clippy::unwrap_used)]

mod conformance;

use std::path::{Path, PathBuf};

use conformance::{Backend, fixture::Turn};
use everturn_proto::words::execution_status;
use everturn_store::{Conversations, EventReader, SqliteOptions, SqliteStore, StoreError};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

/// A file in a folder of its own.
struct SqliteFile {
    folder: TempDir,
}

impl SqliteFile {
    async fn fresh() -> Self {
        let file = Self { folder: tempfile::tempdir().unwrap() };
        file.open().await;
        file
    }

    fn path(&self) -> PathBuf {
        // Neither the folder nor the file is there before the first open.
        self.folder.path().join("data").join("everturn.db")
    }
}

impl Backend for SqliteFile {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path(), SqliteOptions::default()).await.unwrap()
    }

    async fn row_count(&self) -> i64 {
        let mut connection = raw(&self.path()).await;
        let mut rows = 0;
        for table in tables(&mut connection).await {
            let text = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
            rows += sqlx::query_scalar::<_, i64>(text).fetch_one(&mut connection).await.unwrap();
        }
        rows
    }
}

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await.unwrap()
}

async fn tables(connection: &mut SqliteConnection) -> Vec<String> {
    let text = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' ORDER BY name";
    sqlx::query_scalar(text).fetch_all(connection).await.unwrap()
}

conformance_suite!(SqliteFile::fresh().await);

#[tokio::test]
async fn a_fresh_file_has_the_tables_of_the_requirements() {
    let file = SqliteFile::fresh().await;
    let expected = [
        "agent_definitions",
        "agent_execution_events",
        "agent_executions",
        "conversations",
        "execution_checkpoints",
        "messages",
        "tool_execution_records",
        "work_plans",
    ];
    let mut connection = raw(&file.path()).await;
    assert_eq!(tables(&mut connection).await, expected);
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_may_open_a_new_file_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everturn.db");
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { SqliteStore::open(&path, SqliteOptions::default()).await })
        })
        .collect();
    for opener in openers {
        opener.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_was_saved_is_there_after_reopening() {
    let file = SqliteFile::fresh().await;
    let turn = Turn::begun(file.open().await, "c", "m").await;
    turn.end(0, execution_status::FAILED).await;
    let events = turn.events().await;
    turn.store.close().await;
    assert!(matches!(turn.store.conversation("c").await, Err(StoreError::Unavailable(_))), "closed");
    let reopened = Turn::new(file.open().await, "c", "m");
    assert_eq!(reopened.events().await, events);
}

#[tokio::test]
async fn a_store_in_memory_works() {
    let store = SqliteStore::open_in_memory().await.unwrap();
    let turn = Turn::begun(store.clone(), "c", "m").await;
    turn.end(0, execution_status::CANCELLED).await;
    assert_eq!(turn.types().await, ["user_message", "cancelled"]);
    let other = SqliteStore::open_in_memory().await.unwrap();
    assert_eq!(other.execution_status("c").await.unwrap(), None, "each has its own");
}

#[tokio::test]
async fn a_locked_file_is_unavailable_and_later_works() {
    let file = SqliteFile::fresh().await;
    let options = SqliteOptions { busy_timeout: std::time::Duration::from_millis(50), ..SqliteOptions::default() };
    let store = SqliteStore::open(&file.path(), options).await.unwrap();
    let mut other = raw(&file.path()).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let turn = Turn::new(store, "c", "m");
    let refused = everturn_store::TurnStore::begin_turn(&turn.store, turn.begin("hi")).await;
    assert!(refused.unwrap_err().is_retryable());
    assert_eq!(turn.events().await, [], "readers are not held up");
    lock.rollback().await.unwrap();
    everturn_store::TurnStore::begin_turn(&turn.store, turn.begin("hi")).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_or_a_newer_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everturn.db");
    std::fs::write(&path, "this is no database, but it is long enough to be looked at by SQLite".repeat(20)).unwrap();
    let refused = SqliteStore::open(&path, SqliteOptions::default()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");

    let file = SqliteFile::fresh().await;
    let mut connection = raw(&file.path()).await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', TRUE, x'00', 0)";
    sqlx::query(newer).execute(&mut connection).await.unwrap();
    let refused = SqliteStore::open(&file.path(), SqliteOptions::default()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}

#[tokio::test]
async fn hot_queries_use_an_index() {
    let file = SqliteFile::fresh().await;
    let mut connection = raw(&file.path()).await;
    let queries = [
        "SELECT * FROM agent_execution_events WHERE conversation_id = 'c' AND sequence_number >= 5 \
         ORDER BY sequence_number LIMIT 9",
        "SELECT * FROM agent_execution_events WHERE id = 'x'",
        "SELECT * FROM messages WHERE conversation_id = 'c' AND sequence_number IS NOT NULL \
         ORDER BY sequence_number DESC LIMIT 9",
        "SELECT * FROM messages WHERE conversation_id = 'c' AND status = 'queued' ORDER BY created_at, id LIMIT 1",
        "SELECT * FROM tool_execution_records WHERE agent_execution_id = 'e' AND observed_sequence IS NULL \
         ORDER BY step, call_index",
        "SELECT * FROM agent_executions WHERE conversation_id = 'c' AND status = 'running' \
         ORDER BY started_at DESC LIMIT 1",
        "SELECT * FROM conversations WHERE tenant_id = 't' AND (updated_at, id) < ('x', 'y') \
         ORDER BY updated_at DESC, id DESC LIMIT 9",
    ];
    for query in queries {
        let text = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
        let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(text).fetch_all(&mut connection).await.unwrap();
        let lines: Vec<_> = plan.into_iter().map(|line| line.3).collect();
        assert!(lines.len() == 1 && lines[0].starts_with("SEARCH"), "{query}: {lines:?}");
    }
}
