//! A failed turn is retried once, from the context that it left, and by nobody who may not see its conversation.

use everturn_proto::{
    Thread, ids,
    words::{AgentExecutionStatus, Effect, MessageRole},
};
use everturn_store::{
    Access, ContextMessage, MessageQueue, NotRetryable, QueuedMessage, RetryTurn, StoreError,
    TurnInputs, model_input::join_retries,
};

use super::{
    Backend,
    fixture::{EVERYTHING, Turn, TurnStore, new_message, tenant},
};

fn retry(failed: Option<&str>, client: Option<&str>) -> RetryTurn {
    RetryTurn {
        failed_message_id: failed.map(str::to_owned),
        message: new_message("c", "", client),
    }
}

async fn retried(
    store: &impl MessageQueue,
    failed: Option<&str>,
    client: Option<&str>,
) -> Result<QueuedMessage, StoreError> {
    store.retry_turn(&tenant(), retry(failed, client)).await
}

async fn refused(store: &impl MessageQueue, failed: Option<&str>) -> NotRetryable {
    match retried(store, failed, None).await {
        Err(StoreError::NotRetryable(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Fails a turn after a step with a tool; the failed step has left a text.
async fn failed<B: Backend>(backend: &B) -> Turn<B::Store> {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "looking", &[Effect::Once]).await;
    turn.runs(0, 0).await;
    turn.complete(1, "half", &[]).await;
    turn.end(1, AgentExecutionStatus::Failed).await;
    turn
}

async fn context(store: &impl TurnStore) -> Vec<ContextMessage> {
    let read = store.context("c", &Thread::Conversation, EVERYTHING, None);
    let mut messages = read.await.unwrap().messages;
    join_retries(&mut messages, "c");
    messages
}

pub async fn a_retry_goes_on_from_the_context_of_the_failed_turn(backend: &impl Backend) {
    let turn = failed(backend).await;
    let before = turn.conversation().await;
    let queued = retried(&turn.store, None, None).await.unwrap();
    assert_eq!(
        queued.message_id,
        ids::retry_message_id(&turn.execution),
        "a failed turn has one retry"
    );
    let again = Turn::new(turn.store.clone(), "c", &queued.message_id);
    let begun = again.begin_as_run("").await.unwrap();
    assert_eq!(begun.status, AgentExecutionStatus::Running);
    let messages = context(&turn.store).await;
    let [question, step] = messages.as_slice() else {
        panic!("{messages:#?}")
    };
    assert_eq!(
        (&question.role, question.content.as_str()),
        (&MessageRole::User, "say m")
    );
    assert_eq!(
        (step.content.as_str(), step.tool_results.len()),
        ("looking", 1)
    );
    for message in &messages {
        assert_eq!(message.agent_execution_id, again.execution);
    }
    again.complete(0, "whole", &[]).await;
    again.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(
        turn.types().await.join(" "),
        "user_message thought act observe assistant_message error user_message assistant_message complete"
    );
    let taken = &turn.all_data("user_message").await[1];
    assert_eq!(taken["retry_of"], "m");
    let after = turn.conversation().await;
    assert_eq!(after.title, before.title);
    let texts = turn
        .store
        .message_texts("c", std::slice::from_ref(&queued.message_id));
    assert_eq!(texts.await.unwrap()[&queued.message_id], "say m");
    assert_eq!(refused(&turn.store, None).await, NotRetryable::NotFailed);
}

pub async fn a_failed_turn_is_retried_once(backend: &impl Backend) {
    let turn = failed(backend).await;
    let (one, two) = tokio::join!(
        retried(&turn.store, Some("m"), Some("key")),
        retried(&turn.store, Some("m"), None)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.message_id, two.message_id);
    assert!(one.is_new != two.is_new, "{one:?} {two:?}");
    let again = Turn::new(turn.store.clone(), "c", &one.message_id);
    again.begin_as_run("").await.unwrap();
    again.end(0, AgentExecutionStatus::Failed).await;
    let late = retried(&turn.store, Some("m"), None).await.unwrap();
    assert_eq!(late.message_id, one.message_id);
    assert!(!late.is_new && !late.turn.unwrap().is_running);
    // The failed retry is a turn to retry, and names the message of the first turn.
    let next = retried(&turn.store, None, None).await.unwrap();
    assert!(next.is_new);
    let last = Turn::new(turn.store.clone(), "c", &next.message_id);
    last.begin_as_run("").await.unwrap();
    let taken = turn.all_data("user_message").await;
    assert_eq!(taken.last().unwrap()["retry_of"], "m");
    let messages = context(&turn.store).await;
    assert!(
        messages
            .iter()
            .all(|it| it.agent_execution_id == last.execution)
    );
}

pub async fn a_turn_in_another_state_is_not_retried(backend: &impl Backend) {
    let store = backend.open().await;
    let running = Turn::begun(store.clone(), "c", "m").await;
    assert_eq!(refused(&store, None).await, NotRetryable::NotFailed);
    running.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(
        refused(&store, Some("other")).await,
        NotRetryable::NotNewest
    );
    running.queue("m2").await;
    assert_eq!(refused(&store, None).await, NotRetryable::MessagesWait);
    let next = Turn::new(store.clone(), "c", "m2");
    next.begin_as_run("").await.unwrap();
    next.end(0, AgentExecutionStatus::Cancelled).await;
    assert_eq!(refused(&store, Some("m")).await, NotRetryable::NotNewest);
    assert_eq!(refused(&store, None).await, NotRetryable::NotFailed);
    let stranger = Access::tenant("stranger");
    let hidden = store.retry_turn(&stranger, retry(None, None)).await;
    assert!(
        matches!(hidden, Err(StoreError::NotFound { .. })),
        "{hidden:?}"
    );
    assert_eq!(running.types().await.len(), 4, "nothing has changed");
}

pub async fn the_key_of_a_message_is_not_the_key_of_a_retry(backend: &impl Backend) {
    let store = backend.open().await;
    let first = Turn::begun(store.clone(), "c", "m").await;
    let message = new_message("c", "m2", Some("key"));
    store.queue_message(&tenant(), message).await.unwrap();
    first.end(0, AgentExecutionStatus::Failed).await;
    let conflict = retried(&store, None, Some("key")).await;
    assert!(
        matches!(&conflict, Err(StoreError::OtherContent { client_message_id }) if client_message_id == "key"),
        "{conflict:?}"
    );
}

pub async fn a_late_retry_ends_at_its_start(backend: &impl Backend) {
    let turn = failed(backend).await;
    let queued = retried(&turn.store, None, None).await.unwrap();
    // A message that interrupts goes to the front.
    turn.queue("m2").await;
    let other = Turn::new(turn.store.clone(), "c", "m2");
    other.begin_as_run("").await.unwrap();
    other.complete(0, "answer", &[]).await;
    other.end(0, AgentExecutionStatus::Completed).await;
    let late = Turn::new(turn.store.clone(), "c", &queued.message_id);
    let begun = late.begin_as_run("").await.unwrap();
    assert_eq!(begun.status, AgentExecutionStatus::Cancelled);
    let types = turn.types().await;
    assert_eq!(types[types.len() - 2..], ["user_message", "cancelled"]);
    let again = late.begin_again().await;
    assert_eq!(again.status, AgentExecutionStatus::Cancelled);
}
