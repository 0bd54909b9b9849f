//! Alerts on the database and on Redis. Only the production back ends have both, and a pool of connections to fill.

use everturn_tests::{
    model::{Model, Reply},
    stack::Stack,
};
use sqlx::{Connection, PgConnection};

use super::watched::Watched;

/// A stack on a PostgreSQL and a Redis that a test may break.
async fn breakable() -> Stack {
    Stack::breakable(Model::start(|_| Reply::text("Hello.")).await).await
}

#[tokio::test]
async fn the_database_is_away() {
    let stack = breakable().await;
    let mut watched = Watched::start(stack, 2).await;
    watched.is_well().await;
    // Also when no turn runs.
    watched.stack.postgres().stop().await;
    let errors = ["everturn_store_errors_total", "unavailable"];
    for _ in 0..9 {
        watched.rise(&errors).await;
        watched.minutes(1).await;
    }
    watched.only_fires(&["EverturnStoreAway"]).await;
}

#[tokio::test]
async fn redis_is_away() {
    let stack = breakable().await;
    let mut watched = Watched::start(stack, 1).await;
    watched.is_well().await;
    watched.stack.redis().kill().await;
    watched.busy_minutes(9).await;
    watched.only_fires(&["EverturnRedisAway"]).await;
}

/// Holds back all new events of a stack, until the connection is dropped.
async fn hold_events(stack: &Stack) -> PgConnection {
    let database = stack.backends().database().unwrap();
    let mut connection = PgConnection::connect(database).await.unwrap();
    let lock = "BEGIN; LOCK TABLE agent_execution_events IN EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut connection).await.unwrap();
    connection
}

#[tokio::test]
async fn all_connections_are_in_use() {
    let stack = breakable().await;
    stack.configure("[postgres]\nmax_connections = 1\n");
    let mut watched = Watched::start(stack, 1).await;
    watched.is_well().await;
    let held = hold_events(&watched.stack).await;
    watched.stack.ask("hello").await;
    let busy = r#"everturn_database_connections{state="busy"} 1"#;
    watched.shows("worker-1", busy).await;
    // These minutes are over before the call gives up, and before any poll is answered.
    watched.is_polled = false;
    watched.may_also_fire("EverturnNoWorkerPolls");
    watched.minutes(17).await;
    let fires = watched.only_fires(&["EverturnConnectionsInUse"]).await;
    fires[0].has("pod", "worker-1");
    drop(held);
}

#[tokio::test]
async fn saves_are_slow() {
    let stack = breakable().await;
    let mut watched = Watched::start(stack, 1).await;
    watched.is_well().await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(0.7); RETURN NULL; END $$; \
         CREATE TRIGGER slow AFTER INSERT ON agent_execution_events EXECUTE FUNCTION slow()";
    assert!(watched.stack.backends().run_sql(slow).await);
    watched.turns("hello", 2).await;
    watched.minutes(8).await;
    watched.only_fires(&["EverturnSavesSlow"]).await;
}
