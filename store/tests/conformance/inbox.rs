//! The inbox: waiting messages in their order, cancels that outlive every signal, and the contents of signals.

use everturn_proto::{
    Thread,
    turn::{Cancel, Inbox, ReadInboxRequest, Submit},
    words::{AgentExecutionStatus, OnBusy},
};
use everturn_store::{Access, MessageCancel, MessageQueue, StepClaim, StepClaims, Turns};

use super::{
    Backend,
    fixture::{EVERYTHING, Turn, TurnStore, new_message, tenant},
};

const REASON: &str = "no longer needed";

async fn cancel(store: &impl TurnStore, message_id: &str) -> MessageCancel {
    let access = tenant();
    let cancelled = store.cancel_message(&access, "c", message_id, REASON);
    cancelled.await.unwrap()
}

async fn queue(store: &impl TurnStore, message_id: &str, on_busy: OnBusy) {
    let mut new = new_message("c", message_id, None);
    new.on_busy = on_busy;
    store.queue_message(&tenant(), new).await.unwrap();
}

/// Reads the inbox as a run does during or after the turn of a message, or without an end of its turn.
async fn look(store: &impl TurnStore, message_id: Option<&str>) -> Inbox {
    let request = ReadInboxRequest {
        conversation_id: "c".to_owned(),
        message_id: message_id.map(str::to_owned),
        ..ReadInboxRequest::default()
    };
    store.read_inbox(&request).await.unwrap()
}

async fn contents(store: &impl TurnStore) -> Vec<String> {
    let context = store.context("c", &Thread::Conversation, EVERYTHING, None);
    let messages = context.await.unwrap().messages.into_iter();
    messages.map(|message| message.content).collect()
}

async fn ended<S: TurnStore>(store: S, message_id: &str) {
    let turn = Turn::begun(store, "c", message_id).await;
    turn.complete(0, "an answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
}

pub async fn a_cancelled_message_ends_at_its_start_and_reaches_no_model(backend: &impl Backend) {
    let store = backend.open().await;
    ended(store.clone(), "m1").await;
    queue(&store, "m2", OnBusy::Queue).await;
    let another = Access::tenant("another");
    let foreign = store.cancel_message(&another, "c", "m2", "mine");
    assert_eq!(foreign.await.unwrap(), MessageCancel::Ended);
    for _repeated in 0..2 {
        assert_eq!(cancel(&store, "m2").await, MessageCancel::Waiting);
    }
    let before = contents(&store).await;
    let withdrawn = Turn::new(store.clone(), "c", "m2");
    for _repeated in 0..2 {
        let begun = withdrawn.begin_again().await;
        assert_eq!(begun.status, AgentExecutionStatus::Cancelled);
    }
    let types = withdrawn.types().await;
    assert_eq!(types[types.len() - 2..], ["user_message", "cancelled"]);
    let cancelled = withdrawn.all_data("cancelled").await;
    assert_eq!(cancelled[0]["reason"], REASON);
    assert_eq!(
        contents(&store).await,
        before,
        "a later call does not have the message"
    );
    for unknown in ["m1", "m2", "unknown"] {
        assert_eq!(
            cancel(&store, unknown).await,
            MessageCancel::Ended,
            "{unknown}"
        );
    }
}

pub async fn a_message_cancelled_after_the_look_joins_no_turn(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m1").await;
    queue(&turn.store, "s", OnBusy::Steer).await;
    let seen = look(&turn.store, Some("m1")).await;
    assert_eq!(seen.steers, ["s"]);
    assert_eq!(cancel(&turn.store, "s").await, MessageCancel::Waiting);
    let before = (turn.types().await, contents(&turn.store).await);
    for _repeated in 0..2 {
        turn.take("s").await;
    }
    let after = (turn.types().await, contents(&turn.store).await);
    assert_eq!(after, before, "the turn goes on without the message");
    turn.complete(0, "an answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let own = Turn::new(turn.store.clone(), "c", "s");
    let begun = own.begin_again().await;
    assert_eq!(begun.status, AgentExecutionStatus::Cancelled);
    assert_eq!(own.all_data("cancelled").await[0]["reason"], REASON);
    let read = contents(&own.store).await;
    assert!(!read.contains(&"say s".to_owned()), "{read:?}");
}

pub async fn a_run_between_two_turns_sees_the_turn_that_a_lost_task_began(backend: &impl Backend) {
    let store = backend.open().await;
    ended(store.clone(), "m1").await;
    queue(&store, "m2", OnBusy::Queue).await;
    queue(&store, "m3", OnBusy::Interrupt).await;
    let begun = Turn::begun(store.clone(), "c", "m2").await;
    let seen = look(&store, Some("m1")).await;
    assert_eq!((seen.next.as_deref(), seen.waiting), (Some("m2"), 2));
    assert_eq!(look(&store, None).await.next.as_deref(), Some("m3"));
    begun.complete(0, "an answer", &[]).await;
    begun.end(0, AgentExecutionStatus::Completed).await;
    let seen = look(&store, Some("m1")).await;
    assert_eq!((seen.next.as_deref(), seen.waiting), (Some("m3"), 1));
}

pub async fn the_cancel_of_a_running_turn_outlives_its_run(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m1").await;
    assert_eq!(look(&turn.store, Some("m1")).await, Inbox::default());
    assert_eq!(turn.begin_again().await.cancel_reason, None);
    assert_eq!(cancel(&turn.store, "m1").await, MessageCancel::Running);
    let access = tenant();
    let second = turn
        .store
        .cancel_message(&access, "c", "m1", "another reason");
    assert_eq!(second.await.unwrap(), MessageCancel::Running);
    let seen = look(&turn.store, Some("m1")).await;
    assert_eq!(
        seen.cancel_reason.as_deref(),
        Some(REASON),
        "the first reason"
    );
    let resumed = turn.begin_again().await;
    assert_eq!(resumed.cancel_reason.as_deref(), Some(REASON));
    assert_eq!(resumed.status, AgentExecutionStatus::Running);
    let claim = turn.store.claim_step(&turn.step(0), None).await.unwrap();
    assert_eq!(
        claim,
        StepClaim::Cancelled(REASON.to_owned()),
        "no model is called"
    );
}

pub async fn a_newer_interrupt_ends_the_waiting_older_interrupt(backend: &impl Backend) {
    let store = backend.open().await;
    let running = Turn::begun(store.clone(), "c", "m1").await;
    queue(&store, "q", OnBusy::Queue).await;
    queue(&store, "s", OnBusy::Steer).await;
    queue(&store, "r", OnBusy::Reject).await;
    let seen = look(&store, Some("m1")).await;
    assert_eq!(
        (seen.cancel_reason, seen.steers),
        (None, vec!["s".to_owned()])
    );
    assert_eq!(
        (seen.next.as_deref(), seen.waiting),
        (Some("q"), 2),
        "`reject` does not wait"
    );

    // Messages of one millisecond are in the order of their ids.
    queue(&store, "pay_1_bob", OnBusy::Interrupt).await;
    queue(&store, "pay_2_alice", OnBusy::Interrupt).await;
    let interrupted = Some("interrupted by a newer message");
    let seen = look(&store, Some("m1")).await;
    assert_eq!(seen.cancel_reason.as_deref(), interrupted);
    running.end(0, AgentExecutionStatus::Cancelled).await;

    assert_eq!(look(&store, None).await.next.as_deref(), Some("pay_1_bob"));
    let older = Turn::new(store.clone(), "c", "pay_1_bob");
    assert_eq!(
        older.begin_again().await.status,
        AgentExecutionStatus::Cancelled
    );
    let reasons = older.all_data("cancelled").await;
    assert_eq!(
        reasons[1]["reason"].as_str(),
        interrupted,
        "readers are told"
    );

    assert_eq!(
        look(&store, None).await.next.as_deref(),
        Some("pay_2_alice")
    );
    let newer = Turn::new(store.clone(), "c", "pay_2_alice");
    assert_eq!(
        newer.begin_again().await.status,
        AgentExecutionStatus::Running
    );
    let seen = look(&store, Some("pay_2_alice")).await;
    assert_eq!(seen.cancel_reason, None, "no interrupting message waits");
    assert_eq!((seen.next.as_deref(), seen.waiting), (Some("q"), 2));
}

pub async fn the_contents_of_signals_are_stored_once(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m1").await;
    let submit = |id: &str, on_busy: Option<&str>| Submit {
        message_id: Some(id.to_owned()),
        content: Some("typed into a signal".to_owned()),
        on_busy: on_busy.map(str::to_owned),
    };
    let request = ReadInboxRequest {
        conversation_id: "c".to_owned(),
        message_id: Some("m1".to_owned()),
        submits: vec![
            submit("a", None),
            submit("s", Some("steer")),
            submit("m1", None),
        ],
        cancels: vec![Cancel {
            message_id: Some("a".to_owned()),
            reason: REASON.to_owned(),
        }],
    };
    for _repeated in 0..2 {
        let seen = turn.store.read_inbox(&request).await.unwrap();
        assert_eq!((seen.waiting, seen.steers), (2, vec!["s".to_owned()]));
        assert_eq!(
            (seen.next.as_deref(), seen.cancel_reason),
            (Some("a"), None)
        );
    }
    let next = Turn::new(turn.store.clone(), "c", "a");
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    assert_eq!(
        next.begin_again().await.status,
        AgentExecutionStatus::Cancelled
    );
    let unknown = ReadInboxRequest {
        conversation_id: "unknown".to_owned(),
        ..request
    };
    assert_eq!(
        turn.store.read_inbox(&unknown).await.unwrap(),
        Inbox::default()
    );
}
