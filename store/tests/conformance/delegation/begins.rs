//! Which calls of `delegate` get a sub-agent, and what the sub-agent sees.

use everturn_proto::{
    Thread,
    words::{AgentExecutionStatus, Effect, MessageRole},
};
use everturn_store::{
    AgentExecutions, EventReader, OnUnknownAgent, PageLimit, StoreError, TurnInputs, Turns,
    WantedLinks,
};

use super::{
    super::{
        Backend,
        fixture::{data, tenant},
    },
    agents, begin, begun, child, delegates, delegating, turn_of_a,
};

pub async fn a_sub_agent_begins_once(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    let first = begin(&root, 0).await;
    assert_eq!(
        (
            first.status.clone(),
            first
                .agent
                .as_ref()
                .map(|agent| agent.definition.name.as_str())
        ),
        (AgentExecutionStatus::Running, Some("b"))
    );
    let rows = backend.row_count().await;
    let again = begin(&root, 0).await;
    assert_eq!(
        (again.agent, again.last_sequence),
        (first.agent, first.last_sequence)
    );
    assert_eq!(backend.row_count().await, rows);
    let start = root.data("sub_agent_start").await;
    let sub = child(&root, &root.execution_id(0, 0));
    assert_eq!(
        (&start["agent"], &start["task"], &start["depth"]),
        (&"b".into(), &"look".into(), &1.into())
    );
    assert_eq!(start["agent_execution_id"], sub.execution.as_str());
    assert_eq!(start["parent_execution_id"], root.execution.as_str());
    assert_eq!(start["execution_id"], root.execution_id(0, 0).as_str());
    let wanted = WantedLinks {
        agent_executions: vec![root.execution.clone(), sub.execution.clone()],
        ..WantedLinks::default()
    };
    let log = root.conversation().await.log();
    let access = tenant();
    let links = root.store.event_links(&access, &log, &wanted).await;
    let call_id = start["call_id"].as_str().unwrap().to_owned();
    assert_eq!(
        links.unwrap().parent_calls,
        [(sub.execution, call_id)].into()
    );
}

pub async fn a_sub_agent_has_its_own_context(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    let sub = begun(&root, 0).await;
    let sub_thread = Thread::SubAgent(sub.execution.clone());
    let own = root
        .store
        .context("c", &sub_thread, PageLimit::rows(10), None)
        .await
        .unwrap()
        .messages;
    assert_eq!(
        (own.len(), &own[0].role, own[0].content.as_str()),
        (1, &MessageRole::User, "look")
    );
    sub.asks(0, "searching", &[Effect::Read]).await;
    sub.runs(0, 0).await;
    assert_eq!(
        root.store
            .context("c", &sub_thread, PageLimit::rows(10), None)
            .await
            .unwrap()
            .messages
            .len(),
        2
    );
    let of_root = root
        .store
        .context("c", &Thread::Conversation, PageLimit::rows(10), None)
        .await
        .unwrap()
        .messages;
    let texts: Vec<_> = of_root
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!(
        texts,
        ["share this out", "sharing"],
        "a parent does not see what its sub-agent does"
    );
    let conversation = root.conversation().await;
    assert_eq!(
        conversation.message_count, 1,
        "a task is no message of the conversation"
    );
}

pub async fn a_call_that_may_not_have_one_is_ended(backend: &impl Backend) {
    let refused = [
        (r#"{"agent": "b"}"#, "arguments"),
        (r#"{"agent": "b", "task": " "}"#, "empty"),
        (r#"{"agent": "stranger", "task": "t"}"#, "stranger"),
        (r#"{"agent": "gone", "task": "t"}"#, "configured"),
    ];
    let turn = turn_of_a(backend.open().await).await;
    delegates(&turn, &refused.map(|(input, _)| input)).await;
    for (index, (_, why)) in refused.iter().enumerate() {
        assert_eq!(
            begin(&turn, index).await.status,
            AgentExecutionStatus::Failed
        );
        turn.observe(0, index, "").await;
        let observe = data(turn.events().await.last().unwrap());
        assert!(
            observe["result"]["error"].as_str().unwrap().contains(why),
            "{observe}"
        );
    }
    assert_eq!(
        turn.store
            .agent_executions(&tenant(), "c", None, None, 10)
            .await
            .unwrap()
            .len(),
        1,
        "none of them began"
    );
    let unknown = turn
        .store
        .begin_sub_agent(&turn.tool(5, 5), &agents(), OnUnknownAgent::Begin)
        .await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound { .. })),
        "{unknown:?}"
    );
}

/// Agent `a` allows two levels and four sub-agents.
pub async fn the_depth_and_the_number_of_sub_agents_are_limited(backend: &impl Backend) {
    let failed = AgentExecutionStatus::Failed;
    let task = r#"{"agent": "b", "task": "t"}"#;
    let top = turn_of_a(backend.open().await).await;
    delegates(&top, &[task]).await;
    let middle = begun(&top, 0).await;
    delegates(&middle, &[task; 4]).await;
    let low = begun(&middle, 0).await;
    delegates(&low, &[task]).await;
    assert_eq!(begin(&low, 0).await.status, failed, "too deep");
    for index in 1..3 {
        begun(&middle, index).await;
    }
    assert_eq!(begin(&middle, 3).await.status, failed, "too many");
}
