//! The failures of agents across conversations: their order, their pages, their counts, and whose they are.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::{
    turn::{SaveEnd, save_request::Batch},
    words::AgentExecutionStatus,
};
use everturn_store::{
    Access, AgentEnd, AgentFailure, BeginTurn, Conversations, FailureCount, FailureFilter,
    Failures, StepClaims,
};

use super::{
    Backend,
    delegation::{begun, delegating},
    fixture::{Turn, TurnStore},
};

fn everything() -> FailureFilter {
    FailureFilter {
        tenant_id: None,
        agent: None,
        code: None,
        since: DateTime::UNIX_EPOCH,
        until: Utc::now() + TimeDelta::hours(1),
    }
}

/// Begins a turn of an agent in a conversation of a tenant.
async fn turn<S: TurnStore + Clone>(
    store: &S,
    tenant: &str,
    conversation: &str,
    agent: &str,
) -> Turn<S> {
    let turn = Turn::new(store.clone(), conversation, "m");
    let mut begin = BeginTurn {
        tenant_id: tenant.into(),
        ..turn.begin("say m")
    };
    begin.agent.name = agent.into();
    store.begin_turn(begin).await.unwrap();
    turn
}

/// Runs a turn of an agent that fails with a code. Returns the agent execution.
async fn failed<S: TurnStore + Clone>(
    store: &S,
    (tenant, conversation, agent): (&str, &str, &str),
    code: &str,
) -> String {
    let turn = turn(store, tenant, conversation, agent).await;
    let end = SaveEnd {
        status: AgentExecutionStatus::Failed.into(),
        code: Some(code.into()),
        message: Some(format!("{conversation} fails. {}", "é".repeat(1000))),
        hooks: None,
    };
    turn.save(0, Batch::End(end)).await;
    turn.execution
}

async fn found(store: &impl Failures, filter: &FailureFilter) -> Vec<String> {
    let failures = store.failures(filter, None, 100).await.unwrap();
    failures.into_iter().map(|failure| failure.id).collect()
}

/// Reads every failure in pages of a row.
async fn in_pages(store: &impl Failures) -> Vec<String> {
    let (mut seen, mut last) = (Vec::new(), None::<AgentFailure>);
    loop {
        let after = last.as_ref().map(AgentFailure::cursor);
        let page = store.failures(&everything(), after.as_ref(), 1).await;
        let Some(failure) = page.unwrap().pop() else {
            return seen;
        };
        seen.push(failure.id.clone());
        last = Some(failure);
    }
}

pub async fn failures_are_listed_with_the_newest_first(backend: &impl Backend) {
    let store = backend.open().await;
    let mut ids = Vec::new();
    for (conversation, agent, code) in [("c1", "a", "x"), ("c2", "b", "x"), ("c3", "a", "y")] {
        ids.push(failed(&store, ("default", conversation, agent), code).await);
    }
    let completed = turn(&store, "default", "c4", "a").await;
    completed.complete(0, "done", &[]).await;
    completed.end(0, AgentExecutionStatus::Completed).await;
    let called = turn(&store, "default", "c5", "a").await;
    store.claim_step(&called.step(0), None).await.unwrap();
    store.claim_step(&called.step(0), None).await.unwrap();
    called.end(0, AgentExecutionStatus::Failed).await;
    ids.push(called.execution);
    ids.reverse();

    let all = store.failures(&everything(), None, 100).await.unwrap();
    let listed: Vec<_> = all.iter().map(|failure| failure.id.clone()).collect();
    assert_eq!(listed, ids);
    let [newest, failure] = [&all[0], &all[1]];
    assert_eq!((newest.step_calls, failure.step_calls), (2, 0));
    assert_eq!(
        (failure.agent.as_str(), failure.error_code.as_deref()),
        ("a", Some("y"))
    );
    assert_eq!(
        (failure.conversation_name(), failure.message_id.as_str()),
        ("c3", "m")
    );
    let message = failure.error_message.as_deref().unwrap();
    assert!(message.starts_with("c3 fails. éé") && message.len() <= AgentEnd::MAX_MESSAGE_BYTES);
    assert!(failure.started_at <= failure.finished_at);

    let of_agent = FailureFilter {
        agent: Some("a".into()),
        ..everything()
    };
    assert_eq!(found(&store, &of_agent).await, [&*ids[0], &ids[1], &ids[3]]);
    let of_code = FailureFilter {
        code: Some("x".into()),
        ..everything()
    };
    assert_eq!(found(&store, &of_code).await, ids[2..]);
    let until = FailureFilter {
        until: all[1].finished_at,
        since: all[3].finished_at,
        ..everything()
    };
    let older = all.iter().filter(|other| other.finished_at < until.until);
    let older: Vec<_> = older.map(|failure| failure.id.clone()).collect();
    assert_eq!(found(&store, &until).await, older);

    // Failures at equal times have pages, too.
    backend
        .run("UPDATE agent_executions SET finished_at = (SELECT MAX(finished_at) FROM agent_executions)")
        .await;
    let seen = in_pages(&store).await;
    // The completed turn is at the equal time, and no failure.
    ids.sort_unstable();
    ids.reverse();
    assert_eq!(seen, ids);
}

pub async fn a_tenant_has_its_own_failures(backend: &impl Backend) {
    let store = backend.open().await;
    let own = failed(&store, ("acme", "acme~c", "a"), "x").await;
    let foreign = failed(&store, ("other", "other~c", "a"), "x").await;
    let of = |tenant: &str| FailureFilter {
        tenant_id: Some(tenant.into()),
        ..everything()
    };
    assert_eq!(found(&store, &of("acme")).await, [&*own]);
    assert_eq!(found(&store, &of("nobody")).await, [""; 0]);
    assert_eq!(found(&store, &everything()).await, [&*foreign, &own]);
    let [failure] =
        <[_; 1]>::try_from(store.failures(&of("acme"), None, 9).await.unwrap()).unwrap();
    assert_eq!(
        (failure.tenant_id.as_str(), failure.conversation_name()),
        ("acme", "c")
    );
    let [count] = <[_; 1]>::try_from(store.failure_counts(&of("acme"), 9).await.unwrap()).unwrap();
    assert_eq!(count.failures, 1);

    let access = Access::tenant("acme");
    let deleted = store.delete_conversation(&access, "acme~c", None).await;
    deleted.unwrap();
    assert_eq!(found(&store, &of("acme")).await, [""; 0]);
}

pub async fn failures_are_counted_by_agent_and_code(backend: &impl Backend) {
    let store = backend.open().await;
    for (conversation, agent, code) in [
        ("c1", "b", "x"),
        ("c2", "a", "x"),
        ("c3", "a", "y"),
        ("c4", "a", "x"),
    ] {
        failed(&store, ("default", conversation, agent), code).await;
    }
    let counted = async |filter: &FailureFilter, limit| {
        let counts = store.failure_counts(filter, limit).await.unwrap();
        let shown = |count: FailureCount| {
            assert!(count.first_at <= count.last_at);
            (count.agent, count.error_code.unwrap(), count.failures)
        };
        counts.into_iter().map(shown).collect::<Vec<_>>()
    };
    let count = |agent: &str, code: &str, failures| (agent.to_owned(), code.to_owned(), failures);
    let all = [count("a", "x", 2), count("a", "y", 1), count("b", "x", 1)];
    assert_eq!(counted(&everything(), 9).await, all);
    assert_eq!(counted(&everything(), 2).await, all[..2]);
    let of_agent = FailureFilter {
        agent: Some("b".into()),
        code: Some("x".into()),
        ..everything()
    };
    assert_eq!(counted(&of_agent, 9).await, all[2..]);
    let before = FailureFilter {
        until: Utc::now() - TimeDelta::hours(1),
        ..everything()
    };
    assert_eq!(counted(&before, 9).await, []);
}

pub async fn a_failed_sub_agent_names_its_parent(backend: &impl Backend) {
    let root = delegating(backend, 1).await;
    let sub = begun(&root, 0).await;
    sub.end(0, AgentExecutionStatus::Failed).await;
    let of_tenant = FailureFilter {
        tenant_id: Some("default".into()),
        ..everything()
    };
    let found = root.store.failures(&of_tenant, None, 9).await.unwrap();
    let [failure] = <[_; 1]>::try_from(found).unwrap();
    assert_eq!(
        (&failure.id, failure.parent_execution_id.as_ref()),
        (&sub.execution, Some(&root.execution))
    );
    assert_eq!(
        (failure.agent.as_str(), &failure.message_id),
        ("b", &root.message)
    );
}
