//! What is stored is enough to go on from: checkpoints and what they name, and tool records, also when one is missing.

use everturn_proto::{
    ids,
    turn::ToolCall,
    words::{AgentExecutionStatus, Effect, ToolStatus},
};
use everturn_store::{
    Conversations, StepClaim, StepClaims, StepKey, StoreError, ToolClaim, ToolClaims, ToolEnd,
    ToolKey, TurnInputs,
};

use super::{
    Backend,
    fixture::{Turn, TurnStore, agent, json, state, tenant, tool_end},
};

/// Begins a turn whose first step asked for three tools. The first has ended with this result, the second has only
/// begun, and then the worker is gone.
async fn interrupted<B: Backend>(backend: &B, end: &ToolEnd) -> Turn<B::Store> {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let mut reply = state(
        "looking",
        vec![
            turn.call(0, 0, Effect::Once),
            turn.call(0, 1, Effect::Idempotent),
            turn.call(0, 2, Effect::Once),
        ],
    );
    reply.agent_hash = turn.begin_again().await.agent.unwrap().hash;
    turn.store
        .complete_step(&turn.step(0), reply)
        .await
        .unwrap();
    turn.thought(0).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    turn.store
        .finish_tool(&turn.tool(0, 0), end.clone())
        .await
        .unwrap();
    turn.store.claim_tool(&turn.tool(0, 1), "a").await.unwrap();
    turn
}

/// The checkpoint before a tool is `tool_start`. The checkpoint after the tool, `tool_complete`, names the tool's record.
/// The record holds the end.
pub async fn checkpoints_and_what_they_name_are_enough_to_go_on(backend: &impl Backend) {
    let end = tool_end("\"found\"");
    let turn = interrupted(backend, &end).await;
    // The other worker knows the conversation's id, and nothing else.
    let store = backend.open().await;
    let point = store.resume_point(&tenant(), "c", 10).await;
    let unfinished = point.unwrap().unwrap().turn.unwrap();
    let step = StepKey {
        conversation_id: "c".into(),
        agent_execution_id: ids::root_agent_execution_id("c", &unfinished.message_id),
        message_id: unfinished.message_id,
        step: unfinished.checkpoint_step.unwrap(),
        epoch: None,
    };
    let StepClaim::Stored(reply) = store.claim_step(&step, None).await.unwrap() else {
        panic!("the call was paid")
    };
    let pinned = store.agent_definition(&reply.agent_hash).await;
    assert_eq!(pinned.unwrap(), Some(agent()));
    let claims = claim_all(&store, &step, &reply.tool_calls).await;
    let [
        ToolClaim::Ended(ended),
        ToolClaim::Run { record: again, .. },
        ToolClaim::Run { record: first, .. },
    ] = &claims[..]
    else {
        panic!("{claims:?}")
    };
    assert_eq!(ended.end, Some(end));
    assert_eq!((again.attempt, first.attempt), (2, 1));
    assert_eq!(first.call, turn.call(0, 2, Effect::Once));

    let resumed = Turn { store, ..turn };
    for index in 0..reply.tool_calls.len() {
        let key = resumed.tool(0, index);
        let finished = resumed.store.finish_tool(&key, tool_end("1")).await;
        assert!(finished.is_ok());
        resumed.observe(0, index, "").await;
    }
    resumed.complete(1, "answer", &[]).await;
    resumed.end(1, AgentExecutionStatus::Completed).await;
    let types = resumed.types().await;
    assert_eq!(
        types.join(" "),
        "user_message thought act act act observe observe observe assistant_message complete"
    );
}

async fn claim_all(store: &impl TurnStore, step: &StepKey, calls: &[ToolCall]) -> Vec<ToolClaim> {
    let mut claims = Vec::new();
    for call in calls {
        let claim = store.claim_tool(&tool_of(step, call), "b").await;
        claims.push(claim.unwrap());
    }
    claims
}

fn tool_of(step: &StepKey, call: &ToolCall) -> ToolKey {
    ToolKey {
        conversation_id: step.conversation_id.clone(),
        message_id: step.message_id.clone(),
        agent_execution_id: step.agent_execution_id.clone(),
        step: step.step,
        execution_id: call.execution_id.clone(),
        epoch: step.epoch,
    }
}

pub async fn a_record_that_is_missing_is_made_when_its_tool_ends(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Once, Effect::Once, Effect::Read])
        .await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    backend.run("DELETE FROM tool_execution_records").await;

    // Without its record nobody knows whether a tool may run.
    let refused = turn.store.claim_tool(&turn.tool(0, 1), "a").await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );

    let mut end = tool_end("\"found\"");
    end.full_result = Some(json("\"found, and all of it\""));
    let key = turn.tool(0, 0);
    let made = turn.store.finish_tool(&key, end.clone()).await.unwrap();
    assert_eq!(made.call, turn.call(0, 0, Effect::Once));
    assert_eq!(
        (made.status.clone(), made.end.clone()),
        (ToolStatus::Completed, Some(end))
    );
    let second = turn.store.finish_tool(&key, tool_end("2")).await.unwrap();
    assert_eq!(second, made, "the first end wins");
    let claim = turn.store.claim_tool(&key, "b").await.unwrap();
    assert_eq!(claim, ToolClaim::Ended(made));

    // Both a tool that left no end, and one that the end of the turn closes, may have run.
    turn.observe(0, 0, "").await;
    turn.observe(0, 1, "the worker died").await;
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    let types = turn.types().await;
    assert_eq!(
        types.join(" "),
        "user_message thought act act act observe observe observe cancelled"
    );
    for (index, status) in [(1, ToolStatus::OutcomeUnknown), (2, ToolStatus::Cancelled)] {
        let claim = turn
            .store
            .claim_tool(&turn.tool(0, index), "b")
            .await
            .unwrap();
        assert!(
            matches!(&claim, ToolClaim::Ended(record) if record.status == status),
            "{claim:?}"
        );
    }
}
