//! Sub-agents that end with their parent, or whose workflow is gone.

use everturn_proto::words::{AgentExecutionStatus, Effect, FailureCode};
use everturn_store::{
    AgentExecutions, Conversations, EventReader, ModelCalls, StepClaims, StoreError, ToolClaim,
    ToolClaims,
};

use super::{
    super::{
        Backend,
        fixture::{Turn, data, state, tenant},
    },
    begin, begun, delegates, delegating,
};

pub async fn the_end_of_a_parent_ends_the_tree_below(backend: &impl Backend) {
    let root = delegating(backend, 2).await;
    let middle = begun(&root, 0).await;
    delegates(&middle, &[r#"{"agent": "a", "task": "t"}"#]).await;
    let low = begun(&middle, 0).await;
    low.asks(0, "searching", &[Effect::Once]).await;
    let claim = low.store.claim_tool(&low.tool(0, 0), "a").await.unwrap();
    assert!(
        matches!(&claim, ToolClaim::Run { caller, .. } if caller.depth == 2 && caller.agent == "a"),
        "{claim:?}"
    );
    low.store
        .save_partial(&low.step(1), state("as far as this", vec![]))
        .await
        .unwrap();

    let saved = root.end(1, AgentExecutionStatus::Cancelled).await;
    let ends = root.all_data("cancelled").await;
    let ended: Vec<_> = ends
        .iter()
        .map(|end| end["agent_execution_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ended,
        [low.execution.as_str(), &middle.execution, &root.execution],
        "from below"
    );
    assert!(saved.sealed.contains(&low.sealed(1)), "{:?}", saved.sealed);
    let types = root.types().await;
    let count = |wanted: &str| types.iter().filter(|found| *found == wanted).count();
    assert_eq!(
        (count("act"), count("observe"), count("assistant_message")),
        (4, 4, 1),
        "{types:?}"
    );
    let tree = root
        .store
        .agent_executions(&tenant(), "c", None, None, 10)
        .await
        .unwrap();
    assert!(
        tree.iter()
            .all(|execution| execution.status == AgentExecutionStatus::Cancelled),
        "{tree:?}"
    );
    assert_eq!(
        begin(&root, 1).await.status,
        AgentExecutionStatus::Cancelled,
        "nothing begins after the end"
    );
}

pub async fn an_observe_ends_a_lost_sub_agent(backend: &impl Backend) {
    let root = delegating(backend, 2).await;
    let lost = begun(&root, 0).await;
    lost.asks(0, "searching", &[Effect::Read]).await;
    root.observe(0, 0, "it was terminated").await;
    let error = root.data("error").await;
    assert_eq!(error["code"], FailureCode::SubAgentLost.as_str());
    assert_eq!(error["agent_execution_id"], lost.execution);
    let observe = data(root.events().await.last().unwrap());
    assert!(
        observe["result"]["error"]
            .as_str()
            .unwrap()
            .contains("it was terminated"),
        "{observe}"
    );
    assert!(matches!(
        lost.store.claim_step(&lost.step(1), None).await,
        Err(StoreError::Conflict(_))
    ));
    // A sub-agent that never began has nothing to end.
    root.observe(0, 1, "it could not be started").await;
    let observe = data(root.events().await.last().unwrap());
    assert_eq!(observe["result"]["error"], "it could not be started");
}

/// Both the observe of the call and the end of the parent find the sub-agent.
pub async fn a_lost_sub_agent_ends_though_the_record_of_its_call_is_missing(
    backend: &impl Backend,
) {
    let root = delegating(backend, 2).await;
    let lost = [begun(&root, 0).await, begun(&root, 1).await];
    backend.run("DELETE FROM tool_execution_records").await;
    root.observe(0, 0, "it was terminated").await;
    let error = root.data("error").await;
    assert_eq!(error["agent_execution_id"], lost[0].execution.as_str());
    root.end(0, AgentExecutionStatus::Cancelled).await;
    let types = root.types().await;
    assert_eq!(
        types[types.len() - 5..].join(" "),
        "error observe cancelled observe cancelled"
    );
    let tree = root
        .store
        .agent_executions(&tenant(), "c", None, None, 10)
        .await
        .unwrap();
    assert!(
        tree.iter().all(|execution| execution.finished_at.is_some()),
        "{tree:?}"
    );
}

pub async fn a_lost_turn_ends_with_its_sub_agents(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    let sub = begun(&root, 0).await;
    let point = root
        .store
        .resume_point(&tenant(), "c", 10)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        point.turn.unwrap().message_id,
        "m",
        "a turn is resumed, and its sub-agents with it"
    );
    Turn::begun(root.store.clone(), "c", "m2").await;
    let errors = root.all_data("error").await;
    let codes: Vec<_> = errors
        .iter()
        .map(|error| error["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        codes,
        [FailureCode::SubAgentLost, FailureCode::TurnLost].map(String::from)
    );
    assert_eq!(errors[0]["agent_execution_id"], sub.execution.as_str());
    let status = root
        .store
        .conversation_head(&tenant(), "c")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.current_message_id.as_deref(), Some("m2"));
}
