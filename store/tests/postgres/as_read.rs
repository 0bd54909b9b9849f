//! Saves and begins that read without a lock: what happens between their two statements. A connection of the test holds
//! the conversation's lock, so that each waits in its second statement, and changes something there. And saves that need
//! not read, because their process has just written what they are built from.

use std::time::Duration;

use everturn_proto::{
    turn::{LlmCompleteState, SaveCutReply, SaveThought, save_request::Batch},
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    EventWriter, Missing, PostgresOptions, PostgresStore, StepClaims, StoreError, ToolClaims,
    TurnStart, Turns,
};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::{
    conformance::fixture::{Turn, json, state, tool_end},
    support::postgres::Database,
};

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

/// The turn at another worker, which has to read what it saves.
async fn elsewhere(database: &Database, turn: &Turn<PostgresStore>) -> Turn<PostgresStore> {
    Turn {
        store: store(database).await,
        ..turn.clone()
    }
}

/// A turn whose first reply is stored and not saved yet, at the worker that began it or at another one.
async fn replied(database: &Database, has_to_read: bool) -> Turn<PostgresStore> {
    let turn = Turn::begun(store(database).await, "c", "m").await;
    turn.complete(0, "look", &[Effect::Read]).await;
    if has_to_read {
        elsewhere(database, &turn).await
    } else {
        turn
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_came_between_is_before_those_of_the_save() {
    for has_to_read in [false, true] {
        let database = Database::migrated().await;
        let turn = replied(&database, has_to_read).await;
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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_replaced_meanwhile_saves_nothing() {
    for has_to_read in [false, true] {
        let database = Database::migrated().await;
        let turn = replied(&database, has_to_read).await.under(Some(0));
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
}

/// Runs a turn with a cut answer, two tools, one of which emits an event, and a steer.
async fn whole_turn(database: &Database, has_to_read: bool) -> Vec<serde_json::Value> {
    let first = Turn::begun(store(database).await, "c", "m").await;
    let next = async || {
        if has_to_read {
            elsewhere(database, &first).await
        } else {
            first.clone()
        }
    };
    let emitted = r#"{"plan_id":"p","title":"t","steps":[]}"#;
    next()
        .await
        .complete(0, "look", &[Effect::Read, Effect::Read])
        .await;
    next().await.thought(0).await;
    for index in [1, 0] {
        let mut end = tool_end(&format!(r#"{{"found":{index},"a":[1.50]}}"#));
        if index == 0 {
            end.events = vec![("work_plan".into(), json(emitted))];
        }
        let key = first.tool(0, index);
        next().await.store.claim_tool(&key, "a").await.unwrap();
        next().await.store.finish_tool(&key, end).await.unwrap();
        next().await.observe(0, index, "").await;
    }
    let cut = LlmCompleteState {
        is_cut: true,
        goes_on: true,
        reasoning: "hm".into(),
        ..state("the answer is", vec![])
    };
    let turn = next().await;
    turn.store.complete_step(&turn.step(1), cut).await.unwrap();
    next().await.save(1, Batch::CutReply(SaveCutReply {})).await;
    next().await.complete(2, "42", &[]).await;
    next().await.end(2, AgentExecutionStatus::Completed).await;
    let mut rows = rows(database).await;
    for row in &mut rows {
        let row = row.as_object_mut().unwrap();
        row.retain(|name, _| name != "log_id" && !name.ends_with("_at"));
    }
    rows
}

/// Reads all that a turn has written.
async fn rows(database: &Database) -> Vec<serde_json::Value> {
    let mut connection = database.connection().await;
    let mut rows = Vec::new();
    for table in [
        "conversations",
        "messages",
        "agent_executions",
        "agent_execution_events",
        "tool_execution_records",
        "execution_checkpoints",
        "work_plans",
    ] {
        let text =
            format!("SELECT to_jsonb(t) FROM {table} t ORDER BY to_jsonb(t)->>'id', to_jsonb(t)");
        let found: Vec<serde_json::Value> = sqlx::query_scalar(AssertSqlSafe(text))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        assert_ne!(found.len(), 0, "{table}");
        rows.extend(found);
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_is_saved_as_what_is_read() {
    let (here, elsewhere) = (Database::migrated().await, Database::migrated().await);
    let (known, read) = (
        whole_turn(&here, false).await,
        whole_turn(&elsewhere, true).await,
    );
    assert_eq!(known.len(), read.len());
    for (known, read) in known.iter().zip(&read) {
        assert_eq!(known, read);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_have_written_is_read() {
    let database = Database::migrated().await;
    let here = Turn::begun(store(&database).await, "c", "m").await;
    let there = elsewhere(&database, &here).await;
    here.asks(0, "look", &[Effect::Read, Effect::Read]).await;
    there.runs(0, 1).await;
    here.runs(0, 0).await;
    there.asks(1, "again", &[Effect::Read]).await;
    here.runs(1, 0).await;
    here.complete(2, "answer", &[]).await;
    here.end(2, AgentExecutionStatus::Completed).await;
    let expected = [
        "user_message",
        "thought",
        "act",
        "act",
        "observe",
        "observe",
        "thought",
        "act",
        "observe",
        "assistant_message",
        "complete",
    ];
    assert_eq!(here.types().await, expected);
    assert_eq!(here.data("complete").await["steps"], 3);
    let again = here.thought(0).await.result;
    assert_eq!(
        (again.status(), again.last_sequence),
        (AgentExecutionStatus::Completed, 11)
    );
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
