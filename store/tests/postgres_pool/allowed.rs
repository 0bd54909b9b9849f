//! A pool that is larger than what the server allows is refused.

use everturn_store::{PostgresOptions, PostgresStore, StoreError};
use everturn_test_servers::{postgres, wait};

use crate::support::postgres::Database;

#[tokio::test]
async fn a_pool_that_the_server_can_never_fill_is_refused_with_what_to_do() {
    let database = Database::migrated().await;
    let setup = "CREATE ROLE everturn_few LOGIN CONNECTION LIMIT 3; CREATE ROLE everturn_many LOGIN; \
                 GRANT SELECT ON ALL TABLES IN SCHEMA public TO everturn_few, everturn_many";
    sqlx::raw_sql(setup)
        .execute(&mut database.connection().await)
        .await
        .unwrap();
    // The server has 300, of which 3 are for superusers.
    for (role, allowed) in [
        ("everturn_few", 3),
        ("everturn_many", 297),
        (postgres::USER, 300),
    ] {
        let connect = async |max_connections| {
            let options = PostgresOptions {
                max_connections,
                ..PostgresOptions::default()
            };
            PostgresStore::connect(&database.url_as(role), options).await
        };
        // One connection is for leases.
        let most = allowed - 1;
        connect(most).await.unwrap().close().await;
        has_left(&database, role).await;
        let refused = connect(most + 1).await.unwrap_err();
        let expected = format!("to {most} or less");
        assert!(
            matches!(&refused, StoreError::Conflict(why) if why.contains(&expected)),
            "{role}: {refused}"
        );
    }
}

/// Waits until the server has no connection of this role any more: it closes them a moment after the client has gone.
async fn has_left(database: &Database, role: &str) {
    let text = "SELECT COUNT(*) FROM pg_stat_activity \
                WHERE usename = $1 AND datname = current_database() AND pid <> pg_backend_pid()";
    wait::until(&format!("the connections of {role} are closed"), || async {
        let mut connection = database.connection().await;
        let left = sqlx::query_scalar(text)
            .bind(role)
            .fetch_one(&mut connection);
        let left: i64 = left.await.unwrap();
        (left == 0).then_some(())
    })
    .await;
}
