//! Several processes work on one conversation at the same time.

use std::sync::Arc;

use everturn_proto::words::{AgentExecutionStatus, Effect, ToolStatus};
use everturn_store::{
    Conversations, EventReader, MessageQueue, ModelCalls, StepClaims, StoreError, ToolClaim,
    ToolClaims,
};
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    Backend,
    fixture::{EFFECTS, Turn, new_message, state, tenant, tool_end},
};

pub async fn turns_that_begin_at_once_begin_once(backend: &impl Backend) {
    let handles = [backend.open().await, backend.open().await];
    for round in 0..4 {
        // Half of the tasks begin the same turn, and the others other turns of the same conversation, which nobody has
        // created.
        let mut tasks = JoinSet::new();
        for number in 0..16 {
            let message = if number % 2 == 0 {
                "m".to_owned()
            } else {
                format!("m{number}")
            };
            let turn = Turn::new(handles[number % 2].clone(), &format!("c{round}"), &message);
            tasks.spawn(async move { drop(turn.begin_as_run("hi").await.unwrap()) });
        }
        tasks.join_all().await;
        let turn = Turn::new(handles[0].clone(), &format!("c{round}"), "m");
        let types = turn.types().await;
        let count = |event_type: &str| types.iter().filter(|found| *found == event_type).count();
        assert_eq!(
            (types.len(), count("user_message"), count("error")),
            (17, 9, 8),
            "each ends the one before it"
        );
        let conversation = turn
            .store
            .conversation(&tenant(), &turn.conversation)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (conversation.message_count, conversation.last_sequence),
            (9, 17)
        );
    }
}

pub async fn a_queue_is_never_longer_than_its_limit(backend: &impl Backend) {
    let handles = [backend.open().await, backend.open().await];
    Turn::begun(handles[0].clone(), "c", "m").await;
    let mut tasks = JoinSet::new();
    for number in 0..32 {
        let (store, id) = (handles[number % 2].clone(), format!("m{number}"));
        tasks.spawn(async move {
            let message = everturn_store::NewMessage {
                max_queued: 5,
                ..new_message("c", &id, Some(&id))
            };
            match store.queue_message(&tenant(), message).await {
                Ok(queued) => queued.is_new,
                Err(StoreError::QueueFull { limit: 5 }) => false,
                Err(other) => panic!("{other}"),
            }
        });
    }
    assert_eq!(
        tasks
            .join_all()
            .await
            .iter()
            .filter(|is_new| **is_new)
            .count(),
        5
    );
}

pub async fn a_tool_is_started_once(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let handles = [turn.store.clone(), backend.open().await];
    turn.asks(0, "", &EFFECTS).await;
    for (index, effect) in EFFECTS.into_iter().enumerate() {
        let mut tasks = JoinSet::new();
        for number in 0..12 {
            let (store, key) = (handles[number % 2].clone(), turn.tool(0, index));
            tasks.spawn(async move {
                match store
                    .claim_tool(&key, &format!("claimant {number}"))
                    .await
                    .unwrap()
                {
                    ToolClaim::Run { record, .. } => Some(record.attempt),
                    ToolClaim::OutcomeUnknown { record, .. } => {
                        assert_eq!(
                            record.status,
                            ToolStatus::Running,
                            "as it is now, not as it was before the race"
                        );
                        None
                    }
                    ToolClaim::Ended(_) | ToolClaim::Asks(_) => panic!("nothing ended it"),
                }
            });
        }
        let mut attempts: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        attempts.sort_unstable();
        let expected: Vec<u32> = if effect == Effect::Once {
            vec![1]
        } else {
            (1..=12).collect()
        };
        assert_eq!(attempts, expected, "{effect}");
    }
}

/// A tool ends while its turn is cancelled: its activity and the timeline are told the same.
pub async fn the_end_of_a_tool_and_of_its_turn_agree(backend: &impl Backend) {
    let handles = [backend.open().await, backend.open().await];
    for round in 0..12 {
        let turn = Turn::begun(handles[0].clone(), &format!("c{round}"), "m").await;
        turn.asks(0, "", &[const { Effect::Once }; 4]).await;
        let start = Arc::new(Barrier::new(5));
        let mut tasks = JoinSet::new();
        for index in 0..4 {
            let (store, key, start) = (handles[1].clone(), turn.tool(0, index), start.clone());
            tasks.spawn(async move {
                start.wait().await;
                let claim = store.claim_tool(&key, "a").await.unwrap();
                let ended = store
                    .finish_tool(&key, tool_end("\"found\""))
                    .await
                    .unwrap();
                (index, matches!(claim, ToolClaim::Run { .. }), ended)
            });
        }
        start.wait().await;
        turn.end(1, AgentExecutionStatus::Cancelled).await;
        let events = turn.events().await;
        for (index, has_run, ended) in tasks.join_all().await {
            let id = turn.execution_id(0, index);
            let data = |kind: &str| {
                let of_kind = events
                    .iter()
                    .filter(|event| event.event_type == kind)
                    .map(super::fixture::data);
                of_kind
                    .filter(|data| data["execution_id"] == id.as_str())
                    .collect::<Vec<_>>()
            };
            let observes = data("observe");
            assert_eq!(observes.len(), 1, "one observe an act");
            let end = ended.end.unwrap();
            assert_eq!(
                observes[0]["result"],
                end.result.to_value(),
                "what finish_tool returned is what is shown"
            );
            assert_eq!(
                has_run,
                ended.status != ToolStatus::Cancelled,
                "cancelled means it never began"
            );
            let ToolClaim::Ended(stored) = turn
                .store
                .claim_tool(&turn.tool(0, index), "a")
                .await
                .unwrap()
            else {
                panic!()
            };
            assert_eq!(
                (stored.status, stored.end),
                (ended.status, Some(end)),
                "and what is stored"
            );
        }
    }
}

/// Attempts of one step end in the same moment. Each gets the reply that is stored, and none an error: the table has
/// two keys that the other's row could meet.
pub async fn a_checkpoint_that_many_write_at_once_is_stored_once(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    for number in 0..60 {
        let start = Arc::new(Barrier::new(8));
        let mut tasks = JoinSet::new();
        for attempt in 0..8 {
            let (turn, step, start) = (turn.clone(), turn.step(number), start.clone());
            tasks.spawn(async move {
                let reply = state(&format!("answer {attempt}"), vec![]);
                start.wait().await;
                turn.store.save_partial(&step, reply.clone()).await.unwrap();
                turn.store.complete_step(&step, reply).await.unwrap()
            });
        }
        let replies = tasks.join_all().await;
        assert!(replies.iter().all(|reply| *reply == replies[0]));
    }
}

/// Every kind of writer on one conversation: each succeeds at its first try.
pub async fn everything_at_once_ends_without_a_deadlock(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let handles = [turn.store.clone(), backend.open().await];
    turn.asks(0, "", &[const { Effect::Read }; 8]).await;
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let mut turn = turn.clone();
        turn.store = handles[number % 2].clone();
        let (other, steer, queued) = (turn.clone(), turn.clone(), turn.clone());
        tasks.spawn(async move { drop(turn.runs(0, number).await) });
        tasks.spawn(async move {
            let step = other.step(u32::try_from(number % 4).unwrap() + 1);
            other.store.claim_step(&step, None).await.unwrap();
            other
                .store
                .save_partial(&step, state("so far", vec![]))
                .await
                .unwrap();
            other
                .store
                .complete_step(&step, state("answer", vec![]))
                .await
                .unwrap();
        });
        tasks.spawn(async move { drop(steer.steer(&format!("s{number}"), "hurry").await) });
        tasks.spawn(async move {
            queued.queue(&format!("q{number}")).await;
            queued.begin_again().await;
            queued
                .store
                .conversation_head(&tenant(), "c")
                .await
                .unwrap();
        });
    }
    tasks.join_all().await;
    assert_eq!(turn.events().await.len(), 1 + 9 + 8 + 8);
}
