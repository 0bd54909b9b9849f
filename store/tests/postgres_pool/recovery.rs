//! A server in recovery is not asked: it lacks the last commits.

use std::time::Duration;

use everturn_store::{EventReader, PostgresOptions, PostgresStore, StoreError};
use everturn_test_servers::postgres::Postgres;

#[tokio::test]
async fn a_server_in_recovery_is_refused_and_used_when_it_has_recovered() {
    let server = Postgres::start().await;
    server.create_database("everturn").await;
    let url = server.url("everturn");
    PostgresStore::migrate(&url).await.unwrap();
    server.back_up().await;
    let options = PostgresOptions {
        acquire_timeout: Duration::from_secs(1),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect(&url, options.clone()).await.unwrap();
    let ask = async || store.last_sequences(&["c".to_owned()]).await;
    ask().await.unwrap();

    server.fall_behind().await;
    // The first call may still meet the connection of before.
    for _ in 0..2 {
        let refused = ask().await.unwrap_err();
        assert!(refused.is_retryable(), "{refused}");
    }
    for refused in [
        PostgresStore::connect(&url, options).await.map(drop),
        PostgresStore::migrate(&url).await,
    ] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(&refused, StoreError::Unavailable(why) if why.to_string().contains("in recovery")),
            "{refused}"
        );
    }

    server.catch_up().await;
    assert_eq!(ask().await.unwrap(), []);
}
