//! The keys and the locks of removals.

use everturn_proto::{turn::AgentDefinition, words::AgentExecutionStatus};
use everturn_store::{
    BeginTurn, Estimate, ModelCalls, PostgresOptions, PostgresStore, Reservation, StepClaim,
    StepClaims, StoreError, Turns,
};
use everturn_test_servers::wait;
use sqlx::PgConnection;

use crate::{
    conformance::{
        budgets::of_tokens,
        delegation::{agents, begun, delegates},
        fixture::Turn,
    },
    support::postgres::Database,
};

/// Without an index, PostgreSQL looks through a table for every removed row that another row may refer to. Among the
/// rows are those that the transaction has removed, so the removal of a conversation takes the square of its size.
#[tokio::test]
async fn every_foreign_key_has_an_index() {
    let database = Database::migrated().await;
    let text = "SELECT f.conrelid::regclass::text || ': ' || f.conname::text FROM pg_constraint f \
                WHERE f.contype = 'f' AND NOT EXISTS ( \
                    SELECT 1 FROM pg_index i WHERE i.indrelid = f.conrelid AND \
                    (SELECT array_agg(k ORDER BY k) FROM unnest(f.conkey) AS k) = (SELECT array_agg(k ORDER BY k) \
                     FROM unnest((i.indkey::int2[])[0:cardinality(f.conkey) - 1]) AS k))";
    let mut connection = database.connection().await;
    let without: Vec<String> = sqlx::query_scalar(text)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(without, Vec::<String>::new());
}

/// A turn may begin with a definition at the moment at which the unused definition is removed.
#[tokio::test]
async fn a_definition_that_has_just_gone_lets_the_call_be_repeated() {
    let database = Database::migrated().await;
    let store = PostgresStore::connect(&database.url, PostgresOptions::default());
    Turn::begun(store.await.unwrap(), "c", "m").await;
    let mut connection = database.connection().await;
    let late = "UPDATE agent_executions SET agent_hash = 'gone'";
    let refused = sqlx::query(late).execute(&mut connection).await;
    let refused = StoreError::from(refused.unwrap_err());
    assert!(refused.is_retryable(), "{refused}");
}

async fn run(connection: &mut PgConnection, text: &'static str) {
    sqlx::raw_sql(text).execute(connection).await.unwrap();
}

/// The end of a turn with a lost sub-agent waits for the agent execution of the turn before the transaction takes the
/// budget. The worker of a call takes the two rows in this order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_tree_takes_the_budget_last() {
    let database = Database::migrated().await;
    let store = PostgresStore::connect(&database.url, PostgresOptions::default());
    let store = store.await.unwrap();
    let root = Turn::new(store.clone(), "c", "m");
    let begin = BeginTurn {
        agent: AgentDefinition {
            budget: Some(of_tokens(1_000)),
            ..agents()["a"].clone()
        },
        ..root.begin("share this out")
    };
    store.begin_turn(begin).await.unwrap();
    delegates(&root, &[r#"{"agent": "b", "task": "look"}"#]).await;
    // The call of the sub-agent has a reservation, which the end gives back.
    let child = begun(&root, 0).await.step(0);
    let StepClaim::Call(call) = store.claim_step(&child, None).await.unwrap() else {
        panic!("the call was made before");
    };
    let most = Estimate {
        tokens: 10,
        nano_usd: 0,
    };
    let reserved = store.reserve_call(&child, call.generation, most, None);
    assert_eq!(reserved.await.unwrap(), Reservation::Made);

    let mut worker = database.connection().await;
    let takes =
        "BEGIN; SELECT 1 FROM agent_executions WHERE parent_execution_id IS NULL FOR NO KEY UPDATE";
    run(&mut worker, takes).await;
    let end = tokio::spawn({
        let root = root.clone();
        async move { root.end(1, AgentExecutionStatus::Cancelled).await }
    });
    let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    wait::until("the end waits for the worker", || async {
        let waiting: i64 = sqlx::query_scalar(waits)
            .fetch_one(store.pool())
            .await
            .unwrap();
        (waiting == 1).then_some(())
    })
    .await;
    // The budget is still free.
    let goes_on = "SET LOCAL lock_timeout = '5s'; UPDATE conversation_budgets SET turn_steps = turn_steps; COMMIT";
    run(&mut worker, goes_on).await;
    let ended = end.await.unwrap();
    assert_eq!(ended.result.status(), AgentExecutionStatus::Cancelled);
}
