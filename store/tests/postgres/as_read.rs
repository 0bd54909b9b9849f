//! Saves and begins that read without a lock: what happens between their two statements. A connection of the test holds
//! the conversation's lock, so that each waits in its second statement, and changes something there.

use std::time::Duration;

use everturn_proto::{
    turn::{SaveThought, save_request::Batch},
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{Missing, PostgresOptions, PostgresStore, StoreError, TurnStart, TurnStore};
use sqlx::PgConnection;

use crate::{conformance::fixture::Turn, support::postgres::Database};

/// Holds the lock of the conversation `c`.
struct Holder {
    connection: PgConnection,
    /// Another one: within a transaction, PostgreSQL tells what others do only once.
    looking: PgConnection,
}

impl Holder {
    async fn of(database: &Database) -> Self {
        let mut connection = database.connection().await;
        let lock = "BEGIN; SELECT 1 FROM conversations WHERE id = 'c' FOR UPDATE";
        sqlx::raw_sql(lock).execute(&mut connection).await.unwrap();
        Self {
            connection,
            looking: database.connection().await,
        }
    }

    /// Waits until so many statements wait for a lock.
    async fn is_waited_for(&mut self, count: i64) {
        let text = "SELECT COUNT(*) FROM pg_stat_activity \
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
        loop {
            let waiting: i64 = sqlx::query_scalar(text)
                .fetch_one(&mut self.looking)
                .await
                .unwrap();
            if waiting == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Runs a statement and lets the others go on.
    async fn commit(mut self, text: &'static str) {
        for text in [text, "COMMIT"] {
            sqlx::raw_sql(text)
                .execute(&mut self.connection)
                .await
                .unwrap();
        }
    }
}

async fn store(database: &Database) -> PostgresStore {
    PostgresStore::connect(&database.url, PostgresOptions::default())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_came_between_is_before_those_of_the_save() {
    let database = Database::migrated().await;
    let turn = Turn::begun(store(&database).await, "c", "m").await;
    turn.complete(0, "look", &[Effect::Read]).await;
    let mut holder = Holder::of(&database).await;
    let save = tokio::spawn({
        let turn = turn.clone();
        async move { turn.thought(0).await }
    });
    holder.is_waited_for(1).await;
    holder
        .commit(
            "INSERT INTO agent_execution_events SELECT 'between', 'c', 'm', 'thought', 2, 'k', now(), '{}', 2; \
             UPDATE conversations SET last_sequence = 2 WHERE id = 'c'",
        )
        .await;
    let saved = save.await.unwrap();
    assert_eq!(saved.result.last_sequence, 4);
    assert_eq!(
        turn.types().await,
        ["user_message", "thought", "thought", "act"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_replaced_meanwhile_saves_nothing() {
    let database = Database::migrated().await;
    let turn = Turn::begun(store(&database).await, "c", "m").await;
    let turn = turn.under(Some(0));
    turn.complete(0, "look", &[Effect::Read]).await;
    let mut holder = Holder::of(&database).await;
    let save = tokio::spawn({
        let turn = turn.clone();
        let thought = turn.request(0, Batch::Thought(SaveThought {}));
        async move { turn.store.save(&thought).await }
    });
    holder.is_waited_for(1).await;
    holder
        .commit("UPDATE conversations SET run_epoch = 1, granted_epoch = 1 WHERE id = 'c'")
        .await;
    let refused = save.await.unwrap().unwrap_err();
    assert!(
        matches!(refused, StoreError::RunReplaced { .. }),
        "{refused}"
    );
    assert_eq!(turn.types().await, ["user_message"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_turns_that_find_none_running_one_begins() {
    let database = Database::migrated().await;
    let turn = Turn::begun(store(&database).await, "c", "m").await;
    turn.complete(0, "answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let mut turns = Vec::new();
    for message in ["one", "two"] {
        let next = Turn::new(store(&database).await, "c", message);
        next.queue(message).await;
        turns.push(next);
    }
    let mut holder = Holder::of(&database).await;
    let begin = |turn: Turn<PostgresStore>| {
        tokio::spawn(async move { turn.store.begin_turn(turn.begin("")).await.unwrap() })
    };
    let begins: Vec<_> = turns.into_iter().map(begin).collect();
    holder.is_waited_for(2).await;
    holder.commit("SELECT 1").await;
    let mut begun = 0;
    for begin in begins {
        match begin.await.unwrap() {
            TurnStart::Begun(_) => begun += 1,
            TurnStart::AskAgain { epoch } => assert_eq!(epoch, 1),
        }
    }
    assert_eq!(begun, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_withdrawn_meanwhile_begins_no_turn() {
    let database = Database::migrated().await;
    let turn = Turn::begun(store(&database).await, "c", "m").await;
    turn.complete(0, "answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let next = Turn::new(turn.store.clone(), "c", "next");
    next.queue("next").await;
    let mut holder = Holder::of(&database).await;
    let begin = tokio::spawn({
        let next = next.clone();
        async move { next.store.begin_turn(next.begin("")).await }
    });
    holder.is_waited_for(1).await;
    holder
        .commit("DELETE FROM messages WHERE conversation_id = 'c' AND id = 'next'")
        .await;
    let refused = begin.await.unwrap().unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::NotFound {
                what: Missing::Message,
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(turn.types().await.last().unwrap(), "complete");
}
