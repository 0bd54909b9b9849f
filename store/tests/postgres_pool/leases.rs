//! The leases of workers have a connection of their own: they do not wait behind the work of the process.

use std::time::{Duration, Instant};

use everturn_store::{
    ConnectionUsage, EventReader, LostWorkers, PostgresOptions, PostgresStore, WorkerId,
    WorkerLease, WorkerLeases,
};
use everturn_test_servers::wait;
use sqlx::AssertSqlSafe;
use tokio::task::JoinSet;

use crate::{
    fixture::tenant,
    support::{line::Line, postgres::Database},
};

/// The connections of the pool in these tests.
const CONNECTIONS: u32 = 3;
/// The calls that wait for the table must not give their connections up by themselves.
const LONG: Duration = Duration::from_secs(60);

fn lease(duration: Duration) -> WorkerLease {
    let worker = WorkerId::random();
    WorkerLease {
        identity: worker.identity("1@host"),
        worker,
        duration,
    }
}

/// Waits until this number of sessions in the database fits a condition.
async fn sessions_are(database: &Database, of: &str, count: i64) {
    let text = format!(
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND {of}"
    );
    wait::until(&format!("{count} sessions are {of}"), || async {
        let mut connection = database.connection().await;
        let found = sqlx::query_scalar(AssertSqlSafe(text.clone()));
        let found: i64 = found.fetch_one(&mut connection).await.unwrap();
        (found == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_lease_is_renewed_while_every_connection_waits_for_a_locked_table() {
    let database = Database::migrated().await;
    let options = PostgresOptions {
        max_connections: CONNECTIONS,
        acquire_timeout: LONG,
        statement_timeout: LONG,
        call_timeout: LONG,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&database.url, options)
        .await
        .unwrap();
    let mut holder = database.connection().await;
    let lock = "BEGIN; LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
    let mut calls = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let store = store.clone();
        calls.spawn(async move {
            drop(store.conversation_head(&tenant(), "c").await);
        });
    }
    let waiting = "application_name = 'everturn' AND wait_event_type = 'Lock'";
    sessions_are(&database, waiting, i64::from(CONNECTIONS)).await;
    let pool = store.connections();
    assert_eq!((pool.idle, pool.busy), (0, pool.limit), "nothing is left");

    // Each call gives up long before the lease is over.
    let lease = lease(Duration::from_secs(2));
    for _ in 0..3 {
        store.renew_lease(&lease).await.unwrap();
    }
    let seen = store.leases().await.unwrap();
    assert_eq!(seen.len(), 1);
    let held = store.hold_lease(&seen[0]).await.unwrap().unwrap();
    let taken = store.take_lease(&held).await.unwrap().unwrap();
    store.end_lease(&lease.worker).await.unwrap();
    store.remove_lease(&taken).await.unwrap();
    let ended = store.leases().await.unwrap();
    assert!(ended[0].is_ended, "the end came after the take: {ended:?}");
    assert!(calls.try_join_next().is_none(), "all calls still wait");

    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
    calls.join_all().await;
}

/// Renews a lease over a line that a test can stall and cut.
async fn renewed_over_a_line() -> (Database, Line, PostgresStore, WorkerLease) {
    let database = Database::migrated().await;
    let line = Line::to(database.port()).await;
    let url = database.url_at(line.port);
    let store = PostgresStore::connect(&url, PostgresOptions::default());
    let store = store.await.unwrap();
    let lease = lease(Duration::from_secs(4));
    store.renew_lease(&lease).await.unwrap();
    (database, line, store, lease)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dead_connection_is_replaced_within_a_lease() {
    let (_database, line, store, lease) = renewed_over_a_line().await;
    let renewed = Instant::now();
    line.stall(true);
    let lost = store.renew_lease(&lease).await.unwrap_err();
    assert!(lost.is_retryable(), "{lost}");
    line.stall(false);
    store.renew_lease(&lease).await.unwrap();
    assert!(
        renewed.elapsed() < lease.duration,
        "{:?}",
        renewed.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cut_connection_costs_one_renewal() {
    let (database, line, store, lease) = renewed_over_a_line().await;
    line.cut();
    let lost = store.renew_lease(&lease).await.unwrap_err();
    assert!(lost.is_retryable(), "{lost}");
    store.renew_lease(&lease).await.unwrap();
    store.close().await;
    let closed = store.renew_lease(&lease).await.unwrap_err();
    assert!(closed.is_retryable(), "{closed}");
    sessions_are(&database, "application_name = 'everturn leases'", 0).await;
}
