//! Waits and ages go by the clock of the database. The clocks of workers and gateways may differ by minutes.
//!
//! A test cannot set the clock of its process, so each test sets the clock of its database: a schema of the test hides
//! PostgreSQL's function for the time.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use everturn_proto::turn::{SaveThought, save_request::Batch};
use everturn_store::{ClientToolClaim, EventWriter, OutsideTools, PageLimit, PostgresStore};
use sqlx::AssertSqlSafe;

use crate::{
    conformance::{
        Backend,
        fixture::{Turn, tenant},
        outside::asking,
    },
    support::postgres::Database,
};

const CLOCK: &str = "
    CREATE SCHEMA clock;
    CREATE TABLE clock.ahead (by_time INTERVAL NOT NULL);
    INSERT INTO clock.ahead VALUES ('0');
    CREATE FUNCTION clock.clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE sql VOLATILE AS
        'SELECT pg_catalog.clock_timestamp() + (SELECT by_time FROM clock.ahead)';
    DO $$ BEGIN EXECUTE format(
        'ALTER DATABASE %I SET search_path = clock, pg_catalog, public', current_database()
    ); END $$";

/// A database whose clock differs from the clock of the process.
struct Clock(Database);

impl Clock {
    /// Makes a database with a clock that is 15 minutes behind. The process is therefore 15 minutes ahead.
    async fn behind() -> Self {
        let clock = Self(Database::migrated().await);
        let mut connection = clock.0.connection().await;
        let made = sqlx::raw_sql(CLOCK).execute(&mut connection).await;
        made.unwrap();
        clock.set("-15 minutes").await;
        clock
    }

    /// Sets the clock, relative to the clock of the process.
    async fn set(&self, ahead: &str) {
        let mut connection = self.0.connection().await;
        let set = AssertSqlSafe(format!("UPDATE clock.ahead SET by_time = '{ahead}'"));
        sqlx::query(set).execute(&mut connection).await.unwrap();
    }
}

#[tokio::test]
async fn the_age_of_a_turn_goes_by_the_clock_of_the_database() {
    let clock = Clock::behind().await;
    let turn = Turn::begun(clock.0.open().await, "c", "m").await;
    let age = turn.begin_again().await.age;
    assert!(age < Duration::from_mins(1), "{age:?}");
    clock.set("-5 minutes").await;
    let age = turn.begin_again().await.age;
    let expected = Duration::from_mins(10)..Duration::from_mins(11);
    assert!(expected.contains(&age), "{age:?}");
}

/// Saves the thought again, as a run does that was reset. Returns the rest of the wait for the person.
async fn left_ms(turn: &Turn<PostgresStore>) -> u32 {
    let thought = turn.request(0, Batch::Thought(SaveThought {}));
    let again = turn.store.save(&thought).await.unwrap().result;
    let id = turn.execution_id(0, 0);
    let mut waiting = again.still_waiting.iter();
    waiting
        .find(|waiting| waiting.execution_id == id)
        .unwrap()
        .left_ms
}

async fn is_expired(turn: &Turn<PostgresStore>) -> bool {
    let (store, access, id) = (&turn.store, tenant(), turn.execution_id(0, 0));
    let call = store.outside_tool(&access, "c", &id).await.unwrap();
    let listed = store.waiting_tools(&access, "c", PageLimit::rows(10)).await;
    let (call, listed) = (call.unwrap(), listed.unwrap());
    assert_eq!(call, listed[0]);
    call.is_expired
}

#[tokio::test]
async fn the_wait_for_an_approval_goes_by_the_clock_of_the_database() {
    let clock = Clock::behind().await;
    // The person has a minute.
    let turn = asking(&clock.0).await;
    let left = left_ms(&turn).await;
    assert!((40_000..=60_000).contains(&left), "{left}");
    assert!(!is_expired(&turn).await);
    clock.set("-14 minutes -30 seconds").await;
    let left = left_ms(&turn).await;
    assert!((10_000..=30_000).contains(&left), "{left}");
    assert!(!is_expired(&turn).await);
    clock.set("-13 minutes").await;
    assert_eq!(left_ms(&turn).await, 0);
    assert!(is_expired(&turn).await);
}

#[tokio::test]
async fn the_claim_of_a_client_goes_by_the_clock_of_the_database() {
    let clock = Clock::behind().await;
    let turn = asking(&clock.0).await;
    let (access, id) = (tenant(), turn.execution_id(0, 1));
    let claim = async |claimant: &str| {
        let until = Utc::now() + TimeDelta::minutes(1);
        let claim = turn
            .store
            .claim_client_tool(&access, "c", &id, claimant, until);
        claim.await.unwrap().unwrap()
    };
    let first = ClientToolClaim::Run { is_repeated: false };
    assert_eq!(claim("laptop").await, first);
    let held = claim("phone").await;
    assert!(matches!(held, ClientToolClaim::Held { .. }), "{held:?}");
    clock.set("-13 minutes").await;
    let again = ClientToolClaim::Run { is_repeated: true };
    assert_eq!(claim("phone").await, again);
}
