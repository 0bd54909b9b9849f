//! A pooler between the store and the server works when it keeps sessions, and is refused when it does not.

use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{PostgresOptions, PostgresStore, StoreError};
use everturn_test_servers::pgbouncer::PgBouncer;
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};

use crate::{fixture::Turn, support::postgres::Database};

#[tokio::test]
async fn pgbouncer_in_session_mode_works_as_it_comes() {
    let database = Database::empty().await;
    let pooler = PgBouncer::start(database.port(), &["pool_mode = session"]).await;
    let url = database.url_at(pooler.port());
    PostgresStore::migrate(&url).await.unwrap();
    let store = PostgresStore::connect(&url, PostgresOptions::default())
        .await
        .unwrap();
    let turn = Turn::begun(store.clone(), "c", "m").await;
    turn.asks(0, "", &vec![Effect::Read; 4]).await;
    let tools = (0..4).map(|index| {
        let turn = turn.clone();
        tokio::spawn(async move { turn.runs(0, index).await })
    });
    for tool in tools.collect::<Vec<_>>() {
        tool.await.unwrap();
    }
    turn.complete(1, "answer", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    assert_eq!(turn.events().await.len(), 12);

    let settings = [
        ("SHOW statement_timeout", "5s"),
        ("SHOW idle_in_transaction_session_timeout", "10s"),
        ("SHOW enable_bitmapscan", "off"),
    ];
    for (text, expected) in settings {
        let found: String = sqlx::query_scalar(text)
            .fetch_one(store.pool())
            .await
            .unwrap();
        assert_eq!(found, expected, "{text}");
    }
}

#[tokio::test]
async fn pgbouncer_that_keeps_no_sessions_is_refused_with_what_to_do() {
    for mode in ["pool_mode = transaction", "pool_mode = statement"] {
        for order in ["server_round_robin = 0", "server_round_robin = 1"] {
            let database = Database::migrated().await;
            let pooler = PgBouncer::start(database.port(), &[mode, order]).await;
            let url = database.url_at(pooler.port());
            // However many sessions the pooler has at hand.
            for sessions in 1..=3 {
                open_sessions(&database, &pooler, sessions).await;
                let refused = PostgresStore::connect(&url, PostgresOptions::default()).await;
                assert_refused(&refused.unwrap_err(), mode);
                assert_refused(&PostgresStore::migrate(&url).await.unwrap_err(), mode);
            }
        }
    }
}

fn assert_refused(refused: &StoreError, mode: &str) {
    assert!(
        !refused.is_retryable() && refused.to_string().contains("session mode"),
        "{mode}: {refused:?}"
    );
}

/// Makes the pooler open so many sessions of the server.
async fn open_sessions(database: &Database, pooler: &PgBouncer, sessions: usize) {
    let options: PgConnectOptions = database.url_at(pooler.port()).parse().unwrap();
    let mut busy = Vec::new();
    for _ in 0..sessions {
        let options = options.clone().extra_float_digits(None);
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        busy.push(tokio::spawn(async move {
            sqlx::raw_sql("SELECT pg_sleep(0.2)")
                .execute(&mut connection)
                .await
                .unwrap();
            connection.close().await.unwrap();
        }));
    }
    for session in busy {
        session.await.unwrap();
    }
}
