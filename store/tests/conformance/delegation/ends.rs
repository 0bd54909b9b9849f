//! How the end of a sub-agent ends the call that started it, and the one order of everything that the two write
//! (invariant 2, one order).

use everturn_proto::{
    Thread,
    limits::TOOL_RESULT_INLINE_BYTES,
    turn::{SaveEnd, save_request::Batch},
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{PageLimit, ToolClaim, ToolClaims, TurnInputs};
use tokio::task::JoinSet;

use super::{
    super::{Backend, fixture::Turn},
    begin, begun, delegating,
};

pub async fn its_end_ends_the_call_that_started_it(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    let sub = begun(&root, 0).await;
    let long = "x".repeat(2 * TOOL_RESULT_INLINE_BYTES);
    sub.complete(0, &long, &[]).await;
    sub.end(0, AgentExecutionStatus::Completed).await;
    let ToolClaim::Ended(record) = root.store.claim_tool(&root.tool(0, 0), "a").await.unwrap()
    else {
        panic!("the answer is the call's result");
    };
    let end = record.end.unwrap();
    assert_eq!(end.result.to_value()["truncated"], true);
    assert_eq!(
        end.full_result.unwrap().to_value(),
        long.as_str(),
        "kept whole by reference"
    );
    root.observe(0, 0, "").await;
    let conversation = root.conversation().await;
    assert_eq!(
        conversation.message_count, 1,
        "a sub-agent's answer is no message of the conversation"
    );
    assert_eq!(
        begin(&root, 0).await.status,
        AgentExecutionStatus::Completed,
        "it does not begin again"
    );
}

pub async fn a_parent_is_told_how_its_sub_agents_ended(backend: &impl Backend) {
    let root = delegating(backend, 3).await;
    let ends = [
        AgentExecutionStatus::Completed,
        AgentExecutionStatus::Failed,
        AgentExecutionStatus::Cancelled,
    ];
    for (index, status) in ends.into_iter().enumerate() {
        let sub = begun(&root, index).await;
        if status == AgentExecutionStatus::Completed {
            sub.complete(0, "found", &[]).await;
        }
        sub.end(0, status).await;
        root.observe(0, index, "").await;
    }
    let observes = root.all_data("observe").await;
    assert_eq!(
        observes
            .iter()
            .map(|observe| observe["is_error"].clone())
            .collect::<Vec<_>>(),
        [false, true, true]
    );
    for (index, told) in [(1, "a_code"), (2, "cancelled")] {
        assert!(
            observes[index]["result"]["error"]
                .as_str()
                .unwrap()
                .contains(told),
            "{}",
            observes[index]
        );
    }
}

pub async fn a_call_whose_record_is_missing_keeps_the_answer(backend: &impl Backend) {
    let root = delegating(backend, 2).await;
    let sub = begun(&root, 1).await;
    let asked = root
        .store
        .context("c", &Thread::Conversation, PageLimit::rows(10), None)
        .await;
    let call = asked.unwrap().messages[1].tool_calls[1].clone();
    backend.run("DELETE FROM tool_execution_records").await;
    sub.complete(0, "found", &[]).await;
    sub.end(0, AgentExecutionStatus::Completed).await;

    let claim = root.store.claim_tool(&root.tool(0, 1), "a").await.unwrap();
    let ToolClaim::Ended(record) = claim else {
        panic!("{claim:?}")
    };
    assert_eq!(record.call, call);
    assert_eq!(record.end.unwrap().result.to_value(), "found");
    root.observe(0, 1, "").await;
    let observe = root.data("observe").await;
    assert_eq!(
        (&observe["result"], &observe["is_error"]),
        (&"found".into(), &false.into())
    );
    let rows = backend.row_count().await;
    root.observe(0, 1, "").await;
    assert_eq!(backend.row_count().await, rows);
}

pub async fn sub_agents_write_at_once(backend: &impl Backend) {
    let root = delegating(backend, 4).await;
    let handles = [root.store.clone(), backend.open().await];
    let mut tasks = JoinSet::new();
    for index in 0..4 {
        let parent = Turn {
            store: handles[index % 2].clone(),
            ..root.clone()
        };
        tasks.spawn(async move {
            let sub = begun(&parent, index).await;
            for step in 0..5 {
                sub.asks(step, "searching", &[Effect::Read, Effect::Once])
                    .await;
                sub.runs(step, 0).await;
                sub.runs(step, 1).await;
            }
            sub.complete(5, "found", &[]).await;
            let end = SaveEnd {
                status: AgentExecutionStatus::Completed.into(),
                ..SaveEnd::default()
            };
            sub.save(5, Batch::End(end)).await;
            parent.observe(0, index, "").await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let types = root.types().await;
    let count = |wanted: &str| types.iter().filter(|found| *found == wanted).count();
    let counts = ["sub_agent_start", "thought", "act", "observe", "complete"].map(count);
    assert_eq!(counts, [4, 1 + 4 * 5, 4 + 4 * 10, 4 + 4 * 10, 4]);
}
