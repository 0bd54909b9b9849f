//! Workers that are killed, stand still, or stop: what they had been given begins again at others, because a gateway sees
//! that their leases are over, and not because a heartbeat is late.

use std::{
    fs,
    time::{Duration, Instant},
};

use everturn_proto::words::FailureCode;
use everturn_store::SeenLease;
use everturn_tests::{
    events::{contents, observe, types},
    model::{Model, Reply, Request},
    stack::{Process, Stack},
    wait,
};
use futures::future::join_all;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use temporalio_client::Client;
use temporalio_common::protos::temporal::api::{
    taskqueue::v1::TaskQueue, workflowservice::v1::PollActivityTaskQueueRequest,
};

use crate::both::crash::half_at_first;

const WHOLE_TURN: &str = "user_message thought act observe assistant_message complete";

/// Why the last attempts of the activities of a turn were not their first: the types of the failures before them.
async fn failures(stack: &Stack, conversation: &str) -> Vec<FailureCode> {
    let failure_of = |event: &Value| {
        let failure = &event["activityTaskStartedEventAttributes"]["lastFailure"];
        let words = &failure["applicationFailureInfo"]["type"];
        match failure {
            Value::Null => None,
            failure => Some(
                words
                    .as_str()
                    .map_or(failure.to_string(), str::to_owned)
                    .into(),
            ),
        }
    };
    let history = stack.history(conversation).await;
    history.iter().filter_map(failure_of).collect()
}

/// The number of workers that have a lease.
async fn leases(stack: &Stack) -> i64 {
    let rows = stack.rows().await;
    let leases = rows.iter().find(|(table, _)| table == "worker_leases");
    leases.unwrap().1
}

async fn leases_are(stack: &Stack, count: i64) {
    wait::until(&format!("{count} workers have leases"), || async {
        (leases(stack).await == count).then_some(())
    })
    .await;
}

fn nobody_was_dead(stack: &Stack) {
    let log = fs::read_to_string(stack.path("gateway.log")).unwrap();
    assert!(!log.contains("workers are dead"), "{log}");
}

/// Takes an activity from a task queue as this worker would, and does nothing with it.
async fn lose_activity(temporal: &Client, task_queue: &str, worker: &str) {
    let poll = PollActivityTaskQueueRequest {
        namespace: temporal.options().namespace.clone(),
        task_queue: Some(TaskQueue {
            name: task_queue.to_owned(),
            ..TaskQueue::default()
        }),
        identity: worker.to_owned(),
        ..PollActivityTaskQueueRequest::default()
    };
    let mut service = temporal.connection().workflow_service();
    let task = service.poll_activity_task_queue(tonic::Request::new(poll));
    assert!(!task.await.unwrap().into_inner().task_token.is_empty());
}

fn workers(stack: &Stack) -> i64 {
    i64::try_from(stack.backends().processes()).unwrap()
}

#[tokio::test]
async fn a_model_call_of_a_killed_worker_begins_again() {
    let stack = Stack::new(Model::start(half_at_first).await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    let _next = stack.worker();
    worker.kill().await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.model.requests().len(), 2);
    let failures = failures(&stack, &conversation).await;
    assert_eq!(failures, [FailureCode::WorkerLost]);
}

#[tokio::test]
async fn tools_of_a_killed_worker_begin_again_as_their_effects_allow() {
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("Both.")
            .call(
                "test_idempotent",
                &json!({"effect": true, "sleep_ms": 4_000}),
            )
            .call("test_once", &json!({"effect": true, "sleep_ms": 600_000})),
        _ => Reply::text("I see."),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("use both").await;
    stack.had_effects(2).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(observe(&events, "test_idempotent")["is_error"], false);
    let once = observe(&events, "test_once")["result"].to_string();
    assert!(once.contains("may or may not"), "{once}");
    assert_eq!(
        stack.effects().len(),
        3,
        "only the idempotent one ran again"
    );
    let failures = failures(&stack, &conversation).await;
    assert_eq!(failures, [FailureCode::WorkerLost, FailureCode::WorkerLost]);
}

fn one_effect(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I change something.").call("test_once", &json!({"effect": true})),
        _ => Reply::text("Changed."),
    }
}

/// The store does not know that the worker had begun, or that the engine does not know of the end.
#[tokio::test]
async fn what_was_not_claimed_and_what_was_not_reported_goes_on() {
    for failpoint in [
        "tool.before_claim",
        "tool.after_record",
        "think.after_checkpoint",
    ] {
        let stack = Stack::new(Model::start(one_effect).await).await;
        let _gateway = stack.gateway().await;
        let worker = stack.worker_stopping_at(failpoint);
        let (conversation, _) = stack.ask("change something").await;
        stack.reached(failpoint).await;
        worker.kill().await;
        let _next = stack.worker();
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(types(&events), WHOLE_TURN, "{failpoint}");
        assert_eq!(stack.effects().len(), 1, "{failpoint}");
        assert_eq!(stack.model.requests().len(), 2, "{failpoint}");
        let failures = failures(&stack, &conversation).await;
        assert_eq!(failures, [FailureCode::WorkerLost], "{failpoint}");
    }
}

/// Stops the workers, and has their turn end at others. Returns the others.
async fn ended_without(stack: &Stack, stopped: &Process, conversation: &str) -> Process {
    stopped.pause();
    let next = stack.worker();
    let events = stack.ended(conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(
        failures(stack, conversation).await,
        [FailureCode::WorkerLost],
        "no heartbeat was waited for"
    );
    next
}

#[tokio::test]
async fn a_worker_that_stood_still_does_no_harm() {
    let script = |request: &Request| match (request.number, request.results_since_user()) {
        (1, _) => Reply::text("I change").held(),
        (_, 0) => Reply::text("I change it.").call("test_once", &json!({"effect": true})),
        _ => Reply::text("Changed."),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let (asleep, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("change something").await;
    stack.asked(1).await;
    let next = ended_without(&stack, &asleep, &conversation).await;
    asleep.resume();
    stack.logged("worker", "renewed its lease too late").await;
    wait::until("the call of no use is stopped", || async {
        (stack.model.abandoned() == 1).then_some(())
    })
    .await;
    // It works as before, and has changed nothing.
    next.kill().await;
    let (again, _) = stack.ask("change something else").await;
    let events = stack.ended(&again, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    let events = stack.events(&conversation).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(contents(&events, "assistant_message"), ["Changed."]);
    assert_eq!(stack.effects().len(), 2);
    assert_eq!(stack.model.requests().len(), 5);
}

#[tokio::test]
async fn a_tool_that_may_not_run_twice_ends_once_though_its_worker_wakes() {
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("Slowly.").call("test_once", &json!({"effect": true, "sleep_ms": 1_000})),
        _ => Reply::text("I do not know."),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let (asleep, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("change something").await;
    stack.had_effects(1).await;
    let _next = ended_without(&stack, &asleep, &conversation).await;
    asleep.resume();
    stack.logged("worker", "renewed its lease too late").await;
    assert_eq!(asleep.terminate().await, Some(0));
    let events = stack.events(&conversation).await;
    assert_eq!(types(&events), WHOLE_TURN);
    let observe = events[3]["event_data"]["result"].to_string();
    assert!(observe.contains("may or may not"), "{observe}");
    assert_eq!(stack.effects().len(), 1);
}

#[tokio::test]
async fn a_worker_that_ends_leaves_no_lease() {
    let model = Model::start(|_: &Request| Reply::text("Here."));
    let stack = Stack::new(model.await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.ended(&conversation, 1).await;
    assert_eq!(leases(&stack).await, workers(&stack));
    assert_eq!(worker.terminate().await, Some(0));
    leases_are(&stack, 0).await;
    nobody_was_dead(&stack);
}

/// The engine gives a worker that stops an activity, which does not reach it (docs/engine.md, a worker that stops).
#[tokio::test]
async fn what_a_worker_was_given_as_it_stopped_begins_again() {
    const SLOTS: usize = 2;
    let model = Model::start(|request: &Request| match request.number {
        ..=SLOTS => Reply::text("I think for a while").held(),
        _ => Reply::text("Here."),
    });
    let stack = Stack::new(model.await).await;
    // While it is busy it asks for no more, so nobody else takes what the next turn asks for.
    stack.configure(&format!("[worker]\nmax_concurrent_activities = {SLOTS}\n"));
    let (worker, _gateway) = stack.start_with_one_worker().await;
    let busy = join_all([(); SLOTS].map(|()| stack.ask("hello"))).await;
    stack.asked(SLOTS).await;
    let (conversation, _) = stack.ask("hello").await;
    let seen = stack.store().await.lost_workers.leases().await.unwrap();
    let temporal = stack.temporal.client().await;
    lose_activity(&temporal, &stack.task_queue, &seen[0].identity).await;
    stack.model.release();
    for (conversation, _) in busy {
        stack.ended(&conversation, 1).await;
    }
    assert_eq!(worker.terminate().await, Some(0));
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.model.requests().len(), SLOTS + 1);
    assert_eq!(
        failures(&stack, &conversation).await,
        [FailureCode::WorkerLost],
        "no heartbeat was waited for"
    );
    leases_are(&stack, workers(&stack)).await;
    nobody_was_dead(&stack);
}

/// While the database does not answer, no worker can renew its lease, and no gateway can see that.
#[tokio::test]
async fn a_database_that_stands_still_kills_nobody() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("I think for a while").held(),
        _ => Reply::text("Here."),
    });
    let stack = Stack::breakable(model.await).await;
    let (_worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    leases_are(&stack, workers(&stack)).await;
    stack.postgres().pause().await;
    // Twice the time of a lease. The sleep is a pause, and waits for nothing.
    tokio::time::sleep(Duration::from_secs(4)).await;
    stack.postgres().resume().await;
    let store = stack.store().await.lost_workers;
    let before = store.leases().await.unwrap();
    wait::until(
        "all workers have renewed for longer than a lease",
        || async {
            let now = store.leases().await.unwrap();
            let has_renewed = |(then, now): (&SeenLease, &SeenLease)| {
                then.worker == now.worker && now.renewals >= then.renewals + 6
            };
            let all = before.len() == now.len() && before.iter().zip(&now).all(has_renewed);
            all.then_some(())
        },
    )
    .await;
    stack.model.release();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.model.requests().len(), 1);
    assert_eq!(failures(&stack, &conversation).await, []);
}

/// Waits until so many calls of all processes wait for a lock. Only a new transaction sees new sessions.
async fn calls_wait(database: &str, count: i64) {
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND application_name = 'everturn' AND wait_event_type = 'Lock'";
    wait::until(&format!("{count} calls wait for a lock"), || async {
        let mut connection = PgConnection::connect(database).await.unwrap();
        let found = sqlx::query_scalar(waiting).fetch_one(&mut connection);
        let found: i64 = found.await.unwrap();
        (found >= count).then_some(())
    })
    .await;
}

/// Calls that wait for a table occupy the connections of the workers, but renewals have connections of their own.
#[tokio::test]
async fn a_locked_table_kills_nobody() {
    const LOCKED: Duration = Duration::from_secs(10);
    const SHORT: usize = 40;
    const LONG: usize = 2;
    // Two pools of ten connections are nearly full, or full together with some calls of the gateways.
    const WAITING: i64 = 15;
    let model = Model::start(|request: &Request| match request.last("user").as_str() {
        "long" => {
            let words = (0..100).map(|number| format!("word{number} ")).collect();
            Reply::spread(words, LOCKED * 3 / 2)
        }
        _ => Reply::text("Here.").held(),
    });
    let stack = Stack::new(model.await).await;
    let (_worker, _gateway) = stack.start().await;
    leases_are(&stack, workers(&stack)).await;
    let store = stack.store().await.lost_workers;
    let database = stack.backends().database().unwrap();
    let mut holder = PgConnection::connect(database).await.unwrap();
    let short = join_all((0..SHORT).map(|_| stack.ask("short"))).await;
    stack.asked(SHORT).await;
    let long = join_all((0..LONG).map(|_| stack.ask("long"))).await;
    stack.asked(SHORT + LONG).await;
    let before = store.leases().await.unwrap();

    let lock = "BEGIN; LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
    let locked = Instant::now();
    stack.model.release();
    calls_wait(database, WAITING).await;
    // The sleep is a pause, and waits for nothing.
    tokio::time::sleep(LOCKED.saturating_sub(locked.elapsed())).await;
    let after = store.leases().await.unwrap();
    let rollback = sqlx::raw_sql("ROLLBACK").execute(&mut holder);
    rollback.await.unwrap();

    assert_eq!(before.len(), after.len());
    for (then, now) in before.iter().zip(&after) {
        assert_eq!(then.worker, now.worker);
        // Four renewals in each of five times of a lease, less some that a busy machine delays.
        assert!(now.renewals >= then.renewals + 10, "{then:?} {now:?}");
        assert_eq!(now.takes, 0);
    }
    for (conversation, _) in short.iter().chain(&long) {
        let events = stack.ended(conversation, 1).await;
        assert_eq!(types(&events), "user_message assistant_message complete");
        let failures = failures(&stack, conversation).await;
        assert!(!failures.contains(&FailureCode::WorkerLost), "{failures:?}");
    }
    assert_eq!(stack.model.requests().len(), SHORT + LONG);
    nobody_was_dead(&stack);
}
