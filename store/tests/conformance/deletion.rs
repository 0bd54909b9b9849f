//! A deleted conversation is gone at once and completely, whoever works on it, and stays gone.

use chrono::{TimeDelta, Utc};
use everturn_proto::{
    turn::{SaveEnd, save_request::Batch},
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    ConversationChange, Conversations, EventReader, EventWriter, MessageQueue, ModelCalls,
    NewConversation, PageLimit, Retention, StepClaims, StoreError, ToolClaims, Turns,
};
use tokio::task::JoinSet;

use super::{
    Backend,
    fixture::{Turn, TurnStore, json, new_message, state, tenant, tool_end},
};

/// Begins a turn that has a row in every table and is in the middle of a step.
async fn running<S: TurnStore>(store: S, conversation: &str) -> Turn<S> {
    let turn = Turn::begun(store, conversation, "m").await;
    turn.asks(0, "", &[Effect::Read, Effect::Read]).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let mut end = tool_end("1");
    end.events = vec![(
        "work_plan".into(),
        json(r#"{"plan_id":"p","title":"t","steps":[]}"#),
    )];
    turn.store.finish_tool(&turn.tool(0, 0), end).await.unwrap();
    turn.observe(0, 0, "").await;
    turn.queue("next").await;
    turn
}

fn end() -> Batch {
    Batch::End(SaveEnd {
        status: AgentExecutionStatus::Cancelled.into(),
        ..SaveEnd::default()
    })
}

fn is_missing<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::NotFound { .. }))
}

pub async fn a_conversation_is_deleted_whole(backend: &impl Backend) {
    let store = backend.open().await;
    let kept = running(store.clone(), "kept").await;
    let (rows, events) = (backend.row_count().await, kept.events().await.len());
    let log = running(store.clone(), "c").await.conversation().await.log();
    assert!(is_deleted(&store, "c").await);
    assert_eq!(
        backend.row_count().await,
        rows + 1,
        "nothing is left but the note that it was deleted"
    );
    assert_eq!(kept.events().await.len(), events);
    assert_eq!(store.conversation(&tenant(), "c").await.unwrap(), None);
    assert_eq!(store.conversation_head(&tenant(), "c").await.unwrap(), None);
    assert_eq!(store.last_sequences(&["c".into()]).await.unwrap(), []);
    assert!(
        store
            .events(&tenant(), &log, 0, PageLimit::rows(10))
            .await
            .unwrap()
            .events
            .is_empty()
    );
    assert!(!is_deleted(&store, "c").await, "there is none any more");
    assert!(!is_deleted(&store, "unknown").await);
    // A person may use the id again.
    let new = NewConversation {
        name: "c".into(),
        access: tenant(),
        agent: "a".into(),
        title: None,
        model: None,
        metadata: std::collections::BTreeMap::new(),
    };
    let anew = store.create_conversation(new).await.unwrap().unwrap();
    assert_eq!(anew.last_sequence, 0);
    assert_ne!(anew.log(), log, "it is another conversation");
    let turn = Turn::begun(store.clone(), "c", "m").await;
    assert_eq!(turn.events().await.len(), 1);
    let of_removed = store
        .events(&tenant(), &log, 0, PageLimit::rows(10))
        .await
        .unwrap();
    assert_eq!(of_removed.events.len(), 0, "a reader of the removed one");
    let last_sequences = store.last_sequences(&["c".into()]).await.unwrap();
    assert_eq!(last_sequences, [(anew.log(), 1)]);
    assert!(is_deleted(&store, "c").await);
    assert_eq!(backend.row_count().await, rows + 1);
}

/// Deletes a conversation, and says whether it was there.
async fn is_deleted(store: &impl Conversations, id: &str) -> bool {
    let deleted = store.delete_conversation(&tenant(), id, None).await;
    deleted.unwrap()
}

/// Workers whose conversation was deleted without their knowledge find nothing.
pub async fn who_still_works_on_it_finds_nothing(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = running(store.clone(), "c").await;
    assert!(is_deleted(&store, "c").await);
    let rows = backend.row_count().await;
    assert!(is_missing(&store.claim_step(&turn.step(1), None).await));
    assert!(is_missing(
        &store
            .complete_step(&turn.step(1), state("late", vec![]))
            .await
    ));
    assert!(is_missing(
        &store
            .save_partial(&turn.step(1), state("late", vec![]))
            .await
    ));
    assert!(is_missing(&store.claim_tool(&turn.tool(0, 1), "a").await));
    assert!(is_missing(
        &store.finish_tool(&turn.tool(0, 1), tool_end("1")).await
    ));
    assert!(is_missing(&store.save(&turn.request(1, end())).await));
    assert!(is_missing(
        &store
            .queue_message(&tenant(), new_message("c", "late", None))
            .await
    ));
    assert_eq!(backend.row_count().await, rows, "nothing came back");
}

/// `begin_turn` creates conversations that it does not know, but not those that were deleted.
pub async fn no_turn_creates_it_again(backend: &impl Backend) {
    let store = backend.open().await;
    running(store.clone(), "c").await;
    assert!(is_deleted(&store, "c").await);
    let rows = backend.row_count().await;
    // The message comes with its text, as from the command line, and without, as through a gateway.
    for (message, content) in [("m", "say m"), ("next", ""), ("other", "more")] {
        let begun = store
            .begin_turn(Turn::new(store.clone(), "c", message).begin(content))
            .await;
        assert!(is_missing(&begun), "{message}");
    }
    assert_eq!(backend.row_count().await, rows);
    // A conversation that was removed only because it was too old is not remembered.
    Turn::begun(store.clone(), "d", "m")
        .await
        .end(0, AgentExecutionStatus::Failed)
        .await;
    store
        .remove_expired(Utc::now() + TimeDelta::hours(1), None, 10)
        .await
        .unwrap();
    Turn::begun(store.clone(), "d", "m").await;
}

/// Everything that a turn does happens at the same time as the deletion of its conversation. Each call finds the
/// conversation whole or gone, and in the end it is gone.
async fn renamed<S: TurnStore>(turn: &Turn<S>) -> Result<(), StoreError> {
    let title = ConversationChange::of_title("x");
    let access = tenant();
    let changed = turn
        .store
        .change_conversation(&access, &turn.conversation, &title);
    changed.await.map(drop)
}

pub async fn a_deletion_amid_its_turn(backend: &impl Backend) {
    let store = backend.open().await;
    let rows = backend.row_count().await;
    let remover = backend.open().await;
    for round in 0..10 {
        let mut tasks = JoinSet::new();
        let turn = running(store.clone(), &format!("c{round}")).await;
        for task in 0..8 {
            let turn = turn.clone();
            tasks.spawn(async move {
                let done = match task {
                    0 => turn.store.claim_step(&turn.step(1), None).await.map(drop),
                    1 => turn
                        .store
                        .complete_step(&turn.step(1), state("answer", vec![]))
                        .await
                        .map(drop),
                    2 => turn.store.claim_tool(&turn.tool(0, 1), "a").await.map(drop),
                    3 => turn
                        .store
                        .finish_tool(&turn.tool(0, 1), tool_end("1"))
                        .await
                        .map(drop),
                    4 => turn
                        .store
                        .begin_turn(
                            Turn::new(turn.store.clone(), &turn.conversation, "cli").begin("hello"),
                        )
                        .await
                        .map(drop),
                    5 => turn
                        .store
                        .queue_message(&tenant(), new_message(&turn.conversation, "q", None))
                        .await
                        .map(drop),
                    6 => renamed(&turn).await,
                    _ => turn.store.save(&turn.request(1, end())).await.map(drop),
                };
                match done {
                    Ok(()) | Err(StoreError::NotFound { .. } | StoreError::Conflict(_)) => {}
                    Err(other) => panic!("task {task}: {other}"),
                }
            });
        }
        let (remover, conversation) = (remover.clone(), turn.conversation.clone());
        tasks.spawn(async move {
            assert!(
                remover
                    .delete_conversation(&tenant(), &conversation, None)
                    .await
                    .unwrap()
            );
        });
        tasks.join_all().await;
        assert_eq!(
            store
                .conversation(&tenant(), &turn.conversation)
                .await
                .unwrap(),
            None
        );
    }
    // Besides the notes of deleted conversations, only the agent's definition is left.
    assert_eq!(backend.row_count().await, rows + 10 + 1);
}
