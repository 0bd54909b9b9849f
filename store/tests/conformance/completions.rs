//! The checkpoints around tools: `tool_start` before each tool, and `tool_complete` after each end.

use everturn_proto::{
    turn::ToolCall,
    words::{AgentExecutionStatus, CheckpointType, Effect, ToolKind},
};
use everturn_store::{AgentExecutions, OutsideTools, ResultSender, StepClaims, ToolClaims};

use super::{
    Backend,
    delegation::{begun, delegating},
    fixture::{Turn, TurnStore, state, tenant, tool_end},
};

/// Returns the numbers of checkpoints before and after a tool execution of step 0.
async fn around<S: TurnStore + AgentExecutions>(turn: &Turn<S>, index: usize) -> (usize, usize) {
    let id = turn.execution_id(0, index);
    let checkpoints = turn
        .store
        .checkpoints(&tenant(), &turn.conversation, &turn.execution, 100)
        .await
        .unwrap();
    let count = |wanted: &CheckpointType| {
        let of_tool = checkpoints
            .iter()
            .filter(|point| point.execution_id.as_ref() == Some(&id));
        of_tool
            .filter(|point| point.checkpoint_type == *wanted && point.step == 0)
            .count()
    };
    (
        count(&CheckpointType::ToolStart),
        count(&CheckpointType::ToolComplete),
    )
}

/// Begins a turn whose first step asked for a worker's tool, a remote tool and a client's tool.
async fn asking<B: Backend>(backend: &B) -> Turn<B::Store> {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let kinds = [ToolKind::Worker, ToolKind::Remote, ToolKind::Client];
    let calls = kinds.iter().enumerate().map(|(index, kind)| ToolCall {
        kind: kind.into(),
        ..turn.call(0, index, Effect::Once)
    });
    let asked = state("look", calls.collect());
    turn.store
        .complete_step(&turn.step(0), asked)
        .await
        .unwrap();
    turn.thought(0).await;
    turn
}

pub async fn each_tool_has_a_checkpoint_before_and_one_after(backend: &impl Backend) {
    let turn = asking(backend).await;
    for index in [0, 1] {
        assert_eq!(around(&turn, index).await, (0, 0));
        turn.store
            .claim_tool(&turn.tool(0, index), "run 1")
            .await
            .unwrap();
        assert_eq!(around(&turn, index).await, (1, 0));
    }
    let rows = backend.row_count().await;
    let (access, remote) = (tenant(), ResultSender::RemoteTool { run_id: "run 1" });
    for (index, sender) in [(1, remote), (2, ResultSender::Client)] {
        let id = turn.execution_id(0, index);
        for _ in 0..2 {
            let end = tool_end("1");
            let stored = turn.store.store_result(&access, "c", &id, sender, end);
            stored.await.unwrap();
        }
    }
    for index in [0, 1] {
        for _ in 0..2 {
            let finished = turn
                .store
                .finish_tool(&turn.tool(0, index), tool_end("2"))
                .await;
            finished.unwrap();
        }
        assert_eq!(around(&turn, index).await, (1, 1));
    }
    // A client's tool begins outside.
    assert_eq!(around(&turn, 2).await, (0, 1));
    assert_eq!(backend.row_count().await, rows + 3);
    for index in 0..3 {
        turn.observe(0, index, "").await;
    }
    assert_eq!(backend.row_count().await, rows + 3 + 3, "only the observes");
}

pub async fn a_tool_that_is_closed_has_a_checkpoint_if_it_began(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[const { Effect::Read }; 3]).await;
    for index in [0, 1] {
        turn.store
            .claim_tool(&turn.tool(0, index), "a")
            .await
            .unwrap();
    }
    turn.observe(0, 0, "the worker died").await;
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    for (index, expected) in [(0, (1, 1)), (1, (1, 1)), (2, (0, 0))] {
        assert_eq!(around(&turn, index).await, expected, "{index}");
    }
}

pub async fn a_sub_agents_call_has_a_checkpoint_before_and_one_after(backend: &impl Backend) {
    let root = delegating(backend, 2).await;
    for index in [0, 1] {
        let sub = begun(&root, index).await;
        assert_eq!(around(&root, index).await, (1, 0));
        if index == 1 {
            backend.run("DELETE FROM tool_execution_records").await;
        }
        sub.complete(0, "found", &[]).await;
        sub.end(0, AgentExecutionStatus::Completed).await;
        root.observe(0, index, "").await;
        assert_eq!(around(&root, index).await, (1, 1), "{index}");
    }
}
