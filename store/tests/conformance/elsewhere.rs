//! What a worker leaves to another one, because it does not know the agent, a tool or the provider.

use std::collections::BTreeMap;

use everturn_proto::{
    turn::AgentDefinition,
    words::{AgentExecutionStatus, Effect, ToolStatus},
};
use everturn_store::{
    BeginTurn, ClaimedCall, Conversations, MessageQueue, Missing, NewConversation, OnUnknownAgent,
    StepClaim, StepClaims, StoreError, ToolClaim, ToolClaims, TurnStart, Turns,
};

use super::{
    Backend,
    delegation::{self, agents},
    fixture::{EFFECTS, Turn, agent, new_message, tenant},
};

pub async fn a_call_that_was_not_made_does_not_count(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let claim = async || match turn.store.claim_step(&turn.step(0), None).await.unwrap() {
        StepClaim::Call(ClaimedCall {
            generation, calls, ..
        }) => (generation, calls),
        StepClaim::Stored(_) | StepClaim::Cancelled(_) => panic!("nothing is stored"),
    };
    let release = async |generation| {
        let step = turn.step(0);
        turn.store.release_step(&step, generation).await.unwrap();
    };
    assert_eq!(claim().await, (1, 1));
    release(1).await;
    assert_eq!(claim().await, (2, 1), "a generation is never given twice");
    assert_eq!(claim().await, (3, 2));
    release(2).await;
    assert_eq!(claim().await, (4, 3), "a newer call had begun");
    release(4).await;
    release(4).await;
    assert_eq!(claim().await, (5, 3), "a repeated release counts once");
}

pub async fn a_tool_that_was_not_run_is_pending_again(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &EFFECTS).await;
    for (index, effect) in EFFECTS.into_iter().enumerate() {
        let key = turn.tool(0, index);
        let claim = async |claimant| turn.store.claim_tool(&key, claimant).await.unwrap();
        let release = async |claimant| turn.store.release_tool(&key, claimant).await.unwrap();
        assert!(matches!(claim("a").await, ToolClaim::Run { .. }));
        release("b").await;
        let others = claim("b").await;
        assert_eq!(
            matches!(others, ToolClaim::OutcomeUnknown { .. }),
            effect == Effect::Once,
            "nobody gives back what another one holds: {others:?}"
        );
        let holder = if effect == Effect::Once { "a" } else { "b" };
        release(holder).await;
        let ToolClaim::Run { record, .. } = claim("c").await else {
            panic!("{effect}: it did not run")
        };
        let attempts = if effect == Effect::Once { 1 } else { 2 };
        assert_eq!(
            (record.status, record.attempt),
            (ToolStatus::Running, attempts)
        );
        let end = super::fixture::tool_end("1");
        let ended = turn.store.finish_tool(&key, end).await.unwrap();
        release("c").await;
        assert_eq!(claim("d").await, ToolClaim::Ended(ended));
    }
}

pub async fn a_turn_of_an_unknown_agent_is_left_to_others(backend: &impl Backend) {
    let turn = Turn::new(backend.open().await, "c", "m");
    let unknown = |on_unknown_agent| BeginTurn {
        agent: AgentDefinition::only_a_name("new".to_owned()),
        on_unknown_agent,
        ..turn.begin("hello")
    };
    let rows = backend.row_count().await;
    let refused = turn.store.begin_turn(unknown(OnUnknownAgent::Refuse)).await;
    assert!(is_unknown(&refused), "{refused:?}");
    assert_eq!(backend.row_count().await, rows);
    // A worker that knows the agent begins the turn. Then every worker may go on with it.
    turn.begin_as_run("hello").await.unwrap();
    let pinned = turn.store.begin_turn(unknown(OnUnknownAgent::Refuse)).await;
    assert!(
        matches!(pinned, Ok(TurnStart::AskAgain { .. })),
        "{pinned:?}"
    );
    let other = Turn::new(turn.store.clone(), "other", "m");
    let begin = BeginTurn {
        agent: AgentDefinition::only_a_name("new".to_owned()),
        on_unknown_agent: OnUnknownAgent::Begin,
        ..other.begin("hello")
    };
    let begun = other.store.begin_turn(begin).await;
    assert!(matches!(begun, Ok(TurnStart::Begun(_))), "{begun:?}");
}

pub async fn a_sub_agent_of_an_unknown_agent_is_left_to_others(backend: &impl Backend) {
    let turn = delegation::delegating(backend, 1).await;
    let call = turn.tool(0, 0);
    let rows = backend.row_count().await;
    let begin = async |agents: &BTreeMap<_, _>| {
        let refuse = OnUnknownAgent::Refuse;
        turn.store.begin_sub_agent(&call, agents, refuse).await
    };
    let refused = begin(&BTreeMap::new()).await;
    assert!(is_unknown(&refused), "{refused:?}");
    assert_eq!(backend.row_count().await, rows);
    let begun = begin(&agents()).await.unwrap();
    assert_eq!(begun.status, AgentExecutionStatus::Running);
    let pinned = begin(&BTreeMap::new()).await.unwrap();
    assert_eq!(pinned.status, AgentExecutionStatus::Running);
}

pub async fn an_agent_of_other_tenants_is_unknown(backend: &impl Backend) {
    let turn = Turn::new(backend.open().await, "c", "m");
    let others = |tenants: &[&str], on_unknown_agent| BeginTurn {
        agent: AgentDefinition {
            tenants: tenants.iter().map(|tenant| (*tenant).to_owned()).collect(),
            ..agent()
        },
        on_unknown_agent,
        ..turn.begin("")
    };
    let new = NewConversation {
        name: "c".into(),
        access: tenant(),
        agent: "default".into(),
        title: None,
        model: None,
        metadata: std::collections::BTreeMap::new(),
    };
    turn.store.create_conversation(new).await.unwrap();
    let message = new_message("c", "m", None);
    turn.store.queue_message(&tenant(), message).await.unwrap();
    let refuse = others(&["others"], OnUnknownAgent::Refuse);
    let refused = turn.store.begin_turn(refuse).await;
    assert!(is_unknown(&refused), "{refused:?}");
    let begin = others(&["others"], OnUnknownAgent::Begin);
    let Ok(TurnStart::Begun(begun)) = turn.store.begin_turn(begin).await else {
        panic!("it begins, so that its end can be told")
    };
    assert!(begun.agent.unwrap().definition.is_only_a_name());

    let next = Turn::new(turn.store.clone(), "new", "m");
    let begin = others(&["others", "default"], OnUnknownAgent::Refuse);
    let begin = BeginTurn {
        content: Some("hello".into()),
        agent: begin.agent,
        ..next.begin("hello")
    };
    let begun = next.store.begin_turn(begin).await;
    assert!(matches!(begun, Ok(TurnStart::Begun(_))), "{begun:?}");
}

pub async fn a_sub_agent_of_other_tenants_is_unknown(backend: &impl Backend) {
    let turn = delegation::delegating(backend, 2).await;
    let mut known = agents();
    for agent in known.values_mut() {
        agent.tenants = vec!["others".into()];
    }
    let begin = async |call: usize, agents: &BTreeMap<_, _>, on_unknown| {
        let call = turn.tool(0, call);
        turn.store.begin_sub_agent(&call, agents, on_unknown).await
    };
    let refused = begin(0, &known, OnUnknownAgent::Refuse).await;
    assert!(is_unknown(&refused), "{refused:?}");
    let ended = begin(0, &known, OnUnknownAgent::Begin).await.unwrap();
    assert_eq!(
        (ended.status, ended.agent),
        (AgentExecutionStatus::Failed, None)
    );
    let begun = begin(1, &agents(), OnUnknownAgent::Refuse).await.unwrap();
    assert_eq!(begun.status, AgentExecutionStatus::Running);
}

fn is_unknown<T>(answer: &Result<T, StoreError>) -> bool {
    let agent = Missing::Agent;
    matches!(answer, Err(StoreError::NotFound { what, .. }) if *what == agent)
}
