//! Checks that the saves of a running turn are heap-only updates of the conversation: PostgreSQL writes the new version
//! of the row into the row's page, and touches no index.

use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{PostgresOptions, PostgresStore};

use crate::{fixture::Turn, support::postgres::Database};

/// The tools of the measured step, each with a save.
const TOOLS: usize = 8;

/// Returns the number of updates of a table, and the number of heap-only updates. The store has a single connection,
/// which sends its counts before the next statement.
async fn updates(store: &PostgresStore, table: &str) -> (i64, i64) {
    let mut connection = store.pool().acquire().await.unwrap();
    sqlx::query("SELECT pg_stat_force_next_flush()")
        .execute(&mut *connection)
        .await
        .unwrap();
    let text = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1";
    let counts = sqlx::query_as(text).bind(table);
    counts.fetch_one(&mut *connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saves_of_a_running_turn_touch_no_index() {
    let database = Database::migrated().await;
    let options = PostgresOptions {
        max_connections: 1,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url, options)
        .await
        .unwrap();
    let turn = Turn::begun(store.clone(), "c", "m").await;
    turn.asks(0, "look", &[const { Effect::Read }; TOOLS]).await;
    let begun = updates(&store, "conversations").await;
    let of_lists = updates(&store, "list_changes").await;
    for index in 0..TOOLS {
        turn.runs(0, index).await;
    }
    let saved = updates(&store, "conversations").await;
    let saves = i64::try_from(TOOLS).unwrap();
    assert_eq!((saved.0 - begun.0, saved.1 - begun.1), (saves, saves));
    assert_eq!(
        updates(&store, "list_changes").await,
        of_lists,
        "no list changes"
    );

    // The end moves the conversation in the lists. The change of the list itself is heap-only.
    turn.complete(1, "answer", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    let ended = updates(&store, "conversations").await;
    assert_eq!((ended.0 - saved.0, ended.1 - saved.1), (1, 0));
    let changed = updates(&store, "list_changes").await;
    assert_eq!((changed.0 - of_lists.0, changed.1 - of_lists.1), (1, 1));
}
