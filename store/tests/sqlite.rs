//! Runs the conformance suite against the SQLite back end, and tests what only SQLite has: files, processes,
//! migrations.

#![allow(clippy::unwrap_used)]

mod conformance;
#[path = "sqlite/full_disk.rs"]
mod full_disk;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use conformance::{
    Backend,
    fixture::{Turn, tenant, tool_end},
};
use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    Conversations, EventReader, Removed, SqliteOptions, SqliteStore, StoreError, StoreOptions,
    ToolClaims, hot,
};
use everturn_test_servers::wait;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

/// A database file in a folder of its own.
struct SqliteFile {
    folder: TempDir,
}

impl SqliteFile {
    async fn fresh() -> Self {
        let file = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        file.open().await;
        file
    }

    fn path(&self) -> PathBuf {
        // Neither the folder `data` nor the file exists before the first open.
        self.folder.path().join("data").join("everturn.db")
    }
}

impl Backend for SqliteFile {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path(), SqliteOptions::default())
            .await
            .unwrap()
    }

    async fn row_count(&self) -> i64 {
        let mut connection = raw(&self.path()).await;
        let mut rows = 0;
        for table in tables(&mut connection).await {
            if ["usage_days", "tool_usage_days", "list_changes"].contains(&table.as_str()) {
                continue;
            }
            let text = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
            rows += sqlx::query_scalar::<_, i64>(text)
                .fetch_one(&mut connection)
                .await
                .unwrap();
        }
        rows
    }

    async fn run(&self, text: &'static str) {
        let mut connection = raw(&self.path()).await;
        sqlx::query(text).execute(&mut connection).await.unwrap();
    }

    async fn refused(&self, text: &'static str) -> Option<String> {
        let mut connection = raw(&self.path()).await;
        let done = sqlx::query(text).execute(&mut connection).await;
        done.err().map(|error| error.to_string())
    }
}

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path))
        .await
        .unwrap()
}

async fn tables(connection: &mut SqliteConnection) -> Vec<String> {
    let text = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' ORDER BY name";
    sqlx::query_scalar(text)
        .fetch_all(connection)
        .await
        .unwrap()
}

conformance_suite!(SqliteFile::fresh().await);

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_reads_a_new_file() {
    let file = SqliteFile::fresh().await;
    let _store = file.open().await;
    // A machine's usual umask, 022, leaves rights to others, so SQLite alone would make readable files.
    let folder = file.path().parent().unwrap().to_owned();
    assert_eq!(mode(&folder), 0o700);
    let mut modes: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                mode(&entry.path()),
            )
        })
        .collect();
    modes.sort();
    let expected = ["everturn.db", "everturn.db-shm", "everturn.db-wal"];
    assert_eq!(modes, expected.map(|name| (name.to_owned(), 0o600)));
}

#[tokio::test]
async fn others_lose_their_rights_on_an_existing_file_and_the_group_keeps_its_own() {
    let file = SqliteFile::fresh().await;
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o664)).unwrap();
    let _store = file.open().await;
    assert_eq!(mode(&file.path()), 0o660);
}

#[tokio::test]
async fn a_fresh_file_has_the_tables_of_the_requirements() {
    let file = SqliteFile::fresh().await;
    let expected = [
        "agent_definitions",
        "agent_execution_events",
        "agent_executions",
        "api_keys",
        "approval_answers",
        "audit_events",
        "blobs",
        "call_tries",
        "client_tool_claims",
        "consent_requests",
        "context_cuts",
        "conversation_budgets",
        "conversations",
        "deleted_conversations",
        "execution_checkpoints",
        "list_changes",
        "messages",
        "owner_refusals",
        "reconciler",
        "removed_objects",
        "schema_range",
        "tool_consents",
        "tool_execution_records",
        "tool_grants",
        "tool_usage_days",
        "trace_contexts",
        "turn_checks",
        "usage_days",
        "work_plans",
        "worker_leases",
    ];
    let mut connection = raw(&file.path()).await;
    assert_eq!(tables(&mut connection).await, expected);
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut connection)
        .await
        .unwrap();
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
    turn.end(0, AgentExecutionStatus::Failed).await;
    let events = turn.events().await;
    turn.store.close().await;
    assert!(
        matches!(
            turn.store.conversation(&tenant(), "c").await,
            Err(StoreError::Unavailable(_))
        ),
        "closed"
    );
    let reopened = Turn::new(file.open().await, "c", "m");
    assert_eq!(reopened.events().await, events);
}

#[tokio::test]
async fn a_store_in_memory_works() {
    let store = SqliteStore::open_in_memory().await.unwrap();
    let turn = Turn::begun(store.clone(), "c", "m").await;
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    assert_eq!(turn.types().await, ["user_message", "cancelled"]);
    let other = SqliteStore::open_in_memory().await.unwrap();
    assert_eq!(
        other.conversation_head(&tenant(), "c").await.unwrap(),
        None,
        "each has its own"
    );
}

#[tokio::test]
async fn a_locked_file_is_unavailable_and_later_works() {
    let file = SqliteFile::fresh().await;
    let options = SqliteOptions {
        busy_timeout: std::time::Duration::from_millis(50),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&file.path(), options).await.unwrap();
    let mut other = raw(&file.path()).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let turn = Turn::new(store, "c", "m");
    let refused = everturn_store::Turns::begin_turn(&turn.store, turn.begin("hi")).await;
    assert!(refused.unwrap_err().is_retryable());
    assert_eq!(turn.events().await, [], "readers are not held up");
    lock.rollback().await.unwrap();
    wait::until("the file is free", || async {
        let begun = everturn_store::Turns::begin_turn(&turn.store, turn.begin("hi")).await;
        begun.ok().map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_no_database_or_a_newer_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everturn.db");
    std::fs::write(
        &path,
        "this is no database, but it is long enough to be looked at by SQLite".repeat(20),
    )
    .unwrap();
    let refused = SqliteStore::open(&path, SqliteOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");

    let file = SqliteFile::fresh().await;
    let mut connection = raw(&file.path()).await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', TRUE, x'00', 0)";
    sqlx::query(newer).execute(&mut connection).await.unwrap();
    let path = file.path();
    let open = || SqliteStore::open(&path, SqliteOptions::default());
    // It says that this version works with it. A later one may not.
    let store = open().await.unwrap();
    Turn::begun(store, "c", "m").await;
    let contracted = "UPDATE schema_range SET oldest_version = 9999";
    sqlx::query(contracted)
        .execute(&mut connection)
        .await
        .unwrap();
    let refused = open().await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}

#[tokio::test]
async fn json_is_kept_to_the_letter_whatever_it_says() {
    let turn = Turn::begun(SqliteFile::fresh().await.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    // The text holds half of a surrogate pair: no Rust string can hold that, but JSON text can.
    let text = r#""\ud800 and \u0000""#;
    let ended = turn
        .store
        .finish_tool(&turn.tool(0, 0), tool_end(text))
        .await
        .unwrap();
    assert_eq!(ended.end.unwrap().result.as_str(), text);
}

#[tokio::test]
async fn a_file_from_before_the_first_release_is_refused() {
    let file = SqliteFile::fresh().await;
    let early = "UPDATE _sqlx_migrations SET version = 290";
    let mut connection = raw(&file.path()).await;
    sqlx::query(early).execute(&mut connection).await.unwrap();
    let refused = SqliteStore::open(&file.path(), SqliteOptions::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("empty database"), "{refused}");
}

#[tokio::test]
async fn a_url_chooses_the_back_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everturn.db");
    let url = format!("sqlite://{}", path.display());
    everturn_store::migrate(&url, StoreOptions::default())
        .await
        .unwrap();
    let by_url = everturn_store::connect(&url, StoreOptions::default())
        .await
        .unwrap();
    let by_path = everturn_store::connect(&path.to_string_lossy(), StoreOptions::default())
        .await
        .unwrap();
    let turn = Turn::new(SqliteStore::open_in_memory().await.unwrap(), "c", "m");
    by_url.turns.begin_turn(turn.begin("hi")).await.unwrap();
    let found = by_path.events.last_sequences(&["c".to_owned()]).await;
    assert_eq!(found.unwrap()[0].1, 1);
    assert_eq!(
        by_path
            .conversations
            .conversation(&tenant(), "c")
            .await
            .unwrap()
            .unwrap()
            .title
            .as_deref(),
        Some("hi")
    );
    assert_eq!(
        by_path
            .retention
            .count_expired(chrono::Utc::now())
            .await
            .unwrap(),
        Removed::default()
    );
}

/// Fills the tables with 200 conversations of 50 events, the fewest with which the planner chooses as it would for
/// millions.
async fn fill(connection: &mut SqliteConnection) {
    let fill = "INSERT INTO agent_definitions VALUES ('h', '{}');
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200)
            INSERT INTO conversations (id, tenant_id, owner_id, agent, title, last_sequence, created_at, updated_at,
                active_at, log_id)
            SELECT 'c' || n, 't', '', 'a', '', 50, '2026', '2026' || n, '2026' || n, 'log' || n FROM n;
        INSERT INTO messages SELECT id, 'm', 'user', 'taken', NULL, 'e' || id, NULL, 1, '2026', '', '[]', '[]', 't', '', '', '[]', NULL, NULL, NULL, 0
            FROM conversations;
        INSERT INTO agent_executions (id, conversation_id, message_id, root_execution_id, depth, agent, agent_hash,
            status, started_at, tenant_id) SELECT 'e' || id, id, 'm', 'e' || id, 0, 'a', 'h', 'completed', '2026', 't'
            FROM conversations;
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 50)
            INSERT INTO agent_execution_events SELECT id || '/' || n, id, 'm', 't', n, 'k', '2026', '{}', 2
            FROM conversations, n;
        INSERT INTO execution_checkpoints (id, conversation_id, message_id, agent_execution_id, checkpoint_type,
            step_number, created_at, execution_state, execution_id, generation, input_tokens, output_tokens)
            SELECT id, id, 'm', 'e' || id, 'llm_complete', 0, '2026', '{}', '', 1, 2, 3 FROM conversations;
        ANALYZE;";
    sqlx::raw_sql(fill).execute(connection).await.unwrap();
}

/// What a plan reads that is no table: the list of ids, the at most two rows of a repeated message, bounded counts.
const DERIVED: [&str; 12] = [
    "json_each",
    "found",
    "measured",
    "parts",
    "cut",
    "json_each",
    "after",
    "(subquery",
    "busy",
    "waiting",
    "running",
    "CONSTANT ROW",
];

/// True when a line of a plan reads this.
fn names(line: &str, derived: &str) -> bool {
    let mut words = ["SCAN", "SEARCH"].iter();
    words.any(|word| line.contains(&format!("{word} {derived}")))
}

/// Statements that must stay index look-ups in a store of any size.
const HOT: [&str; 28] = [
    "events/events",
    "events/events_before",
    "events/links",
    "conversations/lock_conversation",
    "agent_executions/save_state",
    "conversations/advance_conversation",
    "events/last_sequences",
    "checkpoints/checkpoint",
    "checkpoints/claim_step",
    "context/context",
    "agent_executions/agent_executions",
    "events/conversation_status",
    "tools/open_tools",
    "messages/queue_message",
    "messages/queued_message",
    "keys/key",
    "keys/keys",
    "conversations/conversations_before",
    "reconciliation/unfinished_turn",
    "reconciliation/waiting_messages",
    "reconciliation/due_checks",
    "reconciliation/count_due",
    "reconciliation/due_hooks",
    "outside/waiting_approvals",
    "conversations/own_conversations_before",
    "conversations/shown_conversation",
    "conversations/waiting_conversations",
    "list_changes/note",
];

#[tokio::test]
async fn hot_queries_use_an_index() {
    let file = SqliteFile::fresh().await;
    let mut connection = raw(&file.path()).await;
    fill(&mut connection).await;
    for name in HOT {
        let query = hot::sqlite(name);
        let text = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
        let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(text)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let lines: Vec<_> = plan.into_iter().map(|line| line.3).collect();
        let reads: Vec<_> = lines
            .iter()
            .filter(|line| line.starts_with("SCAN") || line.starts_with("SEARCH"))
            .collect();
        let is_table = |line: &&&String| !DERIVED.iter().any(|derived| names(line, derived));
        // A table without row numbers is its own index.
        let is_search = |line: &&String| {
            line.starts_with("SEARCH") && (line.contains("INDEX") || line.contains("PRIMARY KEY"))
        };
        assert!(
            !reads.is_empty() && reads.iter().filter(is_table).all(is_search),
            "{name}: {lines:?}"
        );
        // They sort no more than they return.
        let may_sort = ["messages/queued_message", "context/context"];
        let sorts = lines
            .iter()
            .any(|line| line.contains("TEMP B-TREE FOR ORDER BY"));
        assert!(!sorts || may_sort.contains(&name), "{name}: {lines:?}");
    }
}
