//! The context of a model: what it has, where it begins after a compaction, and how much of it is read.

use everturn_proto::{
    Thread,
    turn::{CompactedContext, LlmCompleteState, SaveCompaction, save_request::Batch},
    words::{AgentExecutionStatus, Effect, FinishReason, MessageRole},
};
use everturn_store::{
    CompletedStep, Conversations, EventWriter, ModelContext, PageLimit, ReadBefore, StepClaim,
    StepClaims, StoreError, TurnInputs,
};

use super::{
    Backend,
    fixture::{NEWEST_CALL, Turn, TurnStore, tenant},
};

/// Reads a thread as a call of the model does.
async fn context(store: &impl TurnStore, thread: &Thread, limit: PageLimit) -> ModelContext {
    store.context("c", thread, limit, None).await.unwrap()
}

async fn contents(store: &impl TurnStore, rows: u32) -> Vec<String> {
    shown(&context(store, &Thread::Conversation, PageLimit::rows(rows)).await)
}

fn shown(context: &ModelContext) -> Vec<String> {
    let messages = context.messages.iter();
    messages
        .map(|message| format!("{} {}", message.role, message.content))
        .collect()
}

/// The checkpoint of a step that stands for the first `messages` messages, up to this event.
fn compacted(
    summary: &str,
    messages: u32,
    through_sequence: u32,
    kept: &[&str],
) -> LlmCompleteState {
    LlmCompleteState {
        text: summary.into(),
        finish: FinishReason::Compacted.into(),
        compacted: Some(Box::new(CompactedContext {
            through_sequence,
            messages,
            from_sequence: 1,
            kept_message_ids: kept.iter().map(|id| (*id).to_owned()).collect(),
        })),
        input_tokens: 700,
        output_tokens: 30,
        generation: NEWEST_CALL,
        ..LlmCompleteState::default()
    }
}

/// Compacts the context in a step of the turn.
async fn compact<S: TurnStore + Clone>(turn: &Turn<S>, step: u32, state: LlmCompleteState) {
    turn.store.claim_step(&turn.step(step), None).await.unwrap();
    let stored = turn.store.complete_step(&turn.step(step), state).await;
    assert!(matches!(stored.unwrap(), CompletedStep::Stored(_)));
    turn.save(step, Batch::Compaction(SaveCompaction {})).await;
}

pub async fn queued_messages_wait_their_turn_in_the_context(backend: &impl Backend) {
    let first = Turn::begun(backend.open().await, "c", "m1").await;
    // The message is accepted while the first turn runs, so it is created before the first answer.
    first.queue("m2").await;
    first.complete(0, "answer 1", &[]).await;
    assert_eq!(contents(&first.store, 10).await, ["user say m1"]);
    first.end(0, AgentExecutionStatus::Completed).await;
    let second = Turn::new(first.store.clone(), "c", "m2");
    // The stored text wins over another one.
    second.begin_as_run("not this").await.unwrap();
    assert_eq!(
        contents(&first.store, 10).await,
        ["user say m1", "assistant answer 1", "user say m2"]
    );
    assert_eq!(second.events().await.len(), 4);
}

pub async fn a_context_is_read_up_to_its_limit(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let long = "x".repeat(1000);
    for number in 0..4 {
        turn.steer(&format!("s{number}"), &format!("{number}{long}"))
            .await;
    }
    for (rows, bytes, expected) in [
        (100, 1_000_000, 5),
        (100, 2_500, 3),
        (100, 1, 1),
        (5, 1_000_000, 5),
        (2, 1_000_000, 2),
    ] {
        let limit = PageLimit { rows, bytes };
        let read = context(&turn.store, &Thread::Conversation, limit).await;
        assert_eq!(read.messages.len(), expected, "{limit:?}");
        assert_eq!(read.has_more, expected < 5, "{limit:?}");
        assert_eq!(read.messages[0].content, "say m", "the oldest come first");
    }
    let unknown = turn
        .store
        .context("unknown", &Thread::Conversation, PageLimit::rows(10), None)
        .await;
    assert_eq!(unknown.unwrap(), ModelContext::default());
}

pub async fn calls_and_results_of_a_step_are_one_message(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "look", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    let read = context(&turn.store, &Thread::Conversation, PageLimit::rows(10)).await;
    let asked = &read.messages[1];
    assert_eq!(asked.tool_calls, [turn.call(0, 0, Effect::Read)]);
    assert_eq!(asked.tool_results[0].result.as_str(), "\"found\"");
    assert_eq!(asked.agent_execution_id, turn.execution);
}

pub async fn a_summary_stands_for_what_was_compacted(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    for step in 0..2 {
        turn.asks(step, &format!("look {step}"), &[Effect::Read])
            .await;
        turn.runs(step, 0).await;
    }
    let all = contents(&turn.store, 10).await;
    assert_eq!(all, ["user say m", "assistant look 0", "assistant look 1"]);
    // The user's message is event 1; thought, act and observe of step 0 are events 2 to 4.
    compact(&turn, 2, compacted("It was looked.", 1, 2, &["m"])).await;
    let after = ["summary It was looked.", "user say m", "assistant look 1"];
    assert_eq!(contents(&turn.store, 10).await, after);
    let read = context(&turn.store, &Thread::Conversation, PageLimit::rows(10)).await;
    let numbers: Vec<_> = read
        .messages
        .iter()
        .map(|message| message.sequence_number)
        .collect();
    assert_eq!(
        numbers,
        [2, 1, 5],
        "that of a summary is the last event that it stands for"
    );
    assert_eq!(read.messages[0].role, MessageRole::Summary);
    assert_eq!(read.messages[1].id, "m");
    let kept: Vec<_> = read
        .messages
        .iter()
        .map(|message| message.is_kept)
        .collect();
    assert_eq!(kept, [false, true, false]);
    // Saved again, it changes nothing.
    turn.save(2, Batch::Compaction(SaveCompaction {})).await;
    assert_eq!(contents(&turn.store, 10).await, after);
    let data = turn.data("context_compacted").await;
    assert_eq!(data["summary"], "It was looked.");
    assert_eq!(
        (&data["from_sequence"], &data["through_sequence"]),
        (&1.into(), &2.into())
    );
    assert_eq!((&data["messages"], &data["step"]), (&1.into(), &2.into()));
    assert_eq!(
        (&data["input_tokens"], &data["output_tokens"]),
        (&700.into(), &30.into())
    );
    // The next cut replaces the summary, too; and the turn goes on after it.
    compact(&turn, 3, compacted("", 3, 5, &["m"])).await;
    assert_eq!(contents(&turn.store, 10).await, ["summary ", "user say m"]);
    turn.complete(4, "answer", &[]).await;
    turn.end(4, AgentExecutionStatus::Completed).await;
    let complete = turn.data("complete").await;
    assert_eq!(
        complete["input_tokens"],
        700 + 700 + 3 * 100,
        "summaries are paid, too"
    );
    // The next turn begins with the same context.
    Turn::begun(turn.store.clone(), "c", "m2").await;
    let next = ["summary ", "user say m", "assistant answer", "user say m2"];
    assert_eq!(contents(&turn.store, 10).await, next);
    // What was replaced is still served.
    assert_eq!(turn.all_data("observe").await.len(), 2);
}

pub async fn only_what_is_new_is_read_again(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "look 0", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    let thread = Thread::Conversation;
    let read = async |before: Option<ReadBefore>| {
        let limit = PageLimit::rows(10);
        turn.store
            .context("c", &thread, limit, before)
            .await
            .unwrap()
    };
    let first = read(None).await;
    assert!(!first.goes_on && first.messages.len() == 2);
    let before = ReadBefore::of(&first.messages).unwrap();
    let nothing = read(Some(before)).await;
    assert!(nothing.goes_on && nothing.messages.is_empty());
    turn.asks(1, "look 1", &[Effect::Read]).await;
    turn.runs(1, 0).await;
    let second = read(Some(before)).await;
    assert!(second.goes_on);
    assert_eq!(shown(&second), ["assistant look 1"]);
    // Another message has this number: the database went back, and the turn went on in another way.
    let other = ReadBefore {
        last_created_at: before.last_created_at + chrono::TimeDelta::milliseconds(1),
        ..before
    };
    let anew = read(Some(other)).await;
    assert!(!anew.goes_on && anew.messages.len() == 3);
    // The thread was cut anew.
    compact(&turn, 2, compacted("Short.", 1, 2, &["m"])).await;
    let cut = read(Some(before)).await;
    assert!(!cut.goes_on);
    assert_eq!(
        shown(&cut),
        ["summary Short.", "user say m", "assistant look 1"]
    );
    let before = ReadBefore::of(&cut.messages).unwrap();
    assert_eq!((before.cut, before.last_sequence), (2, 5));
    turn.asks(3, "look 3", &[Effect::Read]).await;
    turn.runs(3, 0).await;
    let after = read(Some(before)).await;
    assert!(after.goes_on);
    assert_eq!(shown(&after), ["assistant look 3"]);
    let nothing = ReadBefore::of(&cut.messages[..2]);
    assert_eq!(nothing, None, "nothing after the cut was read");
}

pub async fn a_cut_is_of_its_own_thread(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "look", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    compact(&turn, 1, compacted("Short.", 2, 3, &[])).await;
    let sub_agents = Thread::SubAgent("run_x".into());
    let read = context(&turn.store, &sub_agents, PageLimit::rows(10)).await;
    assert_eq!(read, ModelContext::default());
    // It goes with its conversation.
    turn.end(2, AgentExecutionStatus::Cancelled).await;
    turn.store
        .delete_conversation(&tenant(), "c", None)
        .await
        .unwrap();
    assert!(contents(&turn.store, 10).await.is_empty());
}

pub async fn a_turn_that_ends_before_its_summary_is_saved_does_not_show_it(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.store.claim_step(&turn.step(0), None).await.unwrap();
    let state = compacted("Short.", 1, 1, &["m"]);
    turn.store
        .complete_step(&turn.step(0), state)
        .await
        .unwrap();
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    assert_eq!(turn.types().await, ["user_message", "cancelled"]);
    assert_eq!(contents(&turn.store, 10).await, ["user say m"]);
}

pub async fn only_a_summary_is_saved_as_one(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.complete(0, "answer", &[]).await;
    let request = turn.request(0, Batch::Compaction(SaveCompaction {}));
    let refused = turn.store.save(&request).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict(_))),
        "{refused:?}"
    );
    // Nor is a summary saved as an answer or as a thought.
    let other = Turn::begun(turn.store.clone(), "other", "m").await;
    let claim = other.store.claim_step(&other.step(0), None).await.unwrap();
    assert!(matches!(claim, StepClaim::Call(_)));
    let state = compacted("Short.", 1, 1, &["m"]);
    other
        .store
        .complete_step(&other.step(0), state)
        .await
        .unwrap();
    for batch in [
        Batch::Thought(everturn_proto::turn::SaveThought {}),
        Batch::CutReply(everturn_proto::turn::SaveCutReply {}),
    ] {
        let refused = other.store.save(&other.request(0, batch)).await;
        assert!(
            matches!(refused, Err(StoreError::Conflict(_))),
            "{refused:?}"
        );
    }
}
