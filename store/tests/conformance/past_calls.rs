//! Past LLM calls: the facts of each call, and its content made again from what is stored.

use std::time::Duration;

use chrono::DateTime;
use everturn_proto::{
    turn::{
        CompactedContext, LlmCompleteState, SaveCompaction, SentContext, SentTool,
        save_request::Batch,
    },
    words::{AgentExecutionStatus, Effect, FinishReason},
};
use everturn_store::{
    Access, Conversations, FailedTry, ModelCalls, PastCallContent, PastCalls, PastInput, PastTry,
    TriesOf, WorkerId,
    model_input::{SUMMARIZE, characters},
};

use super::{
    Backend,
    fixture::{NEWEST_CALL, Turn, TurnStore, state, tenant},
};

/// Claims a step, reads its context, and stores a reply with what was sent, as a worker does.
async fn calls(turn: &Turn<impl TurnStore + Clone>, step: u32, reply: LlmCompleteState) {
    let key = turn.step(step);
    turn.store.claim_step(&key, None).await.unwrap();
    let (thread, limit) = (
        everturn_proto::Thread::Conversation,
        super::fixture::EVERYTHING,
    );
    let context = turn.store.context("c", &thread, limit, None).await.unwrap();
    let mut messages = context.messages;
    let mut numbers = messages.iter().map(|message| message.sequence_number);
    let (first, last) = (
        numbers.clone().next().unwrap(),
        numbers.next_back().unwrap_or_default(),
    );
    if reply.finish() == FinishReason::Compacted {
        messages.push(everturn_store::ContextMessage::text(
            everturn_proto::words::MessageRole::User,
            SUMMARIZE,
        ));
    }
    let sent = SentContext {
        messages: u32::try_from(messages.len()).unwrap(),
        first_sequence: first,
        last_sequence: last,
        characters: characters(None, &messages),
        tools: vec![SentTool {
            name: "search".into(),
            definition_hash: "h".into(),
        }],
        ..SentContext::default()
    };
    let reply = LlmCompleteState {
        sent: Some(Box::new(sent)),
        provider: "p".into(),
        model: "m1".into(),
        started_ms: Some(1_767_323_045_678),
        ..reply
    };
    turn.store.complete_step(&key, reply).await.unwrap();
}

async fn content(store: &impl PastCalls, turn: &Turn<impl Sized>, step: u32) -> PastCallContent {
    let found = store.past_call(&tenant(), "c", &turn.execution, step).await;
    found.unwrap().unwrap()
}

fn texts(content: &PastCallContent) -> (Vec<&str>, bool) {
    let PastInput { messages, is_exact } = content.input.as_ref().unwrap();
    let texts = messages.iter().map(|message| message.content.as_str());
    (texts.collect(), *is_exact)
}

pub async fn calls_are_listed_in_pages(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    for step in 0..3 {
        calls(&turn, step, state("said", Vec::new())).await;
    }
    let list = async |access: &Access, after, limit| {
        let found = turn
            .store
            .past_calls(access, "c", &turn.execution, after, limit);
        found.await.unwrap()
    };
    let page = list(&tenant(), None, 2).await;
    let steps: Vec<_> = page.iter().map(|call| call.step).collect();
    assert_eq!(steps, [0, 1]);
    let call = &page[0];
    assert_eq!(
        (call.provider.as_deref(), call.model.as_deref()),
        (Some("p"), Some("m1"))
    );
    assert_eq!(
        (&call.finish, call.generation),
        (&FinishReason::Stop, NEWEST_CALL)
    );
    assert_eq!(call.spent.usage.input_tokens, 100);
    assert_eq!(call.sent.as_ref().map(|sent| sent.messages), Some(1));
    let started = call.started_at.map(|time| time.timestamp_millis());
    assert_eq!(started, Some(1_767_323_045_678));
    assert_eq!(list(&tenant(), Some(1), 9).await.len(), 1);
    assert_eq!(list(&Access::tenant("other"), None, 9).await, []);
    assert_eq!(list(&Access::owner("default", "ann"), None, 9).await, []);
}

pub async fn a_call_has_what_it_was_sent_and_what_it_answered(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let asks = state("I look.", vec![turn.call(0, 0, Effect::Read)]);
    calls(&turn, 0, asks).await;
    turn.thought(0).await;
    turn.runs(0, 0).await;
    calls(&turn, 1, state("Done.", Vec::new())).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    let next = Turn::begun(turn.store.clone(), "c", "m2").await;
    calls(&next, 0, state("More.", Vec::new())).await;

    let first = content(&turn.store, &turn, 0).await;
    assert_eq!(texts(&first), (vec!["say m"], true));
    assert_eq!(
        (first.state.text.as_str(), &*first.agent.name),
        ("I look.", "default")
    );
    let second = content(&turn.store, &turn, 1).await;
    assert_eq!(texts(&second), (vec!["say m", "I look."], true));
    let results = &second.input.as_ref().unwrap().messages[1].tool_results;
    assert_eq!(results[0].result.as_str(), "\"found\"");
    let later = content(&turn.store, &next, 0).await;
    let all = vec!["say m", "I look.", "Done.", "say m2"];
    assert_eq!(texts(&later), (all, true));
    for access in [Access::tenant("other"), Access::owner("default", "ann")] {
        let foreign = turn.store.past_call(&access, "c", &turn.execution, 0);
        assert_eq!(foreign.await.unwrap(), None);
    }
    let access = tenant();
    let none = turn.store.past_call(&access, "c", &turn.execution, 2);
    assert_eq!(none.await.unwrap(), None);
}

pub async fn a_call_keeps_its_context_after_a_compaction(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    calls(&turn, 0, state("Long.", Vec::new())).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let next = Turn::begun(turn.store.clone(), "c", "m2").await;
    let compacted = LlmCompleteState {
        finish: FinishReason::Compacted.into(),
        compacted: Some(Box::new(CompactedContext {
            through_sequence: 2,
            messages: 2,
            from_sequence: 1,
            kept_message_ids: Vec::new(),
        })),
        ..state("The summary.", Vec::new())
    };
    calls(&next, 0, compacted).await;
    next.save(0, Batch::Compaction(SaveCompaction {})).await;
    calls(&next, 1, state("Short.", Vec::new())).await;

    let before = content(&turn.store, &turn, 0).await;
    assert_eq!(texts(&before), (vec!["say m"], true));
    let summarizes = content(&turn.store, &next, 0).await;
    let all = vec!["say m", "Long.", "say m2", SUMMARIZE];
    assert_eq!(texts(&summarizes), (all, true));
    let after = content(&turn.store, &next, 1).await;
    assert_eq!(texts(&after), (vec!["The summary.", "say m2"], true));
}

fn failed(generation: u32, reason: &str) -> FailedTry {
    FailedTry {
        generation,
        model: "p/m1".into(),
        worker: WorkerId::random(),
        code: "llm_overloaded".into(),
        reason: reason.into(),
        is_final: false,
        retry_after: Some(Duration::from_secs(2)),
        started_at: DateTime::from_timestamp_millis(1_767_323_045_678).unwrap(),
        keep: 2,
    }
}

async fn tries(turn: &Turn<impl TurnStore + PastCalls>, access: &Access) -> Vec<PastTry> {
    let all = TriesOf {
        after: None,
        through: None,
    };
    let id = &turn.execution;
    turn.store
        .failed_tries(access, "c", id, all, 9)
        .await
        .unwrap()
}

pub async fn a_step_keeps_its_newest_tries(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    for (step, generation) in [(0, 1), (0, 2), (0, 2), (0, 3), (1, 4)] {
        let tried = failed(generation, &format!("busy {generation}"));
        turn.store.note_try(&turn.step(step), &tried).await.unwrap();
    }
    let kept = tries(&turn, &tenant()).await;
    let shown = |it: &PastTry| (it.step, it.number, it.generation, it.reason.clone());
    let shown: Vec<_> = kept.iter().map(shown).collect();
    let expected = [
        (0, 2, 2, "busy 2"),
        (0, 3, 3, "busy 3"),
        (1, 1, 4, "busy 4"),
    ];
    let expected = expected.map(|(step, number, of, reason)| (step, number, of, reason.to_owned()));
    assert_eq!(shown, expected);
    let first = &kept[0];
    assert_eq!(
        (first.code.as_str(), first.model.as_str()),
        ("llm_overloaded", "p/m1")
    );
    assert_eq!((first.is_final, first.retry_after_ms), (false, Some(2000)));
    assert!(first.started_at < first.ended_at);
    assert_eq!(tries(&turn, &Access::tenant("other")).await, []);
    assert_eq!(tries(&turn, &Access::owner("default", "ann")).await, []);
    let access = tenant();
    let steps = TriesOf {
        after: Some(0),
        through: Some(1),
    };
    let one = turn
        .store
        .failed_tries(&access, "c", &turn.execution, steps, 9);
    assert_eq!(one.await.unwrap().len(), 1);
}

pub async fn tries_go_with_their_conversation(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let rows = backend.row_count().await;
    let step = turn.step(0);
    turn.store
        .note_try(&step, &failed(1, "busy"))
        .await
        .unwrap();
    assert_eq!(backend.row_count().await, rows + 1);
    turn.end(0, AgentExecutionStatus::Failed).await;
    let store = &turn.store;
    store
        .delete_conversation(&tenant(), "c", None)
        .await
        .unwrap();
    assert_eq!(tries(&turn, &tenant()).await, []);
    turn.store
        .note_try(&step, &failed(2, "late"))
        .await
        .unwrap();
    // The note of the removal is the only row, beside the rows that every database has.
    assert!(backend.row_count().await < rows);
}

pub async fn a_call_goes_with_its_conversation(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    calls(&turn, 0, state("said", Vec::new())).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let store = &turn.store;
    store
        .delete_conversation(&tenant(), "c", None)
        .await
        .unwrap();
    let gone = store.past_call(&tenant(), "c", &turn.execution, 0).await;
    assert_eq!(gone.unwrap(), None);
}
