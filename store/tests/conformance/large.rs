//! A conversation with many events disappears at once, and its rows go in several transactions of any process.
//! Definitions of agents go after their last turn.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::{
    turn::{AgentDefinition, SaveEnd, save_request::Batch},
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    BeginTurn, Conversations, EventReader, EventWriter, MessageQueue, NewConversation, PageLimit,
    Removed, Retention, StepClaims, StoreError, Turns,
};

use super::{
    Backend,
    delegation::{agents, begun, delegates},
    fixture::{Turn, TurnStore, agent, json, new_message, state, tenant, tool_end},
    list_changes::{Lists, create_anns},
};

/// The rows of one transaction. A conversation of [`large`] has some more than three times as many.
const MAX_ROWS: u32 = 4_000;

/// Returns a time in the future: everything is older.
fn soon() -> DateTime<Utc> {
    Utc::now() + TimeDelta::hours(1)
}

/// Begins a turn with a sub-agent, and saves so many events that a single transaction does not remove them.
async fn large<S: TurnStore + Clone>(store: S, conversation: &str) -> Turn<S> {
    let turn = Turn::new(store, conversation, "m");
    let begin = BeginTurn {
        agent: agents()["a"].clone(),
        ..turn.begin("share this out")
    };
    turn.store.begin_turn(begin).await.unwrap();
    delegates(&turn, &[r#"{"agent": "b", "task": "look"}"#]).await;
    let child = begun(&turn, 0).await;
    child.asks(0, "", &[const { Effect::Read }; 2]).await;
    for index in 0..2 {
        let mut end = tool_end("1");
        end.events = (0..6_000)
            .map(|number| ("pattern_match".into(), json(&number.to_string())))
            .collect();
        let tool = child.tool(0, index);
        child.store.claim_tool(&tool, "a").await.unwrap();
        child.store.finish_tool(&tool, end).await.unwrap();
        child.observe(0, index, "").await;
    }
    turn
}

/// Removes the rows of hidden conversations. Every transaction is of another process, as if the one before had died.
/// Returns the number of transactions.
async fn remove_rest(backend: &impl Backend) -> u32 {
    let mut transactions = 0;
    while backend.open().await.remove_rest(MAX_ROWS).await.unwrap() {
        transactions += 1;
    }
    transactions
}

fn conversation(name: &str) -> NewConversation {
    NewConversation::new(name, tenant(), "a")
}

fn is_missing<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::NotFound { .. }))
}

pub async fn a_large_conversation_is_gone_at_once(backend: &impl Backend) {
    let store = backend.open().await;
    let rows = backend.row_count().await;
    let turn = large(store.clone(), "c").await;
    turn.queue("next").await;
    let log = turn.conversation().await.log();
    let access = tenant();
    let delete = || store.delete_conversation(&access, "c", None);
    assert!(delete().await.unwrap());
    assert!(backend.row_count().await > rows + 12_000);

    // Readers find nothing.
    assert!(!delete().await.unwrap(), "there is none any more");
    assert_eq!(store.conversation(&tenant(), "c").await.unwrap(), None);
    assert_eq!(store.conversation_head(&tenant(), "c").await.unwrap(), None);
    assert_eq!(store.last_sequences(&["c".into()]).await.unwrap(), []);
    let page = store.events(&tenant(), &log, 0, PageLimit::rows(10)).await;
    assert!(page.unwrap().events.is_empty());

    // Workers change nothing.
    let left = backend.row_count().await;
    assert!(store.claim_step(&turn.step(1), None).await.is_err());
    let late = state("late", vec![]);
    assert!(store.complete_step(&turn.step(1), late).await.is_err());
    let end = Batch::End(SaveEnd {
        status: AgentExecutionStatus::Cancelled.into(),
        ..SaveEnd::default()
    });
    assert!(is_missing(&store.save(&turn.request(1, end)).await));
    let queued = store.queue_message(&access, new_message("c", "late", None));
    assert!(is_missing(&queued.await));
    let other = Turn::new(store.clone(), "c", "other");
    assert!(is_missing(&store.begin_turn(other.begin("more")).await));
    assert_eq!(backend.row_count().await, left);

    // The id is free when the last row is gone.
    let refused = store.create_conversation(conversation("c")).await;
    assert!(refused.unwrap_err().is_retryable());
    let transactions = remove_rest(backend).await;
    assert!(transactions > 3, "{transactions}");
    // The note of the deletion is left, and the definitions of two agents.
    assert_eq!(backend.row_count().await, rows + 3);
    assert_eq!(store.remove_definitions(10).await.unwrap(), 2);
    assert_eq!(backend.row_count().await, rows + 1);
    let anew = store.create_conversation(conversation("c")).await.unwrap();
    assert_ne!(anew.unwrap().log(), log);
    let turn = Turn::begun(store, "c", "m").await;
    assert_eq!(turn.events().await.len(), 1);
}

pub async fn a_large_old_conversation_is_removed(backend: &impl Backend) {
    let store = backend.open().await;
    let rows = backend.row_count().await;
    let turn = large(store.clone(), "c").await;
    turn.end(1, AgentExecutionStatus::Failed).await;
    let expected = Removed {
        conversations: 1,
        events: u64::from(turn.conversation().await.last_sequence),
    };
    assert_eq!(store.count_expired(soon()).await.unwrap(), expected);
    let batch = store.remove_expired(soon(), None, 10).await.unwrap();
    assert_eq!((batch.removed, batch.next), (expected, None));
    let nothing = Removed::default();
    assert_eq!(store.count_expired(soon()).await.unwrap(), nothing);
    let again = store.remove_expired(soon(), None, 10).await.unwrap();
    assert_eq!(again.removed, nothing, "its rows are not counted twice");

    // A turn from the command line waits for the last row.
    let next = Turn::new(store.clone(), "c", "next");
    let early = store.begin_turn(next.begin("more")).await;
    assert!(early.unwrap_err().is_retryable());
    assert!(remove_rest(backend).await > 3);
    assert_eq!(store.remove_definitions(10).await.unwrap(), 2);
    assert_eq!(backend.row_count().await, rows);
    Turn::begun(store, "c", "next").await;
}

/// Lists change when the conversation is hidden. The last of its rows goes in silence, because no list has the conversation.
pub async fn a_large_conversation_leaves_its_lists_at_once(backend: &impl Backend) {
    let store = backend.open().await;
    create_anns(&store, "c").await;
    large(store.clone(), "c").await;
    let mut lists = Lists::of(backend.open().await).await;
    let deleted = store.delete_conversation(&tenant(), "c", None).await;
    assert!(deleted.unwrap());
    lists.have_anns_change("a hidden conversation").await;
    assert!(lists.have_forgotten_ann());
    assert!(remove_rest(backend).await > 3);
    lists.are_quiet("the removal of the rows").await;
}

pub async fn definitions_without_a_turn_are_removed(backend: &impl Backend) {
    let store = backend.open().await;
    let kept = Turn::begun(store.clone(), "kept", "m").await;
    let begin = |conversation: &str| BeginTurn {
        agent: AgentDefinition {
            max_steps: 6,
            ..agent()
        },
        ..Turn::new(store.clone(), conversation, "m").begin("go")
    };
    store.begin_turn(begin("c")).await.unwrap();
    assert_eq!(store.remove_definitions(10).await.unwrap(), 0);
    let deleted = store.delete_conversation(&tenant(), "c", None).await;
    assert!(deleted.unwrap());
    assert_eq!(store.remove_definitions(10).await.unwrap(), 1);
    assert_eq!(store.remove_definitions(10).await.unwrap(), 0);
    let again = kept.begin_again().await;
    assert_eq!(again.status, AgentExecutionStatus::Running);
    // The definition comes back with the next turn.
    store.begin_turn(begin("d")).await.unwrap();
    assert_eq!(store.remove_definitions(10).await.unwrap(), 0);
}
