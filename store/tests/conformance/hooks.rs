//! Hooks: a step that calls no model, and the records of what runs after a turn.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::{
    ids::AFTER_TURN_STEP,
    limits::MAX_HOOKS_AFTER_TURNS,
    turn::{LlmCompleteState, ToolCall},
    words::{AgentExecutionStatus, Effect, Hook, ToolStatus},
};
use everturn_store::{
    Conversations, DueHooks, Reconciliation, StepClaims, StoreError, TenantUsage, ToolClaim,
    ToolClaims, TurnInputs, Turns, UsageQuery,
};

use super::{
    Backend,
    delegation::{begun, delegating},
    fixture::{Turn, TurnStore, agent, state, tenant, tool_end},
};

fn hook(call: ToolCall) -> ToolCall {
    ToolCall {
        hook: Some(Hook::BeforeTurn.into()),
        ..call
    }
}

pub async fn a_step_of_hooks_is_no_call_of_a_model(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let planned = LlmCompleteState {
        generation: 0,
        input_tokens: 0,
        output_tokens: 0,
        ..state("", vec![hook(turn.call(0, 0, Effect::Read))])
    };
    let stored = turn.store.complete_step(&turn.step(0), planned).await;
    stored.unwrap();
    turn.thought(0).await;
    turn.runs(0, 0).await;
    turn.complete(1, "answer", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    let types = turn.types().await;
    assert_eq!(
        types,
        [
            "user_message",
            "act",
            "observe",
            "assistant_message",
            "complete"
        ]
    );
    assert_eq!(turn.data("act").await["hook"], "before_turn");
    assert_eq!(turn.data("complete").await["steps"], 1);
    let query = UsageQuery {
        from: "2000-01-01".into(),
        to: "9999-12-31".into(),
        limit: 100,
        ..UsageQuery::default()
    };
    let days = turn.store.usage_days(&tenant().tenant_id, &query).await;
    let calls: Vec<_> = days.unwrap().iter().map(|day| day.calls).collect();
    assert_eq!(calls, [1]);
}

async fn ended<B: Backend>(backend: &B, message: &str) -> Turn<B::Store> {
    let turn = Turn::begun(backend.open().await, "c", message).await;
    turn.complete(0, "answer", &[]).await;
    turn.end_with_hooks(0, None).await;
    turn
}

/// Makes this many hooks after the turn.
fn hooks(turn: &Turn<impl TurnStore>, count: usize) -> Vec<ToolCall> {
    let hooks = 0..count;
    hooks
        .map(|index| turn.call(AFTER_TURN_STEP, index, Effect::Once))
        .collect()
}

pub async fn hooks_after_a_turn_are_claimed_like_any_tool(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let (step, calls) = (turn.step(AFTER_TURN_STEP), hooks(&turn, 2));
    let early = turn.store.begin_after_turn(&step, &calls).await;
    assert!(
        matches!(early, Err(StoreError::Conflict(_))),
        "it runs still: {early:?}"
    );
    turn.complete(0, "answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    for _ in 0..2 {
        assert!(turn.store.begin_after_turn(&step, &calls).await.unwrap());
    }
    let key = turn.tool(AFTER_TURN_STEP, 0);
    let claim = turn.store.claim_tool(&key, "a").await.unwrap();
    assert!(matches!(claim, ToolClaim::Run { .. }), "{claim:?}");
    let other = turn.store.claim_tool(&key, "b").await.unwrap();
    assert!(
        matches!(other, ToolClaim::OutcomeUnknown { .. }),
        "{other:?}"
    );
    let record = turn
        .store
        .finish_tool(&key, tool_end(r#""kept""#))
        .await
        .unwrap();
    assert_eq!(record.status, ToolStatus::Completed);
    // Begun again, what has ended stays so. No event tells of it, and the end that is saved again closes nothing.
    assert!(turn.store.begin_after_turn(&step, &calls).await.unwrap());
    let claim = turn.store.claim_tool(&key, "c").await.unwrap();
    assert!(matches!(claim, ToolClaim::Ended(_)), "{claim:?}");
    turn.end(0, AgentExecutionStatus::Completed).await;
    let open = turn.tool(AFTER_TURN_STEP, 1);
    let claim = turn.store.claim_tool(&open, "a").await.unwrap();
    assert!(matches!(claim, ToolClaim::Run { .. }), "{claim:?}");
    assert_eq!(
        turn.types().await,
        ["user_message", "assistant_message", "complete"]
    );
    let owner = turn.store.owner_of("c").await.unwrap();
    assert_eq!(owner, Some(tenant()));
    let texts = turn
        .store
        .message_texts("c", &["m".to_owned(), "none".to_owned()])
        .await;
    assert_eq!(texts.unwrap().len(), 1);
}

pub async fn hooks_of_too_many_turns_are_left_out(backend: &impl Backend) {
    const EACH: usize = 8;
    let mut first = None;
    for number in 0..MAX_HOOKS_AFTER_TURNS / EACH {
        let turn = ended(backend, &format!("m{number}")).await;
        let (step, calls) = (turn.step(AFTER_TURN_STEP), hooks(&turn, EACH));
        assert!(turn.store.begin_after_turn(&step, &calls).await.unwrap());
        first.get_or_insert(turn);
    }
    let (first, last) = (first.unwrap(), ended(backend, "last").await);
    let (step, calls) = (last.step(AFTER_TURN_STEP), hooks(&last, EACH));
    assert!(!last.store.begin_after_turn(&step, &calls).await.unwrap());
    let waiting = due(&last.store, later()).await;
    assert_eq!(waiting, [""; 0], "hooks that are left out do not wait");
    let key = last.tool(AFTER_TURN_STEP, 0);
    assert!(
        last.store.claim_tool(&key, "a").await.is_err(),
        "nothing is stored"
    );
    // Hooks that are stored may begin again, and each hook that ends lets another one be stored.
    let again = hooks(&first, EACH);
    let step_of_first = first.step(AFTER_TURN_STEP);
    assert!(
        first
            .store
            .begin_after_turn(&step_of_first, &again)
            .await
            .unwrap()
    );
    for index in 0..EACH {
        let key = first.tool(AFTER_TURN_STEP, index);
        first
            .store
            .finish_tool(&key, tool_end(r#""kept""#))
            .await
            .unwrap();
    }
    assert!(last.store.begin_after_turn(&step, &calls).await.unwrap());
}

/// A time after everything that a test has stored.
fn later() -> DateTime<Utc> {
    Utc::now() + TimeDelta::minutes(1)
}

/// The agent executions whose hooks have waited for their workflow since this time.
async fn due(store: &impl Reconciliation, due_before: DateTime<Utc>) -> Vec<String> {
    let due = store.due_hooks(due_before, 100).await.unwrap();
    let due = due.into_iter().map(|hooks| hooks.agent_execution_id);
    due.collect()
}

pub async fn hooks_wait_for_their_workflow_until_they_begin(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let store = &turn.store;
    turn.asks(0, "look", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    turn.complete(1, "answer", &[]).await;
    assert_eq!(due(store, later()).await, [""; 0], "the turn runs");
    turn.end_with_hooks(1, Some("tools")).await;
    let early = Utc::now() - TimeDelta::minutes(1);
    assert_eq!(due(store, early).await, [""; 0], "the hooks are too young");
    let found = store.due_hooks(later(), 100).await.unwrap();
    let expected = DueHooks {
        tenant_id: tenant().tenant_id,
        conversation_id: "c".to_owned(),
        message_id: "m".to_owned(),
        agent_execution_id: turn.execution.clone(),
        agent_hash: agent().hash().unwrap(),
        steps: 2,
        tool_queue: Some("tools".to_owned()),
    };
    assert_eq!(found, [expected]);

    // A gateway has started the workflow.
    let again = later();
    let noted = store.note_hooks(&turn.execution, Some(again)).await;
    assert!(noted.unwrap());
    let before = again - TimeDelta::seconds(1);
    assert_eq!(due(store, before).await, [""; 0]);
    let after = again + TimeDelta::seconds(1);
    assert_eq!(
        due(store, after).await,
        std::slice::from_ref(&turn.execution)
    );

    let (step, calls) = (turn.step(AFTER_TURN_STEP), hooks(&turn, 1));
    assert!(store.begin_after_turn(&step, &calls).await.unwrap());
    assert_eq!(due(store, after).await, [""; 0], "the hooks have begun");
    let noted = store.note_hooks(&turn.execution, Some(early)).await;
    assert!(!noted.unwrap(), "hooks that have begun never wait again");
    turn.end_with_hooks(1, Some("tools")).await;
    assert_eq!(due(store, after).await, [""; 0], "the end was saved before");
}

pub async fn hooks_that_are_given_up_wait_no_longer(backend: &impl Backend) {
    let turn = ended(backend, "m").await;
    let store = &turn.store;
    assert_eq!(
        due(store, later()).await,
        std::slice::from_ref(&turn.execution)
    );
    assert!(store.note_hooks(&turn.execution, None).await.unwrap());
    assert_eq!(due(store, later()).await, [""; 0]);
    assert!(!store.note_hooks(&turn.execution, None).await.unwrap());
}

pub async fn only_a_completed_turn_with_hooks_has_waiting_hooks(backend: &impl Backend) {
    let store = backend.open().await;
    for (id, status) in [
        ("completed", AgentExecutionStatus::Completed),
        ("cancelled", AgentExecutionStatus::Cancelled),
        ("failed", AgentExecutionStatus::Failed),
    ] {
        let turn = Turn::begun(store.clone(), id, "m").await;
        turn.complete(0, "answer", &[]).await;
        turn.end(0, status).await;
    }
    assert_eq!(due(&store, later()).await, [""; 0]);
}

pub async fn a_sub_agent_has_waiting_hooks_of_its_own(backend: &impl Backend) {
    let parent = delegating(backend, 1).await;
    let sub = begun(&parent, 0).await;
    sub.complete(0, "found", &[]).await;
    sub.end_with_hooks(0, None).await;
    let due = due(&parent.store, later()).await;
    assert_eq!(due, [sub.execution]);
}

pub async fn the_hooks_that_wait_longest_come_first(backend: &impl Backend) {
    let mut expected = Vec::new();
    for message in ["m1", "m2", "m3"] {
        expected.push(ended(backend, message).await.execution);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let store = backend.open().await;
    assert_eq!(due(&store, later()).await, expected);
    let first = store.due_hooks(later(), 2).await.unwrap();
    assert_eq!(first.len(), 2);
}

pub async fn hooks_of_a_removed_conversation_do_not_wait(backend: &impl Backend) {
    let turn = ended(backend, "m").await;
    let store = &turn.store;
    assert_eq!(due(store, later()).await.len(), 1);
    let removed = store.delete_conversation(&tenant(), "c", None).await;
    assert!(removed.unwrap());
    assert_eq!(due(store, later()).await, [""; 0]);

    // The rows of a large conversation are removed in several transactions. The first transaction hides the conversation.
    let hidden = Turn::begun(backend.open().await, "hidden", "m").await;
    hidden.complete(0, "answer", &[]).await;
    hidden.end_with_hooks(0, None).await;
    assert_eq!(due(store, later()).await.len(), 1);
    backend
        .run("UPDATE conversations SET tenant_id = '' WHERE id = 'hidden'")
        .await;
    assert_eq!(due(store, later()).await, [""; 0]);
}
