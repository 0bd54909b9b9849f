//! The leases of workers, and what lost workers ran.

use std::time::Duration;

use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    LeftOut, LeftOutTool, LostWorkers, RunningAgentExecution, SeenLease, StepClaim, ToolClaims,
    WorkerId, WorkerLease, WorkerLeases,
};

use super::{
    Backend,
    delegation::{begun, delegating},
    fixture::{Turn, TurnStore, tool_end},
};

fn lease(process: &str) -> WorkerLease {
    let worker = WorkerId::random();
    WorkerLease {
        identity: worker.identity(process),
        worker,
        duration: Duration::from_millis(2500),
    }
}

async fn seen(store: &impl LostWorkers, lease: &WorkerLease) -> Option<SeenLease> {
    let mut leases = store.leases().await.unwrap().into_iter();
    leases.find(|seen| seen.worker == lease.worker)
}

pub async fn a_lease_lasts_as_long_as_it_is_renewed(backend: &impl Backend) {
    let (store, gateway) = (backend.open().await, backend.open().await);
    let (one, other) = (lease("one"), lease("other"));
    assert_eq!(gateway.leases().await.unwrap(), []);
    store.renew_lease(&one).await.unwrap();
    store.renew_lease(&other).await.unwrap();
    let first = seen(&gateway, &one).await.unwrap();
    assert_eq!(
        (&first.identity, first.duration),
        (&one.identity, one.duration)
    );
    assert_eq!(seen(&gateway, &one).await, Some(first.clone()));
    store.renew_lease(&one).await.unwrap();
    let renewed = seen(&gateway, &one).await.unwrap();
    assert!(renewed.renewals > first.renewals);
    let longer = WorkerLease {
        duration: one.duration * 2,
        ..one.clone()
    };
    store.renew_lease(&longer).await.unwrap();
    let renewed = seen(&gateway, &one).await.unwrap();
    assert_eq!(renewed.duration, longer.duration);
    assert!(seen(&gateway, &other).await.is_some());
}

pub async fn a_lease_that_was_ended_is_there_until_a_gateway_removes_it(backend: &impl Backend) {
    let (store, gateway) = (backend.open().await, backend.open().await);
    let lease = lease("ended");
    store.renew_lease(&lease).await.unwrap();
    let lives = seen(&gateway, &lease).await.unwrap();
    assert!(!lives.is_ended);
    for _ in 0..2 {
        store.end_lease(&lease.worker).await.unwrap();
        let ended = seen(&gateway, &lease).await.unwrap();
        assert!(ended.is_ended && ended.takes == 0, "{ended:?}");
    }
    assert_eq!(gateway.take_lease(&lives).await.unwrap(), None);
    // The worker's last renewal may come after its end.
    store.renew_lease(&lease).await.unwrap();
    let ended = seen(&gateway, &lease).await.unwrap();
    assert!(ended.is_ended);
    let taken = gateway.take_lease(&ended).await.unwrap().unwrap();
    assert!(taken.is_ended && taken.takes == 1, "{taken:?}");
    gateway.remove_lease(&taken).await.unwrap();
    assert_eq!(seen(&gateway, &lease).await, None);
    store.end_lease(&lease.worker).await.unwrap();
    assert_eq!(seen(&gateway, &lease).await, None);
}

pub async fn left_out_tools_are_shown_while_their_worker_lives(backend: &impl Backend) {
    let (store, gateway) = (backend.open().await, backend.open().await);
    let tool = |tenant: &str, tool: &str| LeftOutTool {
        tenant_id: tenant.to_owned(),
        agent: "support".to_owned(),
        tool: tool.to_owned(),
        model: "openai/gpt-5".to_owned(),
        reason: "why".to_owned(),
    };
    let (one, other) = (lease("one"), lease("other"));
    // Without a lease, the tools have no row.
    let told = [tool("acme", "b"), tool("acme", "a"), tool("globex", "c")];
    store.tell_left_out(&one.worker, &told).await.unwrap();
    assert_eq!(gateway.left_out("acme").await.unwrap(), []);
    for lease in [&one, &other] {
        store.renew_lease(lease).await.unwrap();
        store.tell_left_out(&lease.worker, &told).await.unwrap();
        store.renew_lease(lease).await.unwrap();
    }
    let expected = [tool("acme", "a"), tool("acme", "b")];
    assert_eq!(gateway.left_out("acme").await.unwrap(), expected);
    store.tell_left_out(&one.worker, &[]).await.unwrap();
    assert_eq!(gateway.left_out("acme").await.unwrap(), expected);
    store.end_lease(&other.worker).await.unwrap();
    assert_eq!(gateway.left_out("acme").await.unwrap(), []);
}

pub async fn one_gateway_takes_a_lease_that_is_over(backend: &impl Backend) {
    let gateways = [backend.open().await, backend.open().await];
    let lease = lease("lost");
    gateways[0].renew_lease(&lease).await.unwrap();
    let over = seen(&gateways[0], &lease).await.unwrap();
    let (one, other) = tokio::join!(gateways[0].take_lease(&over), gateways[1].take_lease(&over));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(one.is_some() != other.is_some(), "{one:?}, {other:?}");
    let taken = one.or(other).unwrap();
    // The first one may die with its work undone.
    let again = seen(&gateways[1], &lease).await.unwrap();
    assert_eq!(again, taken);
    let again = gateways[1].take_lease(&again).await.unwrap().unwrap();
    assert_eq!((taken.takes, again.takes), (1, 2));
    gateways[0].remove_lease(&taken).await.unwrap();
    assert!(
        seen(&gateways[0], &lease).await.is_some(),
        "it was taken again"
    );
    gateways[1].remove_lease(&again).await.unwrap();
    assert_eq!(seen(&gateways[0], &lease).await, None);
}

pub async fn a_worker_that_renews_is_not_removed(backend: &impl Backend) {
    let store = backend.open().await;
    let lease = lease("late");
    store.renew_lease(&lease).await.unwrap();
    let over = seen(&store, &lease).await.unwrap();
    store.renew_lease(&lease).await.unwrap();
    assert_eq!(store.take_lease(&over).await.unwrap(), None);
    let over = seen(&store, &lease).await.unwrap();
    let taken = store.take_lease(&over).await.unwrap().unwrap();
    store.renew_lease(&lease).await.unwrap();
    store.remove_lease(&taken).await.unwrap();
    assert_eq!(seen(&store, &lease).await.unwrap().takes, 0, "it lives");
    // One that wakes after it was removed has a lease again.
    let over = seen(&store, &lease).await.unwrap();
    let taken = store.take_lease(&over).await.unwrap().unwrap();
    store.remove_lease(&taken).await.unwrap();
    store.renew_lease(&lease).await.unwrap();
    assert!(seen(&store, &lease).await.is_some());
}

pub async fn a_lease_that_is_held_is_not_taken(backend: &impl Backend) {
    let gateways = [backend.open().await, backend.open().await];
    let lease = lease("silent");
    gateways[0].renew_lease(&lease).await.unwrap();
    let over = seen(&gateways[0], &lease).await.unwrap();
    let held = gateways[0].hold_lease(&over).await.unwrap().unwrap();
    assert!(held.renewals > over.renewals);
    assert_eq!(seen(&gateways[1], &lease).await, Some(held.clone()));
    assert_eq!(gateways[1].hold_lease(&over).await.unwrap(), None);
    assert_eq!(gateways[1].take_lease(&over).await.unwrap(), None);
    let taken = gateways[0].take_lease(&held).await.unwrap().unwrap();
    // Work that lasts does not count as another take.
    let again = gateways[0].hold_lease(&taken).await.unwrap().unwrap();
    assert_eq!((taken.takes, again.takes), (1, 1));
    assert_eq!(seen(&gateways[1], &lease).await, Some(again.clone()));
    gateways[0].renew_lease(&lease).await.unwrap();
    assert_eq!(gateways[0].hold_lease(&again).await.unwrap(), None);
    assert_eq!(seen(&gateways[1], &lease).await.unwrap().takes, 0);
}

async fn claim_step<S: TurnStore>(turn: &Turn<S>, step: u32, worker: &WorkerId) {
    let key = turn.step(step);
    let claim = turn.store.claim_step(&key, Some(worker)).await.unwrap();
    assert!(matches!(claim, StepClaim::Call(_)), "{claim:?}");
}

async fn conversations(
    store: &impl LostWorkers,
    workers: &[&WorkerId],
    limit: u32,
) -> Vec<(String, bool)> {
    let workers: Vec<_> = workers.iter().map(|&worker| worker.clone()).collect();
    let found = store
        .running_agent_executions(&workers, limit)
        .await
        .unwrap();
    let mut found: Vec<_> = found
        .into_iter()
        .map(|execution| (execution.conversation_id, execution.is_held))
        .collect();
    found.sort_by_key(|(id, is_held)| (!is_held, id.clone()));
    found
}

pub async fn what_a_worker_held_comes_first(backend: &impl Backend) {
    let store = backend.open().await;
    let (lost, lives) = (WorkerId::random(), WorkerId::random());
    let begun = async |id| Turn::begun(store.clone(), id, "m").await;
    let thinks = begun("thinks").await;
    claim_step(&thinks, 0, &lost).await;
    let moved = begun("moved").await;
    claim_step(&moved, 0, &lost).await;
    claim_step(&moved, 0, &lives).await;
    // A tool that has ended, and of whose end the engine may not know.
    let works = begun("works").await;
    claim_step(&works, 0, &lives).await;
    works.asks(0, "both", &[Effect::Once, Effect::Read]).await;
    let claim = async |index, worker: &WorkerId| {
        let tool = works.tool(0, index);
        let claimed = store.claim_tool(&tool, &worker.claimant()).await;
        claimed.unwrap();
        let end = tool_end("\"found\"");
        store.finish_tool(&tool, end).await.unwrap();
    };
    claim(0, &lost).await;
    claim(1, &lives).await;
    let ended = begun("ended").await;
    claim_step(&ended, 0, &lost).await;
    ended.complete(0, "done", &[]).await;
    ended.end(0, AgentExecutionStatus::Completed).await;

    let held = |id: &str| (id.to_owned(), true);
    let other = |id: &str| (id.to_owned(), false);
    assert_eq!(
        conversations(&store, &[&lost], 10).await,
        [held("thinks"), held("works"), other("moved")]
    );
    assert_eq!(
        conversations(&store, &[&lost], 2).await,
        [held("thinks"), held("works")]
    );
    assert_eq!(
        conversations(&store, &[&lost, &lives], 10).await,
        [held("moved"), held("thinks"), held("works")]
    );
    works.observe(0, 0, "").await;
    assert_eq!(
        conversations(&store, &[&lost], 1).await,
        [held("thinks")],
        "what was observed is nobody's"
    );
}

pub async fn a_sub_agent_is_named_by_its_call(backend: &impl Backend) {
    let parent = delegating(backend, 1).await;
    let (store, worker) = (&parent.store, WorkerId::random());
    let child = begun(&parent, 0).await;
    claim_step(&child, 0, &worker).await;
    let found = store.running_agent_executions(&[worker], 10).await.unwrap();
    let execution = |sub_agent_call, is_held| RunningAgentExecution {
        conversation_id: parent.conversation.clone(),
        sub_agent_call,
        is_held,
    };
    // A worker of the release before made the parent's calls: nobody holds it.
    let call = parent.execution_id(0, 0);
    assert_eq!(found, [execution(Some(call), true), execution(None, false)]);
}
