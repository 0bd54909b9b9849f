//! What has not ended, and the schedule by which gateways look at it.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::{AgentExecutionStatus, Effect, FailureCode, OnBusy};
use everturn_store::{
    Backlogs, CheckNote, CheckPace, Conversations, DueCheck, MessageQueue, NewMessage,
    Reconciliation, TurnFailure,
};

use super::{
    Backend,
    delegation::{begun, delegating},
    fixture::{Turn, data, new_message, tenant},
};

const FAILURE: TurnFailure = TurnFailure {
    code: FailureCode::TurnLost,
    message: "It is lost.",
};

/// Returns the pace of a look at `now`. Nothing has to have stalled for long.
pub(super) fn pace(now: DateTime<Utc>) -> CheckPace {
    CheckPace {
        now,
        asked_before: now - TimeDelta::seconds(1),
        stalled_since: now,
        idle_since: now,
        again: now + TimeDelta::seconds(60),
        walk: 1000,
        limit: 10,
    }
}

/// A time after everything that this test has stored.
pub(super) fn soon() -> DateTime<Utc> {
    Utc::now() + TimeDelta::seconds(10)
}

/// Looks once, and returns the due conversations in the order of their names.
pub(super) async fn due(store: &impl Reconciliation, pace: CheckPace) -> Vec<String> {
    let mut due = ids(&look(store, &pace).await);
    due.sort();
    due
}

/// Looks once, and returns the due checks, the longest due first.
pub(super) async fn look(store: &impl Reconciliation, pace: &CheckPace) -> Vec<DueCheck> {
    if !store.begin_look(pace).await.unwrap() {
        return Vec::new();
    }
    store.due_checks(pace).await.unwrap().checks
}

fn ids(checks: &[DueCheck]) -> Vec<String> {
    let ids = checks.iter().map(|check| check.conversation_id.clone());
    ids.collect()
}

pub async fn due_checks_are_counted(backend: &impl Backend) {
    let store = backend.open().await;
    for id in ["a", "b"] {
        Turn::begun(store.clone(), id, "m").await;
    }
    let look = pace(soon());
    assert_eq!(due(&store, look.clone()).await.len(), 2);
    let early = store
        .backlog(look.again - TimeDelta::seconds(1))
        .await
        .unwrap();
    assert_eq!((early.checks.count, early.checks.oldest), (0, None));
    let at = look.again + TimeDelta::seconds(1);
    let checks = store.backlog(at).await.unwrap().checks;
    assert_eq!(checks.count, 2);
    assert!(checks.oldest.is_some_and(|oldest| oldest < at));
}

pub async fn what_has_stalled_is_looked_at_once_by_all_gateways(backend: &impl Backend) {
    let handles = [backend.open().await, backend.open().await];
    let running = Turn::begun(handles[0].clone(), "running", "m").await;
    let ended = Turn::begun(handles[0].clone(), "ended", "m").await;
    ended.complete(0, "done", &[]).await;
    ended.end(0, AgentExecutionStatus::Completed).await;
    let waiting = Turn::begun(handles[0].clone(), "waiting", "m").await;
    waiting.complete(0, "done", &[]).await;
    waiting.end(0, AgentExecutionStatus::Completed).await;
    waiting.queue("m2").await;

    let early = pace(Utc::now() - TimeDelta::seconds(60));
    assert_eq!(due(&handles[0], early).await, [""; 0], "all is too young");
    let now = soon();
    assert_eq!(due(&handles[0], pace(now)).await, ["running", "waiting"]);
    assert_eq!(
        due(&handles[1], pace(now)).await,
        [""; 0],
        "another gateway has just looked"
    );
    let later = now + TimeDelta::seconds(5);
    assert_eq!(
        due(&handles[1], pace(later)).await,
        [""; 0],
        "both are left alone for a while"
    );
    let again = now + TimeDelta::seconds(61);
    assert_eq!(due(&handles[1], pace(again)).await, ["running", "waiting"]);

    running.complete(0, "done", &[]).await;
    running.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(handles[0].unfinished("running").await.unwrap(), None);
    assert!(handles[0].unfinished("waiting").await.unwrap().is_some());
    assert_eq!(handles[0].unfinished("unknown").await.unwrap(), None);
    let again = again + TimeDelta::seconds(61);
    assert_eq!(due(&handles[0], pace(again)).await, ["waiting"]);
}

pub async fn a_sub_agent_alone_is_no_turn(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    begun(&root, 0).await;
    assert_eq!(due(&root.store, pace(soon())).await, ["c"]);
    backend.run("DELETE FROM turn_checks").await;
    backend
        .run("UPDATE agent_executions SET status = 'completed' WHERE parent_execution_id IS NULL")
        .await;
    let later = soon() + TimeDelta::seconds(5);
    assert_eq!(due(&root.store, pace(later)).await, [""; 0]);
}

pub async fn a_look_takes_those_due_longest_and_no_more(backend: &impl Backend) {
    let store = backend.open().await;
    for number in 0..5 {
        Turn::begun(store.clone(), &format!("c{number}"), "m").await;
    }
    let mut now = soon();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let pace = CheckPace {
            limit: 2,
            ..pace(now)
        };
        seen.extend(due(&store, pace).await);
        now += TimeDelta::seconds(2);
    }
    assert_eq!(seen, ["c0", "c1", "c2", "c3", "c4"]);
}

pub async fn what_a_look_did_not_reach_keeps_its_place(backend: &impl Backend) {
    let store = backend.open().await;
    for id in ["a", "b", "c"] {
        Turn::begun(store.clone(), id, "m").await;
    }
    let now = soon();
    let of = |limit, seconds| CheckPace {
        limit,
        ..pace(now + TimeDelta::seconds(seconds))
    };
    let taken = look(&store, &of(2, 0)).await;
    assert_eq!(ids(&taken), ["a", "b"]);
    store.put_back_checks(&taken[1..]).await.unwrap();
    store.put_back_checks(&[]).await.unwrap();
    assert_eq!(due(&store, of(1, 2)).await, ["b"]);
    assert_eq!(due(&store, of(10, 4)).await, ["c"]);
    let taken = look(&store, &of(10, 70)).await;
    assert_eq!(ids(&taken), ["a", "b", "c"], "those due longest come first");
    store.put_back_checks(&taken[1..]).await.unwrap();
    let taken = look(&store, &of(10, 140)).await;
    assert_eq!(ids(&taken), ["b", "c", "a"]);
    // PostgreSQL keeps microseconds.
    let since = |seconds| (now + TimeDelta::seconds(seconds)).timestamp_micros();
    let due = taken.iter().map(|check| check.due_at.timestamp_micros());
    assert_eq!(due.collect::<Vec<_>>(), [since(62), since(64), since(130)]);
}

pub async fn what_has_not_ended_is_told(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "look", &[Effect::Read]).await;
    for (id, on_busy) in [("a", OnBusy::Queue), ("r", OnBusy::Reject)] {
        let message = NewMessage {
            on_busy,
            ..new_message("c", id, None)
        };
        turn.store.queue_message(&tenant(), message).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    due(&turn.store, pace(soon())).await;
    let unfinished = turn.store.unfinished("c").await.unwrap().unwrap();
    let begun = unfinished.turn.unwrap();
    assert_eq!(
        (begun.message_id.as_str(), begun.checkpoint_step),
        ("m", Some(0))
    );
    let waiting: Vec<_> = unfinished
        .waiting
        .into_iter()
        .map(|message| (message.id, message.on_busy))
        .collect();
    assert_eq!(
        waiting,
        [
            ("a".to_owned(), OnBusy::Queue),
            ("r".to_owned(), OnBusy::Reject)
        ]
    );
    assert_eq!(unfinished.noted, CheckNote::default());
    let note = CheckNote {
        starts: 2,
        last_sequence: 3,
        signalled_until: Some(DateTime::UNIX_EPOCH + TimeDelta::seconds(7)),
    };
    turn.store.note_check("c", &note).await.unwrap();
    let noted = turn.store.unfinished("c").await.unwrap().unwrap().noted;
    assert_eq!(noted, note);
    let point = turn.store.resume_point(&tenant(), "c", 10).await.unwrap();
    assert_eq!(
        point.unwrap().waiting,
        ["a"],
        "a message that is to be rejected is not resumed"
    );
}

pub async fn a_turn_that_does_not_go_on_is_ended_with_an_error(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "look", &[Effect::Once]).await;
    turn.queue("waits").await;
    let conversation = turn.conversation().await;
    let fail = async |message| {
        turn.store
            .fail_turn(&conversation, message, FAILURE)
            .await
            .unwrap()
    };
    assert!(!fail("waits").await, "another turn runs");
    assert!(!fail("unknown").await);
    assert!(fail("m").await);
    assert!(!fail("m").await, "it has ended");
    assert_eq!(
        turn.types().await,
        ["user_message", "thought", "act", "observe", "error"]
    );
    assert!(fail("waits").await, "a message that waits has its turn");
    let events = turn.events().await;
    let types: Vec<_> = events[5..]
        .iter()
        .map(|event| event.event_type.as_str())
        .collect();
    assert_eq!(types, ["user_message", "error"]);
    assert_eq!(data(&events[6])["code"], "turn_lost");
    assert_eq!(events[6].message_id, "waits");
    let status = turn.begin_again().await.status;
    assert_eq!(status, AgentExecutionStatus::Failed);
    assert_eq!(turn.store.unfinished("c").await.unwrap(), None);
}
