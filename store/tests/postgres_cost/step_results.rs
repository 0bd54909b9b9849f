//! Measures what the observes of a step with many large results write. PostgreSQL counts the bytes of its log.

use everturn_proto::{Json, words::Effect};
use everturn_store::{
    PageLimit, PostgresOptions, PostgresStore, ToolClaims, ToolEnd, ToolKey, TurnInputs,
};
use everturn_test_servers::postgres::Postgres;
use sqlx::{Connection, PgConnection};

use crate::fixture::Turn;

/// Number of calls of the step.
const CALLS: usize = 64;
/// Number of observes that are measured together.
const MEASURED: usize = 10;
/// Bytes of a result, which PostgreSQL cannot compress much.
const BYTES: usize = 16 * 1024;

/// Runs calls of the first step to their observes. Returns the bytes of PostgreSQL's log.
async fn observed(
    turn: &Turn<PostgresStore>,
    database: &mut PgConnection,
    calls: std::ops::Range<usize>,
) -> i64 {
    let before = log_bytes(database).await;
    for index in calls {
        let key = turn.tool(0, index);
        turn.store.claim_tool(&key, "a").await.unwrap();
        let end = large_end(&key);
        turn.store.finish_tool(&key, end).await.unwrap();
        turn.observe(0, index, "").await;
    }
    log_bytes(database).await - before
}

async fn log_bytes(database: &mut PgConnection) -> i64 {
    let text = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    sqlx::query_scalar(text).fetch_one(database).await.unwrap()
}

/// A result of digits without a pattern.
fn large_end(key: &ToolKey) -> ToolEnd {
    let mut number = u64::from_str_radix("9e3779b97f4a7c15", 16).unwrap();
    let mut digits = String::with_capacity(BYTES);
    while digits.len() < BYTES {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        digits.push_str(&number.to_string());
    }
    let result = Json::parse(format!("\"{}{digits}\"", key.execution_id)).unwrap();
    ToolEnd::of_result(&key.execution_id, result, false, 1)
}

#[tokio::test]
async fn an_observe_does_not_write_the_results_of_its_step_anew() {
    // A server of its own: its log has what every database of it writes.
    let server = Postgres::start().await;
    server.create_database("measured").await;
    let url = server.url("measured");
    PostgresStore::migrate(&url).await.unwrap();
    let store = PostgresStore::connect(&url, PostgresOptions::default())
        .await
        .unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let turn = Turn::begun(store, "c", "m").await;
    turn.asks(0, "", &[const { Effect::Read }; CALLS]).await;
    let first = observed(&turn, &mut connection, 0..MEASURED).await;
    observed(&turn, &mut connection, MEASURED..CALLS - 1 - MEASURED).await;
    let late = CALLS - 1 - MEASURED..CALLS - 1;
    let late = observed(&turn, &mut connection, late).await;
    let last = observed(&turn, &mut connection, CALLS - 1..CALLS).await;
    println!("{MEASURED} observes: {first} bytes first, {late} late; the last alone: {last}");
    assert!(late < 2 * first, "{late} bytes, and {first} at first");
    let thread = everturn_proto::Thread::Conversation;
    let context = turn.store.context("c", &thread, PageLimit::rows(10), None);
    let row = context.await.unwrap().messages.pop().unwrap();
    let results = row.tool_results.iter().map(|result| &result.execution_id);
    let calls = row.tool_calls.iter().map(|call| &call.execution_id);
    assert!(results.eq(calls));
}
