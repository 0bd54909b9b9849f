//! Sub-agents: their begin, their end, their place in the one order (invariant 2).

use std::collections::BTreeMap;

use everturn_proto::{
    Thread, ids,
    limits::TOOL_RESULT_INLINE_BYTES,
    turn::{AgentDefinition, AgentTool, SaveEnd, ToolCall, save_request::Batch},
    words::{AgentExecutionStatus, Effect, MessageRole, ToolKind, failure},
};
use everturn_store::{
    Access, AgentExecutionPlace, AgentExecutions, BegunTurn, Conversations, EventReader,
    StoreError, ToolClaim, TurnStore,
};
use tokio::task::JoinSet;

use super::{
    Backend,
    fixture::{Turn, data, json, state, tenant},
};

/// Agents `a` and `b`, which may delegate to each other.
fn agents() -> BTreeMap<String, AgentDefinition> {
    let delegate = AgentTool {
        name: "delegate".into(),
        kind: ToolKind::Delegate.into(),
        delegates: vec!["a".into(), "b".into(), "gone".into()],
        ..AgentTool::default()
    };
    let agent = |name: &str| AgentDefinition {
        name: name.into(),
        model: "m1".into(),
        tools: vec![delegate.clone()],
        max_depth: 2,
        max_sub_agents: 4,
        ..AgentDefinition::default()
    };
    ["a", "b"].map(|name| (name.to_owned(), agent(name))).into()
}

/// A turn of agent `a` whose first step asked for `calls` sub-agents.
async fn delegating<B: Backend>(backend: &B, calls: usize) -> Turn<B::Store> {
    let turn = Turn::new(backend.open().await, "c", "m");
    let begin = everturn_store::BeginTurn {
        agent: agents()["a"].clone(),
        ..turn.begin("share this out")
    };
    turn.store.begin_turn(begin).await.unwrap();
    delegates(&turn, &vec![r#"{"agent": "b", "task": "look"}"#; calls]).await;
    turn
}

/// The execution asks for a sub-agent with each of these inputs.
async fn delegates<S: EventReader + Conversations + TurnStore>(turn: &Turn<S>, inputs: &[&str]) {
    let call = |(index, input): (usize, &&str)| ToolCall {
        tool_name: "delegate".into(),
        kind: ToolKind::Delegate.into(),
        tool_input: Some(json(input)),
        ..turn.call(0, index, Effect::Idempotent)
    };
    let calls = inputs.iter().enumerate().map(call).collect();
    turn.store
        .complete_step(&turn.step(0), state("sharing", calls))
        .await
        .unwrap();
    turn.thought(0).await;
}

async fn begin<S: TurnStore + EventReader + Conversations>(
    parent: &Turn<S>,
    index: usize,
) -> BegunTurn {
    parent
        .store
        .begin_sub_agent(&parent.tool(0, index), &agents())
        .await
        .unwrap()
}

/// The sub-agent of a call, as a turn whose execution is the sub-agent's.
fn child<S: Clone>(parent: &Turn<S>, execution_id: &str) -> Turn<S> {
    let execution = ids::sub_agent_execution_id(&parent.conversation, execution_id);
    Turn {
        execution,
        ..parent.clone()
    }
}

/// Begins the sub-agent of a call, which must be possible.
async fn begun<S: TurnStore + EventReader + Conversations + Clone>(
    parent: &Turn<S>,
    index: usize,
) -> Turn<S> {
    assert_eq!(
        begin(parent, index).await.status,
        AgentExecutionStatus::Running
    );
    child(parent, &parent.execution_id(0, index))
}

pub async fn a_sub_agent_begins_once_with_its_own_context(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    let first = begin(&root, 0).await;
    assert_eq!(
        (first.status.clone(), first.agent.name.as_str()),
        (AgentExecutionStatus::Running, "b")
    );
    let rows = backend.row_count().await;
    let again = begin(&root, 0).await;
    assert_eq!(
        (again.agent_hash, again.last_sequence),
        (first.agent_hash, first.last_sequence)
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

    let sub_thread = Thread::SubAgent(sub.execution.clone());
    let own = root.store.context("c", &sub_thread, 10).await.unwrap();
    assert_eq!(
        (own.len(), &own[0].role, own[0].content.as_str()),
        (1, &MessageRole::User, "look")
    );
    sub.asks(0, "searching", &[Effect::Read]).await;
    sub.runs(0, 0).await;
    assert_eq!(
        root.store
            .context("c", &sub_thread, 10)
            .await
            .unwrap()
            .len(),
        2
    );
    let of_root = root
        .store
        .context("c", &Thread::Conversation, 10)
        .await
        .unwrap();
    let texts: Vec<_> = of_root
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!(
        texts,
        ["share this out", "sharing"],
        "a parent does not see what its sub-agent does"
    );
    let conversation = root
        .store
        .conversation(&tenant(), "c")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        conversation.message_count, 1,
        "a task is no message of the conversation"
    );
}

pub async fn its_end_ends_the_call_that_started_it(backend: &impl Backend) {
    let root = delegating(backend, 3).await;
    let long = "x".repeat(2 * TOOL_RESULT_INLINE_BYTES);
    let subs = [
        begun(&root, 0).await,
        begun(&root, 1).await,
        begun(&root, 2).await,
    ];
    subs[0].complete(0, &long, &[]).await;
    subs[0].end(0, AgentExecutionStatus::Completed).await;
    subs[1].end(0, AgentExecutionStatus::Failed).await;
    subs[2].end(0, AgentExecutionStatus::Cancelled).await;
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
    for index in 0..3 {
        root.observe(0, index, "").await;
    }
    let events = root.events().await;
    let observes: Vec<_> = events
        .iter()
        .filter(|event| event.event_type == "observe")
        .map(data)
        .collect();
    assert_eq!(
        observes
            .iter()
            .map(|o| o["is_error"].clone())
            .collect::<Vec<_>>(),
        [false, true, true]
    );
    assert!(
        observes[1]["result"]["error"]
            .as_str()
            .unwrap()
            .contains("a_code"),
        "{}",
        observes[1]
    );
    assert!(
        observes[2]["result"]["error"]
            .as_str()
            .unwrap()
            .contains("cancelled"),
        "{}",
        observes[2]
    );
    let conversation = root
        .store
        .conversation(&tenant(), "c")
        .await
        .unwrap()
        .unwrap();
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

pub async fn a_call_that_may_not_have_one_is_ended(backend: &impl Backend) {
    let failed = AgentExecutionStatus::Failed;
    let root = delegating(backend, 1).await;
    let refused = [
        (r#"{"agent": "b"}"#, "arguments"),
        (r#"{"agent": "b", "task": " "}"#, "empty"),
        (r#"{"agent": "stranger", "task": "t"}"#, "stranger"),
        (r#"{"agent": "gone", "task": "t"}"#, "configured"),
    ];
    let other = Turn::new(root.store.clone(), "d", "m");
    let begin_other = everturn_store::BeginTurn {
        agent: agents()["a"].clone(),
        ..other.begin("go")
    };
    root.store.begin_turn(begin_other).await.unwrap();
    delegates(&other, &refused.map(|(input, _)| input)).await;
    for (index, (_, why)) in refused.iter().enumerate() {
        assert_eq!(begin(&other, index).await.status, failed);
        other.observe(0, index, "").await;
        let observe = data(other.events().await.last().unwrap());
        assert!(
            observe["result"]["error"].as_str().unwrap().contains(why),
            "{observe}"
        );
    }
    assert_eq!(
        root.store
            .agent_executions(&tenant(), "d", None, 10)
            .await
            .unwrap()
            .len(),
        1,
        "none of them began"
    );

    // Two levels and four sub-agents are allowed.
    let task = r#"{"agent": "b", "task": "t"}"#;
    let top = Turn::new(root.store.clone(), "e", "m");
    let begin_top = everturn_store::BeginTurn {
        agent: agents()["a"].clone(),
        ..top.begin("go")
    };
    root.store.begin_turn(begin_top).await.unwrap();
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
    let unknown = root
        .store
        .begin_sub_agent(&root.tool(5, 5), &agents())
        .await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound { .. })),
        "{unknown:?}"
    );
}

pub async fn the_end_of_a_parent_ends_the_tree_below(backend: &impl Backend) {
    let root = delegating(backend, 2).await;
    let middle = begun(&root, 0).await;
    delegates(&middle, &[r#"{"agent": "a", "task": "t"}"#]).await;
    let low = begun(&middle, 0).await;
    low.asks(0, "searching", &[Effect::Once]).await;
    let claim = low.store.claim_tool(&low.tool(0, 0), "a").await.unwrap();
    assert!(
        matches!(&claim, ToolClaim::Run(record) if record.depth == 2),
        "{claim:?}"
    );
    low.store
        .save_partial(&low.step(1), state("as far as this", vec![]))
        .await
        .unwrap();

    let saved = root.end(1, AgentExecutionStatus::Cancelled).await;
    let ends: Vec<_> = root
        .events()
        .await
        .iter()
        .filter(|e| e.event_type == "cancelled")
        .map(data)
        .collect();
    let ended: Vec<_> = ends
        .iter()
        .map(|end| end["agent_execution_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ended,
        [low.execution.as_str(), &middle.execution, &root.execution],
        "from below"
    );
    assert!(
        saved.sealed.contains(&(low.execution.clone(), 1)),
        "{:?}",
        saved.sealed
    );
    let types = root.types().await;
    let count = |wanted: &str| types.iter().filter(|found| *found == wanted).count();
    assert_eq!(
        (count("act"), count("observe"), count("assistant_message")),
        (4, 4, 1),
        "{types:?}"
    );
    let tree = root
        .store
        .agent_executions(&tenant(), "c", None, 10)
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
    assert_eq!(
        (&error["code"], &error["agent_execution_id"]),
        (
            &failure::SUB_AGENT_LOST.into(),
            &lost.execution.as_str().into()
        )
    );
    let observe = data(root.events().await.last().unwrap());
    assert!(
        observe["result"]["error"]
            .as_str()
            .unwrap()
            .contains("it was terminated"),
        "{observe}"
    );
    assert!(matches!(
        lost.store.claim_step(&lost.step(1)).await,
        Err(StoreError::Conflict(_))
    ));
    // One that never began has nothing to end.
    root.observe(0, 1, "it could not be started").await;
    let observe = data(root.events().await.last().unwrap());
    assert_eq!(observe["result"]["error"], "it could not be started");
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
    let events = root.events().await;
    let errors: Vec<_> = events
        .iter()
        .filter(|event| event.event_type == "error")
        .map(data)
        .collect();
    let codes: Vec<_> = errors
        .iter()
        .map(|error| error["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, [failure::SUB_AGENT_LOST, failure::TURN_LOST]);
    assert_eq!(errors[0]["agent_execution_id"], sub.execution.as_str());
    let status = root
        .store
        .conversation_status(&tenant(), "c")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.current_message_id.as_deref(), Some("m2"));
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

pub async fn executions_are_a_tree_of_pages(backend: &impl Backend) {
    let root = delegating(backend, 2).await;
    for index in 0..2 {
        // Their order is that of their times, to the millisecond.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let sub = begun(&root, index).await;
        sub.complete(0, "found", &[]).await;
        sub.end(0, AgentExecutionStatus::Completed).await;
    }
    let all = root
        .store
        .agent_executions(&tenant(), "c", None, 10)
        .await
        .unwrap();
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
            (sub.steps, sub.input_tokens, sub.output_tokens),
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
    let after = |at: usize| {
        Some(AgentExecutionPlace {
            started_at: all[at].started_at,
            id: all[at].id.clone(),
        })
    };
    assert_eq!(
        root.store
            .agent_executions(&tenant(), "c", after(0), 1)
            .await
            .unwrap(),
        all[1..2]
    );
    assert_eq!(
        root.store
            .agent_executions(&tenant(), "c", after(2), 1)
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        root.store
            .agent_execution(&tenant(), "c", &all[1].id)
            .await
            .unwrap()
            .as_ref(),
        Some(&all[1])
    );
    assert_eq!(
        root.store
            .agent_execution(&tenant(), "d", &all[1].id)
            .await
            .unwrap(),
        None
    );
    let stranger = Access::tenant("another");
    assert_eq!(
        root.store
            .agent_executions(&stranger, "c", None, 10)
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        root.store
            .agent_execution(&stranger, "c", &all[1].id)
            .await
            .unwrap(),
        None
    );
}
