//! Old conversations are removed completely, a bounded number at a time, and never while someone still needs them.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    Conversations, MessageQueue, Missing, NewConversation, Removed, Retention, StepClaims,
    StoreError, ToolClaims,
};
use tokio::task::JoinSet;

use super::{
    Backend,
    fixture::{Turn, json, new_message, tenant, tool_end},
};

/// Returns a time in the future: everything is older.
fn soon() -> DateTime<Utc> {
    Utc::now() + TimeDelta::hours(1)
}

async fn remove_all(store: &impl Retention, before: DateTime<Utc>, limit: u32) -> (Removed, u32) {
    let (mut sum, mut batches, mut after) = (Removed::default(), 0, None::<String>);
    loop {
        let batch = store
            .remove_expired(before, after.as_deref(), limit)
            .await
            .unwrap();
        assert!(batch.removed.conversations <= u64::from(limit));
        sum.conversations += batch.removed.conversations;
        sum.events += batch.removed.events;
        batches += 1;
        match batch.next {
            Some(next) => {
                assert!(
                    Some(&next) > after.as_ref(),
                    "each batch goes on behind the one before"
                );
                after = Some(next);
            }
            None => return (sum, batches),
        }
    }
}

pub async fn what_is_old_is_removed_whole(backend: &impl Backend) {
    let store = backend.open().await;
    let kept = Turn::begun(store.clone(), "kept", "m").await;
    let rows = backend.row_count().await;
    // This conversation has a row in every table.
    let turn = Turn::begun(store.clone(), "c", "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let mut end = tool_end("1");
    end.events = vec![(
        "work_plan".into(),
        json(r#"{"plan_id":"p","title":"t","steps":[]}"#),
    )];
    turn.store.finish_tool(&turn.tool(0, 0), end).await.unwrap();
    turn.observe(0, 0, "").await;
    turn.complete(1, "answer", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    let empty = NewConversation {
        name: "d".into(),
        access: tenant(),
        agent: "a".into(),
        title: None,
        model: None,
        metadata: std::collections::BTreeMap::new(),
    };
    store.create_conversation(empty).await.unwrap();

    let full = backend.row_count().await;
    let past = Utc::now() - TimeDelta::hours(1);
    assert_eq!(store.count_expired(past).await.unwrap(), Removed::default());
    assert_eq!(remove_all(&store, past, 100).await.0, Removed::default());
    let expected = Removed {
        conversations: 2,
        events: 7,
    };
    assert_eq!(store.count_expired(soon()).await.unwrap(), expected);
    assert_eq!(backend.row_count().await, full, "counting removes nothing");
    assert_eq!(remove_all(&store, soon(), 100).await, (expected, 1));
    assert_eq!(backend.row_count().await, rows, "nothing of it is left");
    assert_eq!(kept.events().await.len(), 1);
    // The id of a removed conversation may be used again.
    Turn::begun(store, "c", "m").await;
}

pub async fn what_runs_or_waits_stays(backend: &impl Backend) {
    let store = backend.open().await;
    let running = Turn::begun(store.clone(), "running", "m").await;
    let waiting = Turn::begun(store.clone(), "waiting", "m").await;
    waiting.queue("next").await;
    waiting.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(
        store.count_expired(soon()).await.unwrap(),
        Removed::default()
    );
    assert_eq!(remove_all(&store, soon(), 1).await.0, Removed::default());
    running.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(
        remove_all(&store, soon(), 1).await.0,
        Removed {
            conversations: 1,
            events: 2
        }
    );
    Turn::begun(store.clone(), "waiting", "next")
        .await
        .end(0, AgentExecutionStatus::Failed)
        .await;
    assert_eq!(
        remove_all(&store, soon(), 1).await.0,
        Removed {
            conversations: 1,
            events: 4
        }
    );
}

pub async fn batches_are_bounded(backend: &impl Backend) {
    let store = backend.open().await;
    for number in 0..10 {
        let turn = Turn::begun(store.clone(), &format!("c{number}"), "m").await;
        if number != 4 {
            turn.end(0, AgentExecutionStatus::Cancelled).await;
        }
    }
    assert_eq!(
        remove_all(&store, soon(), 3).await,
        (
            Removed {
                conversations: 9,
                events: 18
            },
            4
        )
    );

    // Conversations that are too large to be removed together are removed one after the other.
    for number in 0..3 {
        let turn = Turn::begun(store.clone(), &format!("large{number}"), "m").await;
        turn.asks(0, "", &[Effect::Read]).await;
        let mut end = tool_end("1");
        end.events = (0..5000)
            .map(|number| ("pattern_match".into(), json(&number.to_string())))
            .collect();
        turn.store.finish_tool(&turn.tool(0, 0), end).await.unwrap();
        turn.end(0, AgentExecutionStatus::Cancelled).await;
    }
    let (removed, batches) = remove_all(&store, soon(), 100).await;
    assert_eq!((removed.conversations, batches), (3, 3));
    assert!(removed.events > 15_000);
}

/// Whoever writes while old conversations are removed finds their conversation whole, or gone.
pub async fn writers_and_removal_do_not_mix(backend: &impl Backend) {
    let store = backend.open().await;
    for number in 0..40 {
        let turn = Turn::begun(store.clone(), &format!("c{number:02}"), "m").await;
        turn.asks(0, "", &[Effect::Read]).await;
        turn.end(0, AgentExecutionStatus::Cancelled).await;
    }
    let mut tasks = JoinSet::new();
    let remover = backend.open().await;
    tasks.spawn(async move {
        remove_all(&remover, soon(), 7).await;
    });
    for number in 0..40 {
        let (turn, queued) = (
            Turn::new(store.clone(), &format!("c{number:02}"), "m"),
            store.clone(),
        );
        let (late, late_tool) = (turn.clone(), turn.clone());
        tasks.spawn(async move {
            match queued
                .queue_message(&tenant(), new_message(&turn.conversation, "q", None))
                .await
            {
                Err(StoreError::NotFound {
                    what: Missing::Conversation,
                    ..
                }) => {}
                Err(other) => panic!("{other}"),
                Ok(_) => assert_eq!(
                    turn.events().await.len(),
                    5,
                    "accepted, so it is there and whole"
                ),
            }
        });
        // These are workers that are thought dead.
        tasks.spawn(async move {
            match late_tool.store.claim_tool(&late_tool.tool(0, 0), "a").await {
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        });
        tasks.spawn(async move {
            let state = super::fixture::state("late", vec![]);
            match late.store.complete_step(&late.step(7), state).await {
                Ok(_) | Err(StoreError::NotFound { .. } | StoreError::Conflict(_)) => {}
                Err(other) => panic!("{other}"),
            }
        });
    }
    tasks.join_all().await;
}
