//! Turns whose workflow is gone: how they end when another turn begins (invariant 3, idempotent saves), and what
//! becomes of the messages that wait (invariant 9, accepted means durable).

use everturn_proto::words::{AgentExecutionStatus, Effect, FailureCode};
use everturn_store::{
    Access, MessageQueue, Missing, ModelCalls, StepClaims, StoreError, TakenBy, ToolClaims,
};

use tokio::task::JoinSet;

use super::{
    Backend,
    fixture::{Turn, data, new_message, state, tenant, tool_end},
};

pub async fn a_lost_turn_ends_when_the_next_one_begins(backend: &impl Backend) {
    let lost = Turn::begun(backend.open().await, "c", "m1").await;
    lost.asks(0, "look", &[Effect::Read, Effect::Once]).await;
    lost.runs(0, 0).await;
    lost.store.claim_tool(&lost.tool(0, 1), "a").await.unwrap();
    lost.queue("m2").await;

    let next = Turn::new(lost.store.clone(), "c", "m2");
    let begun = next.begin_again().await;
    assert_eq!(
        (begun.status.clone(), begun.last_sequence),
        (AgentExecutionStatus::Running, 8)
    );
    assert_eq!(begun.sealed, [lost.sealed(1)]);
    let expected = [
        "user_message",
        "thought",
        "act",
        "act",
        "observe",
        "observe",
        "error",
        "user_message",
    ];
    assert_eq!(next.types().await, expected);
    let events = next.events().await;
    assert!(
        events[5]
            .event_data
            .as_ref()
            .unwrap()
            .as_str()
            .contains("unknown"),
        "the tool may have had its effect"
    );
    let error = data(&events[6]);
    assert_eq!(error["code"], FailureCode::TurnLost.as_str());
    assert_eq!(error["agent_execution_id"], lost.execution);
    assert_eq!(events[6].message_id, "m1");

    // The workflow was not dead after all: nothing that it still does counts.
    let rows = backend.row_count().await;
    assert_eq!(
        lost.observe(0, 1, "late").await.result.status(),
        AgentExecutionStatus::Failed
    );
    assert_eq!(
        lost.end(0, AgentExecutionStatus::Completed)
            .await
            .result
            .status(),
        AgentExecutionStatus::Failed
    );
    assert!(matches!(
        lost.store.claim_step(&lost.step(1), None).await,
        Err(StoreError::Conflict(_))
    ));
    assert_eq!(
        lost.begin_again().await.status,
        AgentExecutionStatus::Failed
    );
    let again = next.begin_again().await;
    assert_eq!(
        (again.status.clone(), again.sealed.len()),
        (AgentExecutionStatus::Running, 0)
    );
    assert_eq!(backend.row_count().await, rows);
}

pub async fn a_lost_turn_keeps_its_text(backend: &impl Backend) {
    let store = backend.open().await;
    for (conversation, is_whole) in [("whole", true), ("partial", false)] {
        let lost = Turn::begun(store.clone(), conversation, "m1").await;
        lost.asks(0, "look", &[Effect::Read]).await;
        lost.runs(0, 0).await;
        if is_whole {
            lost.complete(1, "as far as this", &[]).await;
        } else {
            store
                .save_partial(&lost.step(1), state("as far as this", vec![]))
                .await
                .unwrap();
        }
        let next = Turn::begun(store.clone(), conversation, "m2").await;
        let text = next.data("assistant_message").await;
        assert_eq!(
            (&text["content"], &text["partial"], &text["step"]),
            (&"as far as this".into(), &true.into(), &1.into())
        );
        assert_eq!(
            next.types().await[4..],
            ["assistant_message", "error", "user_message"]
        );
    }
}

/// The worker of the lost turn is alive and at work while the next turn begins. There is no deadlock, every act has one
/// observe, and nothing is written after the end.
pub async fn a_lost_turn_that_still_works_ends_whole(backend: &impl Backend) {
    let handles = [backend.open().await, backend.open().await];
    for round in 0..4 {
        let lost = Turn::begun(handles[0].clone(), &format!("c{round}"), "m1").await;
        lost.asks(0, "look", &[const { Effect::Read }; 8]).await;
        let mut tasks = JoinSet::new();
        for number in 0..8 {
            let turn = Turn {
                store: handles[number % 2].clone(),
                ..lost.clone()
            };
            let other = turn.clone();
            tasks.spawn(async move { drop(turn.runs(0, number).await) });
            tasks.spawn(async move {
                let claim = other.store.claim_step(&other.step(1), None).await;
                assert!(
                    matches!(claim, Ok(_) | Err(StoreError::Conflict(_))),
                    "{claim:?}"
                );
            });
        }
        let next = Turn::new(handles[1].clone(), &lost.conversation, "m2");
        tasks.spawn(async move { drop(next.begin_as_run("hi").await.unwrap()) });
        tasks.join_all().await;
        let types = lost.types().await;
        let observes = types.iter().filter(|found| *found == "observe").count();
        assert_eq!((observes, types.len()), (8, 20), "{types:?}");
        assert_eq!(types[18..], ["error", "user_message"]);
    }
}

pub async fn a_message_that_joined_a_lost_turn_does_not_end_it(backend: &impl Backend) {
    let lost = Turn::begun(backend.open().await, "c", "m1").await;
    lost.steer("s", "and this").await;
    let own = Turn::new(lost.store.clone(), "c", "s");
    assert_eq!(
        own.begin_again().await.status,
        AgentExecutionStatus::Completed,
        "it begins no turn"
    );
    assert_eq!(
        lost.begin_again().await.status,
        AgentExecutionStatus::Running
    );
}

pub async fn a_withdrawn_message_was_never_there(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m1").await;
    let store = &turn.store;
    let rows = backend.row_count().await;
    store
        .queue_message(&tenant(), new_message("c", "m2", Some("client")))
        .await
        .unwrap();
    assert!(
        !store
            .withdraw_message(&Access::tenant("another"), "c", "m2")
            .await
            .unwrap()
    );
    assert!(store.withdraw_message(&tenant(), "c", "m2").await.unwrap());
    assert_eq!(backend.row_count().await, rows);
    assert!(
        store
            .queue_message(&tenant(), new_message("c", "m3", Some("client")))
            .await
            .unwrap()
            .is_new
    );
    for (conversation, message) in [("c", "m1"), ("c", "m2"), ("unknown", "m3")] {
        assert!(
            !store
                .withdraw_message(&tenant(), conversation, message)
                .await
                .unwrap(),
            "{message}"
        );
    }
    let refused = Turn::new(store.clone(), "c", "m2").begin_as_run("").await;
    assert!(
        matches!(
            refused,
            Err(StoreError::NotFound {
                what: Missing::Message,
                ..
            })
        ),
        "{refused:?}"
    );
}

pub async fn a_message_is_taken_or_withdrawn(backend: &impl Backend) {
    let (store, other) = (backend.open().await, backend.open().await);
    for number in 0..20 {
        let conversation = format!("c{number}");
        let turn = Turn::begun(store.clone(), &conversation, "m1").await;
        turn.complete(0, "answer", &[]).await;
        turn.end(0, AgentExecutionStatus::Completed).await;
        turn.queue("m2").await;
        let next = Turn::new(store.clone(), &conversation, "m2");
        let withdraw = {
            let (other, conversation) = (other.clone(), conversation.clone());
            tokio::spawn(async move {
                other
                    .withdraw_message(&tenant(), &conversation, "m2")
                    .await
                    .unwrap()
            })
        };
        let begun = next.begin_as_run("").await;
        assert_ne!(withdraw.await.unwrap(), begun.is_ok(), "{begun:?}");
    }
}

pub async fn a_repeated_message_names_the_turn_that_took_it(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m1").await;
    turn.store
        .queue_message(&tenant(), new_message("c", "s", Some("client")))
        .await
        .unwrap();
    let repeated = async || {
        turn.store
            .queue_message(&tenant(), new_message("c", "s2", Some("client")))
            .await
            .unwrap()
    };
    assert_eq!(repeated().await.turn, None);
    turn.take("s").await;
    let taken = |is_running| {
        Some(TakenBy {
            message_id: "m1".into(),
            is_running,
        })
    };
    assert_eq!(repeated().await.turn, taken(true));
    turn.asks(0, "look", &[Effect::Read]).await;
    turn.store
        .finish_tool(&turn.tool(0, 0), tool_end("1"))
        .await
        .unwrap();
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    assert_eq!(repeated().await.turn, taken(false));
}
