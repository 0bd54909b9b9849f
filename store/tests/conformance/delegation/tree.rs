//! The list of a conversation's agent executions.

use everturn_proto::words::{AgentExecutionStatus, ApprovalState, CheckpointType, ToolStatus};
use everturn_store::{Access, AgentExecution, AgentExecutionCursor, AgentExecutions};

use super::{
    super::{
        Backend,
        fixture::{NEWEST_CALL, Turn, tenant},
    },
    begun, delegating,
};

/// Runs a turn with two sub-agents to their ends. Returns it, and its agent execution and theirs as they are listed.
async fn tree<B: Backend>(backend: &B) -> (Turn<B::Store>, Vec<AgentExecution>) {
    let root = delegating(backend, 2).await;
    for index in 0..2 {
        // They are ordered by their times, which are stored to the millisecond.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let sub = begun(&root, index).await;
        sub.complete(0, "found", &[]).await;
        sub.end(0, AgentExecutionStatus::Completed).await;
    }
    let all = page(&root.store, &tenant(), None, 10).await;
    (root, all)
}

async fn page(
    store: &impl AgentExecutions,
    access: &Access,
    after: Option<&AgentExecution>,
    limit: u32,
) -> Vec<AgentExecution> {
    let after = after.map(|row| AgentExecutionCursor {
        started_at: row.started_at,
        id: row.id.clone(),
    });
    store
        .agent_executions(access, "c", None, after, limit)
        .await
        .unwrap()
}

pub async fn agent_executions_are_a_tree(backend: &impl Backend) {
    let (root, all) = tree(backend).await;
    let depths: Vec<_> = all.iter().map(|execution| execution.depth).collect();
    assert_eq!(depths, [0, 1, 1]);
    assert_eq!(
        (
            all[0].parent_execution_id.as_deref(),
            &all[0].parent_call,
            all[0].finished_at
        ),
        (None, &None, None)
    );
    for (index, sub) in all[1..].iter().enumerate() {
        assert_eq!(sub.parent_execution_id.as_ref(), Some(&root.execution));
        assert_eq!(
            (&sub.root_execution_id, sub.agent.as_str()),
            (&root.execution, "b")
        );
        assert_eq!(
            (
                sub.steps,
                sub.spent.usage.input_tokens,
                sub.spent.usage.output_tokens
            ),
            (1, 100, 10)
        );
        assert!(sub.finished_at.is_some());
        let call = sub.parent_call.as_ref().unwrap();
        assert_eq!(
            (&call.execution_id, call.tool_name.as_str()),
            (&root.execution_id(0, index), "delegate")
        );
        assert_eq!(call.tool_input.to_value()["task"], "look");
    }
}

pub async fn agent_executions_are_paged(backend: &impl Backend) {
    let (root, all) = tree(backend).await;
    let store = &root.store;
    assert_eq!(page(store, &tenant(), Some(&all[0]), 1).await, all[1..2]);
    assert_eq!(page(store, &tenant(), Some(&all[2]), 1).await, []);
    let one = store.agent_execution(&tenant(), "c", &all[1].id).await;
    assert_eq!(one.unwrap().as_ref(), Some(&all[1]));
    let access = tenant();
    let turn = store.agent_executions(&access, "c", Some(&all[0].message_id), None, 10);
    assert_eq!(turn.await.unwrap(), all);
    let other_turn = store.agent_executions(&access, "c", Some("m-other"), None, 10);
    assert_eq!(other_turn.await.unwrap(), []);
    let of_another_conversation = store.agent_execution(&tenant(), "d", &all[1].id).await;
    assert_eq!(of_another_conversation.unwrap(), None);
}

pub async fn an_agent_execution_has_its_checkpoints_and_tool_calls(backend: &impl Backend) {
    let (root, all) = tree(backend).await;
    let store = &root.store;
    let checkpoints = store.checkpoints(&tenant(), "c", &root.execution, 10).await;
    let checkpoints = checkpoints.unwrap();
    let reply = &checkpoints[0];
    assert_eq!(
        (&reply.checkpoint_type, reply.step, reply.generation),
        (&CheckpointType::LlmComplete, 0, NEWEST_CALL)
    );
    assert_eq!(reply.execution_id, None);
    let tools = store
        .tool_executions(&tenant(), "c", &root.execution, 10)
        .await;
    let tools = tools.unwrap();
    let ids: Vec<_> = tools.iter().map(|tool| tool.execution_id.clone()).collect();
    assert_eq!(ids, [root.execution_id(0, 0), root.execution_id(0, 1)]);
    assert_eq!(
        (&tools[0].status, &tools[0].approval, tools[0].step),
        (&ToolStatus::Completed, &ApprovalState::NotNeeded, 0)
    );
    let newest = store
        .tool_executions(&tenant(), "c", &root.execution, 1)
        .await;
    assert_eq!(newest.unwrap(), tools[1..]);
    for (access, conversation) in [(Access::tenant("another"), "c"), (tenant(), "d")] {
        let id = &all[0].id;
        let checkpoints = store.checkpoints(&access, conversation, id, 10).await;
        assert_eq!(checkpoints.unwrap(), []);
        let tools = store.tool_executions(&access, conversation, id, 10).await;
        assert_eq!(tools.unwrap(), []);
    }
}

pub async fn a_stranger_sees_no_agent_execution(backend: &impl Backend) {
    let (root, all) = tree(backend).await;
    let stranger = Access::tenant("another");
    assert_eq!(page(&root.store, &stranger, None, 10).await, []);
    let one = root.store.agent_execution(&stranger, "c", &all[1].id).await;
    assert_eq!(one.unwrap(), None);
}
