//! The rows of the reconciler's schedule: when they go, and what a due check tells.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::{AgentExecutionStatus, Effect, OnBusy};
use everturn_store::{
    Backlogs, CheckNote, CheckPace, Conversations, DueCheck, MessageQueue, NewMessage,
    Reconciliation, StepClaims, ToolClaims,
};

use super::{
    Backend,
    delegation::{begun, delegating},
    fixture::{Turn, new_message, tenant, tool_end},
    reconciliation::{due, look, pace, soon},
};

/// Returns the number of checks in the schedule.
async fn rows(store: &impl Backlogs) -> u32 {
    let at = Utc::now() + TimeDelta::days(1);
    store.backlog(at).await.unwrap().checks.count
}

/// Returns the only due check. Each call is a look, a minute after the last one.
async fn only_check(store: &impl Reconciliation, now: &mut DateTime<Utc>) -> DueCheck {
    *now += TimeDelta::seconds(61);
    let mut checks = look(store, &pace(*now)).await;
    assert_eq!(checks.len(), 1, "{checks:?}");
    checks.remove(0)
}

pub async fn a_check_goes_with_its_turn(backend: &impl Backend) {
    let store = backend.open().await;
    let answered = Turn::begun(store.clone(), "answered", "m").await;
    let failed = Turn::begun(store.clone(), "failed", "m").await;
    assert_eq!(rows(&store).await, 0, "a turn that is young has no check");
    assert_eq!(due(&store, pace(soon())).await, ["answered", "failed"]);
    assert_eq!(rows(&store).await, 2);
    answered.complete(0, "done", &[]).await;
    answered.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(rows(&store).await, 1);
    failed.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(rows(&store).await, 0);
}

pub async fn a_check_stays_while_work_is_left(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    let sub = begun(&root, 0).await;
    assert_eq!(due(&root.store, pace(soon())).await, ["c"]);
    sub.complete(0, "done", &[]).await;
    sub.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(rows(&root.store).await, 1, "the turn runs");
    root.observe(0, 0, "").await;
    root.queue("next").await;
    root.complete(1, "done", &[]).await;
    root.end(1, AgentExecutionStatus::Completed).await;
    assert_eq!(rows(&root.store).await, 1, "a message waits");
    let next = Turn::begun(root.store.clone(), "c", "next").await;
    next.complete(0, "done", &[]).await;
    next.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(rows(&root.store).await, 0);
}

pub async fn a_check_without_a_reason_goes_when_it_is_due(backend: &impl Backend) {
    let store = backend.open().await;
    let moves = Turn::begun(store.clone(), "moves", "m").await;
    Turn::begun(store.clone(), "removed", "m").await;
    let withdrawn = Turn::begun(store.clone(), "withdrawn", "m").await;
    withdrawn.end(0, AgentExecutionStatus::Failed).await;
    withdrawn.queue("m2").await;
    let now = soon();
    let all = ["moves", "removed", "withdrawn"];
    assert_eq!(due(&store, pace(now)).await, all);

    moves.asks(0, "look", &[Effect::Read]).await;
    let access = tenant();
    let removed = store.delete_conversation(&access, "removed", None).await;
    assert!(removed.unwrap());
    let withdrawn = store.withdraw_message(&access, "withdrawn", "m2").await;
    assert!(withdrawn.unwrap());
    let again = CheckPace {
        stalled_since: now - TimeDelta::hours(1),
        ..pace(now + TimeDelta::seconds(61))
    };
    assert_eq!(due(&store, again).await, [""; 0], "nothing has stalled");
    assert_eq!(rows(&store).await, 0);
}

pub async fn a_walk_goes_on_where_the_last_one_ended(backend: &impl Backend) {
    let store = backend.open().await;
    for id in ["a", "c", "e"] {
        Turn::begun(store.clone(), id, "m").await;
    }
    for id in ["b", "d"] {
        let turn = Turn::begun(store.clone(), id, "m").await;
        turn.end(0, AgentExecutionStatus::Failed).await;
        turn.queue("m2").await;
    }
    let mut now = soon();
    let mut counts = Vec::new();
    for _ in 0..4 {
        let walk = CheckPace {
            walk: 1,
            ..pace(now)
        };
        assert!(store.begin_look(&walk).await.unwrap());
        counts.push(rows(&store).await);
        now += TimeDelta::seconds(2);
    }
    // A walk reads a conversation of each kind, and ends at the smaller one: a and b; b and c; c and d; d and e.
    assert_eq!(counts, [2, 3, 4, 5]);
    assert_eq!(due(&store, pace(now)).await, ["a", "b", "c", "d", "e"]);
}

pub async fn a_check_tells_whether_the_workflow_has_to_act(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let (store, mut now) = (&turn.store, soon());
    assert!(only_check(store, &mut now).await.is_idle, "it has begun");
    store.claim_step(&turn.step(0), None).await.unwrap();
    assert!(!only_check(store, &mut now).await.is_idle, "a model works");
    turn.complete(0, "look", &[Effect::Read]).await;
    assert!(only_check(store, &mut now).await.is_idle, "it has replied");
    turn.thought(0).await;
    assert!(!only_check(store, &mut now).await.is_idle, "a tool waits");
    let tool = turn.tool(0, 0);
    store.claim_tool(&tool, "a").await.unwrap();
    assert!(!only_check(store, &mut now).await.is_idle, "a tool works");
    store.finish_tool(&tool, tool_end("1")).await.unwrap();
    assert!(only_check(store, &mut now).await.is_idle, "it has ended");
    now += TimeDelta::seconds(61);
    let young = CheckPace {
        idle_since: Utc::now() - TimeDelta::hours(1),
        ..pace(now)
    };
    assert!(!look(store, &young).await[0].is_idle, "not for long");
}

pub async fn a_check_tells_of_messages_without_a_signal(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let (store, mut now) = (&turn.store, soon());
    assert!(!only_check(store, &mut now).await.has_unsignalled);
    let rejected = NewMessage {
        on_busy: OnBusy::Reject,
        ..new_message("c", "rejected", None)
    };
    store.queue_message(&tenant(), rejected).await.unwrap();
    let check = only_check(store, &mut now).await;
    assert!(!check.has_unsignalled, "no running workflow takes it");
    turn.queue("waits").await;
    assert!(only_check(store, &mut now).await.has_unsignalled);
    let note = CheckNote {
        signalled_until: Some(Utc::now() + TimeDelta::seconds(1)),
        ..CheckNote::default()
    };
    store.note_check("c", &note).await.unwrap();
    assert!(!only_check(store, &mut now).await.has_unsignalled);
}

pub async fn a_check_tells_of_a_cancel_without_a_signal(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let (store, mut now) = (&turn.store, soon());
    assert!(!only_check(store, &mut now).await.has_unsignalled);
    let unfinished = store.unfinished("c").await.unwrap().unwrap();
    assert_eq!(unfinished.cancel_reason, None);
    store
        .cancel_message(&tenant(), "c", "m", "why")
        .await
        .unwrap();
    assert!(only_check(store, &mut now).await.has_unsignalled);
    let unfinished = store.unfinished("c").await.unwrap().unwrap();
    assert_eq!(unfinished.cancel_reason.as_deref(), Some("why"));
    let note = CheckNote {
        signalled_until: Some(Utc::now() + TimeDelta::seconds(1)),
        ..CheckNote::default()
    };
    store.note_check("c", &note).await.unwrap();
    assert!(
        only_check(store, &mut now).await.has_unsignalled,
        "the turn runs still"
    );
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    turn.queue("next").await;
    Turn::begun(store.clone(), "c", "next").await;
    assert!(
        !only_check(store, &mut now).await.has_unsignalled,
        "the cancel was of another turn"
    );
    let unfinished = store.unfinished("c").await.unwrap().unwrap();
    assert_eq!(unfinished.cancel_reason, None);
}

pub async fn the_cancel_of_a_waiting_message_needs_no_signal(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.queue("waits").await;
    let (store, mut now) = (&turn.store, soon());
    store
        .cancel_message(&tenant(), "c", "waits", "why")
        .await
        .unwrap();
    assert!(only_check(store, &mut now).await.has_unsignalled);
    let note = CheckNote {
        signalled_until: Some(Utc::now() + TimeDelta::seconds(1)),
        ..CheckNote::default()
    };
    store.note_check("c", &note).await.unwrap();
    assert!(!only_check(store, &mut now).await.has_unsignalled);
    let unfinished = store.unfinished("c").await.unwrap().unwrap();
    assert_eq!(unfinished.cancel_reason, None);
}
