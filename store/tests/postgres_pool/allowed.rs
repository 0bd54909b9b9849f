//! A pool that is larger than what the server allows is refused.

use everturn_store::{PostgresOptions, PostgresStore, StoreError};
use everturn_test_servers::postgres;

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
        connect(allowed).await.unwrap();
        let refused = connect(allowed + 1).await.unwrap_err();
        let expected = format!("to {allowed} or less");
        assert!(
            matches!(&refused, StoreError::Conflict(why) if why.contains(&expected)),
            "{role}: {refused}"
        );
    }
}
