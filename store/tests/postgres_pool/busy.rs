//! The calls of a conversation that has to wait for its lock, or for its rows, leave connections to the others.

use std::{sync::Arc, time::Duration};

use everturn_proto::words::{AgentExecutionStatus, Effect, FailureCode};
use everturn_store::{
    ConversationChange, Conversations, MessageQueue, ModelCalls, OnUnknownAgent, PostgresOptions,
    PostgresStore, Reconciliation, StepClaim, StepClaims, ToolClaim, ToolClaims, TurnFailure,
    Turns,
};
use everturn_test_servers::wait;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::task::JoinSet;

use crate::{
    fixture::{Turn, new_message, state, tenant, tool_end},
    support::postgres::Database,
};

/// The connections of the store in these tests.
const CONNECTIONS: u32 = 4;
/// The parallel tools of a step: more than there are connections.
const TOOLS: usize = 12;
/// A server that is never too slow for these tests.
const LONG: Duration = Duration::from_secs(60);

/// Two conversations in one database: one whose rows another session holds, and one that nobody holds.
struct Scene {
    database: Database,
    busy: Arc<Turn<PostgresStore>>,
    other: Turn<PostgresStore>,
    holder: PgConnection,
}

impl Scene {
    /// Begins a turn in both conversations, whose first step asks for tools.
    async fn begin() -> Self {
        let database = Database::migrated().await;
        let options = PostgresOptions {
            max_connections: CONNECTIONS,
            acquire_timeout: Duration::from_secs(10),
            // The calls that wait must not give their connections up by themselves.
            statement_timeout: LONG,
            call_timeout: LONG,
            ..PostgresOptions::default()
        };
        let store = PostgresStore::connect(&database.url, options)
            .await
            .unwrap();
        let busy = Turn::begun(store.clone(), "busy", "m").await;
        busy.asks(0, "", &vec![Effect::Read; TOOLS]).await;
        let other = Turn::begun(store, "other", "m").await;
        other.asks(0, "", &[Effect::Read]).await;
        let holder = database.connection().await;
        Self {
            database,
            busy: Arc::new(busy),
            other,
            holder,
        }
    }

    /// Takes rows in a transaction of the other session.
    async fn hold(&mut self, rows: &'static str) {
        let hold = AssertSqlSafe(format!("BEGIN; {rows} FOR UPDATE"));
        sqlx::raw_sql(hold).execute(&mut self.holder).await.unwrap();
    }

    async fn let_go(&mut self) {
        let rollback = sqlx::raw_sql("ROLLBACK").execute(&mut self.holder);
        rollback.await.unwrap();
    }

    /// Makes every claim, end and save of the conversation that nobody holds, while all of `calls` are under way and
    /// wait.
    async fn others_go_on(&self, calls: &mut JoinSet<()>) {
        self.a_call_waits().await;
        let turn = &self.other;
        let key = turn.tool(0, 0);
        let claimed = turn.store.claim_tool(&key, "a").await.unwrap();
        assert!(matches!(claimed, ToolClaim::Run { .. }), "{claimed:?}");
        let end = tool_end("\"found\"");
        turn.store.finish_tool(&key, end).await.unwrap();
        turn.observe(0, 0, "").await;
        let claimed = turn.store.claim_step(&turn.step(1), None).await.unwrap();
        assert!(matches!(claimed, StepClaim::Call(_)), "{claimed:?}");
        turn.complete(1, "answer", &[]).await;
        turn.end(1, AgentExecutionStatus::Completed).await;
        let ended = calls.try_join_next();
        assert!(ended.is_none(), "all calls still wait, but: {ended:?}");
    }

    /// Waits until a connection of the store waits for a row.
    async fn a_call_waits(&self) {
        let text = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                    AND application_name = 'everturn' AND wait_event_type = 'Lock'";
        wait::until("a call waits for a row", || async {
            let mut connection = self.database.connection().await;
            let waiting: i64 = sqlx::query_scalar(text)
                .fetch_one(&mut connection)
                .await
                .unwrap();
            (waiting > 0).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn observes_that_wait_for_their_conversation_leave_connections_to_others() {
    let mut scene = Scene::begin().await;
    for tool in 0..TOOLS {
        let key = scene.busy.tool(0, tool);
        let store = &scene.busy.store;
        store.claim_tool(&key, "a").await.unwrap();
        store.finish_tool(&key, tool_end("1")).await.unwrap();
    }
    scene
        .hold("SELECT 1 FROM conversations WHERE id = 'busy'")
        .await;
    let mut calls = JoinSet::new();
    for tool in 0..TOOLS {
        let busy = scene.busy.clone();
        calls.spawn(async move {
            busy.observe(0, tool, "").await;
        });
    }
    scene.others_go_on(&mut calls).await;

    scene.let_go().await;
    while let Some(saved) = calls.join_next().await {
        saved.unwrap();
    }
    let events = scene.busy.types().await;
    let observes = events.iter().filter(|name| *name == "observe").count();
    assert_eq!(observes, TOOLS, "{events:?}");
}

#[tokio::test]
async fn claims_that_wait_for_their_records_leave_connections_to_others() {
    let mut scene = Scene::begin().await;
    // As the end of a turn and a removal do it.
    scene
        .hold("SELECT 1 FROM tool_execution_records WHERE conversation_id = 'busy'")
        .await;
    let mut calls = JoinSet::new();
    for tool in 0..TOOLS {
        let busy = scene.busy.clone();
        calls.spawn(async move {
            let claimed = busy.store.claim_tool(&busy.tool(0, tool), "a").await;
            assert!(matches!(claimed, Ok(ToolClaim::Run { .. })), "{claimed:?}");
        });
    }
    scene.others_go_on(&mut calls).await;

    scene.let_go().await;
    while let Some(claimed) = calls.join_next().await {
        claimed.unwrap();
    }
}

/// Starts a call of `$busy` as often as there are connections.
macro_rules! starve {
    ($calls:expr, $busy:expr, |$turn:ident| $call:expr) => {
        for _ in 0..CONNECTIONS {
            let $turn = $busy.clone();
            $calls.spawn(async move {
                drop($call.await);
            });
        }
    };
}

#[tokio::test]
async fn no_call_of_a_conversation_takes_every_connection() {
    let mut scene = Scene::begin().await;
    let rows = [
        "SELECT 1 FROM conversations WHERE id = 'busy'",
        "SELECT 1 FROM agent_executions WHERE conversation_id = 'busy'",
        "SELECT 1 FROM tool_execution_records WHERE conversation_id = 'busy'",
    ];
    for text in rows {
        scene.hold(text).await;
    }
    let (calls, busy) = (&mut JoinSet::new(), scene.busy.clone());
    starve!(calls, busy, |turn| turn.store.begin_turn(turn.begin("")));
    starve!(calls, busy, |turn| async move {
        let failed = TurnFailure {
            code: FailureCode::TurnLost,
            message: "lost",
        };
        let conversation = turn.conversation().await;
        turn.store.fail_turn(&conversation, "m", failed).await
    });
    starve!(calls, busy, |turn| async move {
        turn.store
            .begin_sub_agent(&turn.tool(0, 0), &[].into(), OnUnknownAgent::Begin)
            .await
    });
    starve!(calls, busy, |turn| async move {
        let message = new_message("busy", "next", None);
        turn.store.queue_message(&tenant(), message).await
    });
    starve!(calls, busy, |turn| async move {
        turn.store.withdraw_message(&tenant(), "busy", "x").await
    });
    starve!(calls, busy, |turn| async move {
        let title = ConversationChange::of_title("title");
        turn.store
            .change_conversation(&tenant(), "busy", &title)
            .await
    });
    starve!(calls, busy, |turn| async move {
        turn.store
            .delete_conversation(&tenant(), "busy", None)
            .await
    });
    starve!(calls, busy, |turn| async move {
        turn.store.claim_step(&turn.step(1), None).await
    });
    starve!(calls, busy, |turn| async move {
        turn.store
            .complete_step(&turn.step(1), state("", vec![]))
            .await
    });
    starve!(calls, busy, |turn| async move {
        turn.store
            .save_partial(&turn.step(1), state("", vec![]))
            .await
    });
    starve!(calls, busy, |turn| async move {
        turn.store
            .finish_tool(&turn.tool(0, 0), tool_end("1"))
            .await
    });
    scene.others_go_on(calls).await;
    calls.abort_all();
}
