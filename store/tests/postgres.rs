//! Runs the conformance suite against the PostgreSQL back end, and tests what only PostgreSQL has: migrations, roles,
//! lost connections.

#![allow(clippy::unwrap_used)]

#[path = "postgres/as_read.rs"]
mod as_read;
#[path = "postgres/clock.rs"]
mod clock;
mod conformance;
#[path = "postgres/removal.rs"]
mod removal;
mod support;

use std::{path::Path, time::Duration};

use chrono::{TimeDelta, Utc};
use conformance::{
    Backend,
    fixture::{Turn, json, state, tenant, tool_end},
};
use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    Conversations, EventReader, PostgresOptions, PostgresStore, Retention, StepClaims, StoreError,
    StoreOptions, ToolClaim, ToolClaims,
};
use sqlx::AssertSqlSafe;
use support::{line::Line, postgres::Database};

impl Backend for Database {
    type Store = PostgresStore;

    async fn open(&self) -> PostgresStore {
        PostgresStore::connect(&self.url, PostgresOptions::default())
            .await
            .unwrap()
    }

    async fn row_count(&self) -> i64 {
        let mut connection = self.connection().await;
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT table_name::TEXT FROM information_schema.tables WHERE table_schema = 'public' \
             AND table_type = 'BASE TABLE' \
             AND table_name NOT LIKE '\\_%' AND table_name NOT IN ('usage_days', 'tool_usage_days', 'list_changes')",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let mut rows = 0;
        for table in tables {
            let text = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
            rows += sqlx::query_scalar::<_, i64>(text)
                .fetch_one(&mut connection)
                .await
                .unwrap();
        }
        rows
    }

    async fn run(&self, text: &'static str) {
        let mut connection = self.connection().await;
        sqlx::query(text).execute(&mut connection).await.unwrap();
    }

    async fn refused(&self, text: &'static str) -> Option<String> {
        let mut connection = self.connection().await;
        let done = sqlx::query(text).execute(&mut connection).await;
        done.err().map(|error| error.to_string())
    }
}

conformance_suite!(Database::migrated().await);

#[tokio::test]
async fn migrated_is_as_recorded_and_migrating_again_changes_nothing() {
    let database = Database::empty().await;
    PostgresStore::migrate(&database.url).await.unwrap();
    let fresh = database.schema();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres.schema.sql");
    support::postgres::assert_is_file(&fresh, &path);
    PostgresStore::migrate(&database.url).await.unwrap();
    assert_eq!(database.schema(), fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pods_may_migrate_at_the_same_time() {
    let database = Database::empty().await;
    let migrations: Vec<_> = (0..8)
        .map(|_| {
            let url = database.url.clone();
            tokio::spawn(async move { PostgresStore::migrate(&url).await })
        })
        .collect();
    for migration in migrations {
        migration.await.unwrap().unwrap();
    }
    let migrated = Database::migrated().await;
    assert_eq!(database.schema(), migrated.schema());
    Turn::begun(database.open().await, "c", "m").await;
}

#[tokio::test]
async fn newer_tables_are_used_when_they_say_so() {
    let database = Database::migrated().await;
    let turn = Turn::begun(database.open().await, "c", "m").await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', TRUE, 'x', 0)";
    let mut connection = database.connection().await;
    sqlx::query(newer).execute(&mut connection).await.unwrap();
    // An old pod restarts, and somebody runs the old `everturn migrate`.
    let again = Turn {
        store: database.open().await,
        ..turn
    };
    again.complete(0, "answer", &[]).await;
    again.end(0, AgentExecutionStatus::Completed).await;
    PostgresStore::migrate(&database.url).await.unwrap();
    let contracted = "UPDATE schema_range SET oldest_version = 9999";
    sqlx::query(contracted)
        .execute(&mut connection)
        .await
        .unwrap();
    let refused = PostgresStore::connect(&database.url, PostgresOptions::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("newer"), "{refused}");
}

#[tokio::test]
async fn tables_of_another_version_are_refused_with_what_to_do() {
    let database = Database::empty().await;
    let connect = async || {
        PostgresStore::connect(&database.url, PostgresOptions::default())
            .await
            .unwrap_err()
    };
    let refused = connect().await;
    assert!(
        matches!(&refused, StoreError::Corrupt(why) if why.contains("everturn migrate")),
        "{refused}"
    );

    PostgresStore::migrate(&database.url).await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', TRUE, 'x', 0); UPDATE schema_range SET oldest_version = 9999";
    sqlx::raw_sql(newer)
        .execute(&mut database.connection().await)
        .await
        .unwrap();
    let refused = connect().await;
    assert!(
        matches!(&refused, StoreError::Corrupt(why) if why.contains("newer")),
        "{refused}"
    );
    let refused = PostgresStore::migrate(&database.url).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Corrupt(why) if why.contains("newer")),
        "{refused}"
    );
}

#[tokio::test]
async fn workers_need_no_right_to_create_tables() {
    let database = Database::migrated().await;
    let setup = "CREATE ROLE everturn_worker LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO everturn_worker";
    sqlx::raw_sql(setup)
        .execute(&mut database.connection().await)
        .await
        .unwrap();
    let url = database.url_as("everturn_worker");
    let store = PostgresStore::connect(&url, PostgresOptions::default())
        .await
        .unwrap();
    let turn = Turn::begun(store, "c", "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    turn.complete(1, "answer", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    let empty = Database::empty().await;
    let revoke = "REVOKE CREATE ON SCHEMA public FROM PUBLIC";
    sqlx::raw_sql(revoke)
        .execute(&mut empty.connection().await)
        .await
        .unwrap();
    let refused = PostgresStore::migrate(&empty.url_as("everturn_worker"))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("permission denied"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_url_chooses_the_back_end() {
    let database = Database::empty().await;
    everturn_store::migrate(&database.url, StoreOptions::default())
        .await
        .unwrap();
    let store = everturn_store::connect(&database.url, StoreOptions::default())
        .await
        .unwrap();
    assert_eq!(
        store
            .clone()
            .events
            .conversation_head(&tenant(), "c")
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn what_no_column_can_hold_is_refused_and_leaves_nothing() {
    let turn = Turn::begun(Database::migrated().await.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let too_deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [too_deep.as_str()] {
        let refused = turn
            .store
            .finish_tool(&turn.tool(0, 0), tool_end(text))
            .await;
        assert!(
            matches!(refused, Err(StoreError::Conflict(_))),
            "{text:.20}: {refused:?}"
        );
        let mut call = turn.call(1, 0, Effect::Read);
        call.tool_input = Some(json(text));
        let refused = turn
            .store
            .complete_step(&turn.step(1), state("", vec![call]))
            .await;
        assert!(
            matches!(refused, Err(StoreError::Conflict(_))),
            "{text:.20}: {refused:?}"
        );
    }
    let refused = turn
        .store
        .complete_step(&turn.step(1), state("a\0b", vec![]))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Conflict(_))),
        "{refused:?}"
    );
    let other = Turn::new(turn.store.clone(), "d", "m");
    let refused = other.begin_as_run("a\0b").await;
    assert!(
        matches!(refused, Err(StoreError::Conflict(_))),
        "{refused:?}"
    );
    assert_eq!(turn.store.conversation(&tenant(), "d").await.unwrap(), None);
    assert!(matches!(
        turn.store.claim_tool(&turn.tool(0, 0), "a").await,
        Ok(ToolClaim::Run { .. })
    ));
}

#[tokio::test]
async fn a_locked_conversation_is_unavailable_and_the_others_are_not() {
    let database = Database::migrated().await;
    let options = PostgresOptions {
        statement_timeout: Duration::from_millis(100),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url, options)
        .await
        .unwrap();
    let turn = Turn::begun(store.clone(), "c", "m").await;
    let mut other = database.connection().await;
    let hold = "BEGIN; SELECT 1 FROM conversations WHERE id = 'c' FOR UPDATE";
    sqlx::raw_sql(hold).execute(&mut other).await.unwrap();
    let refused = turn.begin_as_run("").await.unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    Turn::begun(store, "d", "m").await;
    assert_eq!(turn.events().await.len(), 1, "readers are not held up");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    turn.begin_again().await;
}

/// The database ends a statement after some seconds, and a statement that removes many rows takes longer.
#[tokio::test]
async fn a_large_conversation_is_removed_in_a_time_of_its_own() {
    const EVENTS: u64 = 150_000;
    let database = Database::migrated().await;
    let options = PostgresOptions {
        statement_timeout: Duration::from_millis(300),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url, options)
        .await
        .unwrap();
    let deleted = Turn::begun(store.clone(), "deleted", "m").await;
    let old = Turn::begun(store.clone(), "old", "m").await;
    for turn in [&deleted, &old] {
        turn.complete(0, "answer", &[]).await;
        turn.end(0, AgentExecutionStatus::Completed).await;
    }
    database
        .run(
            "INSERT INTO agent_execution_events (id, conversation_id, message_id, event_type, sequence_number, \
             batch_key, created_at, event_data, data_bytes) \
             SELECT md5(c || n), c, 'm', 'observe', n, 'm/x/0/observe', now(), '{}', 2 \
             FROM generate_series(100, 150099) n, (VALUES ('deleted'), ('old')) AS two (c)",
        )
        .await;
    assert!(
        store
            .delete_conversation(&tenant(), "deleted", None)
            .await
            .unwrap()
    );
    let soon = Utc::now() + TimeDelta::hours(1);
    assert_eq!(
        store.next_expired(soon, None).await.unwrap().as_deref(),
        Some("old")
    );
    let batch = store.remove_expired(soon, None, 10).await.unwrap();
    assert_eq!(batch.removed.conversations, 1);
    assert!(batch.removed.events >= EVENTS, "{:?}", batch.removed);
    assert_eq!(store.next_expired(soon, None).await.unwrap(), None);
}

#[tokio::test]
async fn a_full_pool_is_unavailable_in_time() {
    let database = Database::migrated().await;
    let acquire_timeout = Duration::from_millis(200);
    let options = PostgresOptions {
        max_connections: 1,
        acquire_timeout,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url, options)
        .await
        .unwrap();
    let turn = Turn::begun(store, "c", "m").await;
    let mut other = database.connection().await;
    let hold = "BEGIN; SELECT 1 FROM conversations WHERE id = 'c' FOR UPDATE";
    sqlx::raw_sql(hold).execute(&mut other).await.unwrap();
    let waiting = tokio::spawn({
        let turn = turn.clone();
        async move { turn.begin_again().await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = turn
        .store
        .conversation_head(&tenant(), "c")
        .await
        .unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_claim_whose_answer_was_lost_is_still_the_claimants() {
    let database = Database::migrated().await;
    let line = Line::to(database.port()).await;
    let store = PostgresStore::connect(&database.url_at(line.port), PostgresOptions::default())
        .await
        .unwrap();
    let turn = Turn::begun(store, "c", "m").await;
    turn.asks(0, "", &[Effect::Once]).await;
    let key = turn.tool(0, 0);
    line.lose_answer();
    let lost = turn.store.claim_tool(&key, "a").await.unwrap_err();
    assert!(lost.is_retryable(), "{lost}");
    let other = turn.store.claim_tool(&key, "b").await.unwrap();
    assert!(
        matches!(&other, ToolClaim::OutcomeUnknown { record: left, .. } if left.attempt == 1),
        "it was committed: {other:?}"
    );
    let again = turn.store.claim_tool(&key, "a").await.unwrap();
    assert!(
        matches!(&again, ToolClaim::Run { record, .. } if record.attempt == 1),
        "nothing ran yet: {again:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_and_dead_lines_are_unavailable_and_the_store_recovers() {
    let database = Database::migrated().await;
    let line = Line::to(database.port()).await;
    let options = PostgresOptions {
        max_connections: 2,
        acquire_timeout: Duration::from_secs(1),
        call_timeout: Duration::from_secs(2),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url_at(line.port), options)
        .await
        .unwrap();
    let turn = Turn::begun(store, "c", "m").await;

    line.cut();
    // Each connection of the pool may fail one call, because it is dead.
    let mut failures = 0;
    while let Err(refused) = turn.begin_as_run("").await {
        assert!(refused.is_retryable(), "{refused}");
        failures += 1;
        assert!(failures < 5, "{refused}");
    }

    line.stall(true);
    let started = std::time::Instant::now();
    for _ in 0..4 {
        let refused = turn.begin_as_run("").await.unwrap_err();
        assert!(refused.is_retryable(), "{refused}");
    }
    assert!(
        started.elapsed() < Duration::from_secs(16),
        "no call waits for TCP to give up"
    );
    // The pool has room again although the dead connections never answered, so new connections would pass.
    let through = PostgresOptions {
        max_connections: 1,
        ..PostgresOptions::default()
    };
    PostgresStore::connect(&database.url, through)
        .await
        .unwrap();
    line.stall(false);
    turn.begin_again().await;
    turn.steer("s", "x").await;
    assert_eq!(turn.events().await.len(), 2);
}

#[tokio::test]
async fn a_restarted_server_is_unavailable_and_then_works() {
    let database = Database::migrated().await;
    let turn = Turn::begun(database.open().await, "c", "m").await;
    let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql(end_all)
        .execute(&mut database.connection().await)
        .await
        .unwrap();
    let mut failures = 0;
    while let Err(refused) = turn.begin_as_run("").await {
        assert!(refused.is_retryable(), "{refused}");
        failures += 1;
        assert!(failures < 5, "{refused}");
    }
    turn.store.close().await;
    let closed = turn.store.conversation(&tenant(), "c").await.unwrap_err();
    assert!(closed.is_retryable(), "{closed}");
    let nobody = PostgresStore::connect(
        "postgres://everturn@127.0.0.1:1/x",
        PostgresOptions::default(),
    )
    .await;
    assert!(nobody.unwrap_err().is_retryable());
    let no_url = PostgresStore::connect(
        "postgres://everturn:secret@127.0.0.1:port/x",
        PostgresOptions::default(),
    )
    .await;
    let error = no_url.unwrap_err();
    assert!(
        matches!(error, StoreError::Conflict(_)) && !error.to_string().contains("secret"),
        "{error}"
    );
}
