//! Whole results of tools, read in slices.

use everturn_proto::{Json, Thread, ids, limits::TOOL_RESULT_INLINE_BYTES, words::Effect};
use everturn_store::{
    Access, BeginTurn, OnUnknownAgent, ResultRange, ResultSlice, StepClaims, ToolEnd, ToolResults,
    Turns,
};

use super::{
    Backend,
    fixture::{Turn, TurnStore, delegating_agent, json, state, tenant},
};

/// Reads the whole result in slices of `max_bytes`. Returns it, and the number of slices.
async fn read_whole<S: ToolResults>(
    store: &S,
    conversation: &str,
    execution: &str,
    max_bytes: u32,
) -> (String, usize) {
    let (mut whole, mut slices, mut next) = (String::new(), 0, Some(0));
    while let Some(offset_bytes) = next {
        let range = ResultRange::new(offset_bytes, max_bytes);
        let slice = store
            .tool_result(&tenant(), conversation, execution, range)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(slice.offset_bytes, offset_bytes);
        assert!(slice.text.len() <= max_bytes as usize);
        whole.push_str(&slice.text);
        slices += 1;
        next = slice.next_offset_bytes();
    }
    (whole, slices)
}

/// Runs a turn whose tool gave this result.
async fn with_result<S>(store: S, conversation: &str, result: &Json) -> Turn<S>
where
    S: TurnStore,
{
    let turn = Turn::begun(store, conversation, "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let end = ToolEnd::of_result(&turn.execution_id(0, 0), result.clone(), false, 1);
    turn.store.finish_tool(&turn.tool(0, 0), end).await.unwrap();
    turn
}

pub async fn a_whole_result_is_read_in_slices(backend: &impl Backend) {
    let store = backend.open().await;
    let text = "aü€\u{1f600}\n\"\\".repeat(TOOL_RESULT_INLINE_BYTES);
    let turn = with_result(store.clone(), "long", &Json::of(&text)).await;
    let (whole, slices) = read_whole(&store, "long", &turn.execution_id(0, 0), 100_001).await;
    assert_eq!((whole, slices), (text, 3), "a string is read as its text");

    let nested = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let turn = with_result(store.clone(), "nested", &json(&nested)).await;
    let (whole, _) = read_whole(&store, "nested", &turn.execution_id(0, 0), 4_000).await;
    assert_eq!(whole, nested, "anything else is read as its JSON");

    for (conversation, small) in [
        ("null", "null"),
        ("number", "-0.10"),
        ("list", "[\"a\", 1]"),
    ] {
        let turn = with_result(store.clone(), conversation, &json(small)).await;
        let (whole, _) = read_whole(&store, conversation, &turn.execution_id(0, 0), 9).await;
        assert_eq!(whole, small, "what was not cut is read as well");
    }
}

pub async fn a_slice_may_begin_anywhere(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = with_result(store.clone(), "c", &Json::of(&"aü€\u{1f600}z")).await;
    let execution = turn.execution_id(0, 0);
    let slice = async |offset_bytes, max_bytes| {
        let range = ResultRange::new(offset_bytes, max_bytes);
        let slice = store.tool_result(&tenant(), "c", &execution, range).await;
        slice.unwrap()
    };
    let expected = |text: &str, offset_bytes| {
        Some(ResultSlice {
            text: text.into(),
            offset_bytes,
            total_bytes: 11,
        })
    };
    assert_eq!(slice(0, 4).await, expected("aü", 0));
    assert_eq!(slice(2, 5).await, expected("€", 3));
    assert_eq!(slice(6, 1).await, expected("\u{1f600}", 6));
    assert_eq!(slice(10, 99).await, expected("z", 10));
    assert_eq!(slice(u32::MAX, 99).await, expected("", 11));
}

pub async fn a_result_is_read_by_those_who_may(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = with_result(store.clone(), "c", &json("1")).await;
    let (execution, all) = (turn.execution_id(0, 0), ResultRange::new(0, 100));
    let read = async |access: &Access, conversation: &str, execution: &str| {
        let slice = store
            .tool_result(access, conversation, execution, all)
            .await;
        slice.unwrap().map(|slice| slice.text)
    };
    assert_eq!(read(&tenant(), "c", &execution).await.as_deref(), Some("1"));
    assert_eq!(
        read(&Access::tenant("another"), "c", &execution).await,
        None
    );
    assert_eq!(
        read(&Access::owner("default", "o"), "c", &execution).await,
        None
    );
    assert_eq!(read(&tenant(), "another", &execution).await, None);
    assert_eq!(read(&tenant(), "c", "exec_none").await, None);

    turn.asks(1, "", &[Effect::Read]).await;
    let open = turn.execution_id(1, 0);
    assert_eq!(
        read(&tenant(), "c", &open).await,
        None,
        "it has no result yet"
    );
}

/// A model reads the results that are in its context, which are those of its own thread.
pub async fn a_model_reads_results_of_its_thread(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = Turn::new(store.clone(), "c", "m");
    let agent = delegating_agent();
    let agents = [("default".to_owned(), agent.clone())].into();
    let begin = BeginTurn {
        agent,
        ..turn.begin("share")
    };
    store.begin_turn(begin).await.unwrap();
    let calls = vec![turn.call(0, 0, Effect::Read), turn.delegate_call(0, 1)];
    store
        .complete_step(&turn.step(0), state("", calls))
        .await
        .unwrap();
    turn.thought(0).await;
    turn.runs(0, 0).await;
    let delegation = turn.tool(0, 1);
    store
        .begin_sub_agent(&delegation, &agents, OnUnknownAgent::Begin)
        .await
        .unwrap();
    let sub_agent = Turn {
        execution: ids::sub_agent_execution_id("c", &delegation.execution_id),
        ..turn.clone()
    };
    sub_agent.asks(0, "", &[Effect::Read]).await;
    sub_agent.runs(0, 0).await;

    let sub_agents = Thread::SubAgent(sub_agent.execution.clone());
    let read = async |thread: &Thread, execution: String| {
        let range = ResultRange::new(0, 100);
        let slice = store
            .tool_result_of_thread("c", thread, &execution, range)
            .await;
        slice.unwrap().map(|slice| slice.text)
    };
    let found = Some("found".to_owned());
    let (own, other) = (turn.execution_id(0, 0), sub_agent.execution_id(0, 0));
    assert_eq!(read(&Thread::Conversation, own.clone()).await, found);
    assert_eq!(read(&Thread::Conversation, other.clone()).await, None);
    assert_eq!(read(&sub_agents, own).await, None);
    assert_eq!(read(&sub_agents, other).await, found);
}
