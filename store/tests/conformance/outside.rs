//! Tool calls that someone outside answers: approvals and client tools.

use chrono::{TimeDelta, Utc};
use everturn_proto::{
    Thread,
    turn::{SaveApproval, SaveThought, ToolCall, save_request::Batch},
    words::{
        AgentExecutionStatus, ApprovalState, ConversationStatus, Effect, ToolKind, ToolStatus,
    },
};
use everturn_store::{
    Access, Activity, ApprovedCall, ClientToolClaim, Conversations, EventLinks, EventReader,
    EventWriter, ListQuery, MessageQueue, OutsideTools, PageLimit, ResultSender, StepClaims,
    StoreError, ToolClaim, ToolClaims, TurnInputs, WantedLinks,
};

use super::{
    Backend,
    fixture::{Turn, TurnStore, data, json, state, tenant, tool_end},
};

/// Begins a turn whose first step asked for one tool that needs an approval and one that the client runs.
pub async fn asking<B: Backend>(backend: &B) -> Turn<B::Store> {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let asked = ToolCall {
        approval_timeout_s: Some(60),
        title_template: "Search for {q}".into(),
        ..turn.call(0, 0, Effect::Once)
    };
    let client = ToolCall {
        kind: ToolKind::Client.into(),
        ..turn.call(0, 1, Effect::Once)
    };
    turn.store
        .complete_step(&turn.step(0), state("look", vec![asked, client]))
        .await
        .unwrap();
    turn.store
        .save(&turn.request(0, Batch::Thought(SaveThought {})))
        .await
        .unwrap();
    turn
}

fn answer(execution_id: &str, decision: ApprovalState) -> SaveApproval {
    let (execution_id, decision) = (execution_id.into(), decision.into());
    SaveApproval {
        execution_id,
        decision,
        reason: Some("because".into()),
        input_hash: "shown".into(),
        ..SaveApproval::default()
    }
}

/// Returns the answer of a person who approves the call with another input than the model's.
fn edited(execution_id: &str) -> SaveApproval {
    SaveApproval {
        tool_input: Some(json(r#"{"q": "y"}"#)),
        ..answer(execution_id, ApprovalState::Approved)
    }
}

pub async fn what_waits_is_listed(backend: &impl Backend) {
    let turn = asking(backend).await;
    let waiting = turn
        .store
        .waiting_tools(&tenant(), "c", PageLimit::rows(10))
        .await
        .unwrap();
    let names: Vec<_> = waiting
        .iter()
        .map(|tool| tool.record.call.execution_id.clone())
        .collect();
    assert_eq!(names, [turn.execution_id(0, 0), turn.execution_id(0, 1)]);
    assert!(waiting[0].needs_approval() && !waiting[0].needs_result());
    assert!(waiting[1].needs_result() && !waiting[1].needs_approval());
    assert!(!waiting[0].is_expired);
    assert_eq!(waiting[0].record.call.input_hash, "shown");
    assert_eq!(
        turn.store
            .waiting_tools(&Access::tenant("another"), "c", PageLimit::rows(10))
            .await
            .unwrap(),
        []
    );
}

/// Returns what the list says of the one conversation, as text.
async fn listed(store: &impl Conversations) -> Option<(ConversationStatus, Activity)> {
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = store.list_conversations(&tenant(), &query).await.unwrap();
    let row = page.conversations.into_iter().next()?;
    Some((row.activity.status(), row.activity))
}

pub async fn lists_say_what_goes_on(backend: &impl Backend) {
    let turn = asking(backend).await;
    let asks = Activity {
        is_running: true,
        waiting_approvals: 1,
        waiting_client_tools: 1,
        ..Activity::default()
    };
    let is = async |state: ConversationStatus, activity: &Activity| {
        assert_eq!(
            listed(&turn.store).await.unwrap(),
            (state, activity.clone())
        );
    };
    is(ConversationStatus::WaitingForApproval, &asks).await;
    let approved = answer(&turn.execution_id(0, 0), ApprovalState::Approved);
    turn.save(0, Batch::Approval(approved)).await;
    let asks = Activity {
        waiting_approvals: 0,
        ..asks
    };
    is(ConversationStatus::WaitingForClientTool, &asks).await;
    let (client, end, access) = (turn.execution_id(0, 1), tool_end("1"), tenant());
    let sender = ResultSender::Client;
    let stored = turn.store.store_result(&access, "c", &client, sender, end);
    stored.await.unwrap();
    turn.queue("next").await;
    let works = Activity {
        waiting_client_tools: 0,
        has_queued: true,
        ..asks
    };
    is(ConversationStatus::Running, &works).await;
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    let waits = Activity {
        is_running: false,
        ..works
    };
    is(ConversationStatus::Queued, &waits).await;
    turn.store
        .withdraw_message(&tenant(), "c", "next")
        .await
        .unwrap();
    is(ConversationStatus::Idle, &Activity::default()).await;
}

pub async fn what_waits_is_listed_up_to_a_number_of_bytes(backend: &impl Backend) {
    let turn = asking(backend).await;
    let one = PageLimit { rows: 10, bytes: 1 };
    let waiting = turn.store.waiting_tools(&tenant(), "c", one).await.unwrap();
    let names: Vec<_> = waiting
        .iter()
        .map(|tool| tool.record.call.execution_id.clone())
        .collect();
    assert_eq!(names, [turn.execution_id(0, 0)]);
}

pub async fn a_call_runs_only_when_it_is_approved(backend: &impl Backend) {
    let turn = asking(backend).await;
    let id = turn.execution_id(0, 0);
    let early = turn.store.claim_tool(&turn.tool(0, 0), "a").await;
    assert!(
        matches!(early, Err(StoreError::Conflict(_))),
        "nobody approved it: {early:?}"
    );
    let record = turn
        .store
        .outside_tool(&tenant(), "c", &id)
        .await
        .unwrap()
        .unwrap()
        .record;
    assert_eq!(
        (record.status.clone(), record.attempt),
        (ToolStatus::Pending, 0)
    );

    let save = turn.request(0, Batch::Approval(edited(&id)));
    turn.store.save(&save).await.unwrap();
    turn.store.save(&save).await.unwrap();
    assert_eq!(
        turn.types()
            .await
            .iter()
            .filter(|kind| *kind == "approval_resolved")
            .count(),
        1
    );
    let ToolClaim::Run { record, .. } = turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap()
    else {
        panic!("approved, so it may run");
    };
    assert_eq!(
        record.call.tool_input,
        Some(json(r#"{"q":"y"}"#)),
        "with the canonical text of the input that was approved"
    );
    let wanted = WantedLinks {
        agent_executions: vec![turn.execution.clone()],
        tool_executions: vec![id.clone(), turn.execution_id(0, 1)],
    };
    let log = turn.conversation().await.log();
    let links = turn.store.event_links(&tenant(), &log, &wanted).await;
    let links = links.unwrap();
    let approved = ApprovedCall {
        tool_input: json(r#"{"q":"y"}"#),
        title: Some("Search for y".to_owned()),
    };
    assert_eq!(links.approved_calls, [(id.clone(), approved)].into());
    assert_titles(&turn).await;
    assert_eq!(record.call.title().as_deref(), Some("Search for y"));
    assert_eq!(links.parent_calls, [].into());
    let stranger = Access::tenant("another");
    let hidden = turn.store.event_links(&stranger, &log, &wanted).await;
    assert_eq!(hidden.unwrap(), EventLinks::default());
    let context = turn
        .store
        .context("c", &Thread::Conversation, PageLimit::rows(10), None)
        .await
        .unwrap()
        .messages;
    assert_eq!(
        context[1].tool_calls[0].tool_input,
        Some(json(r#"{"q":"y"}"#)),
        "and that is what the model sees"
    );
}

/// The title of a call has the values of the input at the time of the event.
async fn assert_titles(turn: &Turn<impl TurnStore + Clone>) {
    let events = turn.events().await;
    let titles = events.iter().filter_map(|event| {
        let title = data(event)["title"].as_str()?.to_owned();
        Some((event.event_type.clone(), title))
    });
    let of = |kind: &str, title: &str| (kind.to_owned(), title.to_owned());
    let expected = [
        of("act", "Search for x"),
        of("approval_requested", "Search for x"),
        of("approval_resolved", "Search for y"),
    ];
    assert_eq!(titles.collect::<Vec<_>>(), expected);
}

/// A run that was reset saves the thought again. It need not wait for what was answered meanwhile.
pub async fn a_thought_that_is_saved_again_says_what_was_answered(backend: &impl Backend) {
    let turn = asking(backend).await;
    let ids = [turn.execution_id(0, 0), turn.execution_id(0, 1)];
    turn.save(0, Batch::Approval(edited(&ids[0]))).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let again = turn
        .store
        .save(&turn.request(0, Batch::Thought(SaveThought {})))
        .await
        .unwrap()
        .result;
    assert_eq!(
        (again.approvals_answered, again.results_stored),
        (vec![ids[0].clone()], vec![])
    );
    let [client] = &again.still_waiting[..] else {
        panic!("{:?}", again.still_waiting)
    };
    assert_eq!(client.execution_id, ids[1]);
    assert!(
        client.left_ms <= 1000,
        "of the second that the client has, what is left: {}",
        client.left_ms
    );
}

pub async fn a_denied_call_never_runs(backend: &impl Backend) {
    let turn = asking(backend).await;
    let id = turn.execution_id(0, 0);
    turn.store
        .save(&turn.request(0, Batch::Approval(answer(&id, ApprovalState::Denied))))
        .await
        .unwrap();
    let claim = turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let ToolClaim::Ended(record) = claim else {
        panic!("{claim:?}")
    };
    assert!(
        record.end.unwrap().result.as_str().contains("because"),
        "the model is told why"
    );
    let too_late = answer(&id, ApprovalState::Approved);
    turn.store
        .save(&turn.request(0, Batch::Approval(too_late)))
        .await
        .unwrap();
    assert!(matches!(
        turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap(),
        ToolClaim::Ended(_)
    ));
    let refused = turn
        .store
        .save(&turn.request(
            0,
            Batch::Approval(answer("exec_unknown", ApprovalState::Denied)),
        ))
        .await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );
}

/// Claims a call that waits for a client, until so many milliseconds from now.
async fn claimed<S: OutsideTools>(
    store: &S,
    id: &str,
    claimant: &str,
    left_ms: i64,
) -> Option<ClientToolClaim> {
    let (access, until) = (tenant(), Utc::now() + TimeDelta::milliseconds(left_ms));
    let claim = store.claim_client_tool(&access, "c", id, claimant, until);
    claim.await.unwrap()
}

const RUN: Option<ClientToolClaim> = Some(ClientToolClaim::Run { is_repeated: false });
const RUN_AGAIN: Option<ClientToolClaim> = Some(ClientToolClaim::Run { is_repeated: true });

fn is_held(claim: Option<ClientToolClaim>) -> bool {
    matches!(claim, Some(ClientToolClaim::Held { until }) if until > Utc::now())
}

/// One of several devices that show a conversation runs a call. Another one runs it when the time of the first is over.
pub async fn one_client_claims_a_call(backend: &impl Backend) {
    let turn = asking(backend).await;
    let client = turn.execution_id(0, 1);
    let devices = ["laptop", "phone", "tablet", "watch"];
    let [laptop, phone, tablet, watch] =
        devices.map(|device| claimed(&turn.store, &client, device, 60_000));
    let claims = tokio::join!(laptop, phone, tablet, watch);
    let claims = [claims.0, claims.1, claims.2, claims.3];
    let winners: Vec<_> = (0..4).filter(|at| claims[*at] == RUN).collect();
    let &[winner] = &winners[..] else {
        panic!("one of them gets it: {claims:?}")
    };
    let held = claims.iter().filter(|claim| is_held(**claim));
    assert_eq!(held.count(), 3, "{claims:?}");
    let (winner, other) = (devices[winner], devices[(winner + 1) % 4]);
    let claim = async |claimant, left_ms| claimed(&turn.store, &client, claimant, left_ms).await;
    assert_eq!(claim(winner, 60_000).await, RUN, "it keeps it");
    assert!(is_held(claim(other, 60_000).await));
    assert_eq!(claim(winner, -1).await, RUN, "its time is over");
    assert_eq!(claim(other, 60_000).await, RUN_AGAIN);
    assert!(is_held(claim(winner, 60_000).await));
}

pub async fn only_a_call_that_waits_is_claimed(backend: &impl Backend) {
    let turn = asking(backend).await;
    let (asked, client) = (turn.execution_id(0, 0), turn.execution_id(0, 1));
    let claim = async |id: &str| claimed(&turn.store, id, "laptop", 60_000).await;
    let (stranger, until) = (Access::tenant("another"), Utc::now());
    let hidden = turn
        .store
        .claim_client_tool(&stranger, "c", &client, "laptop", until);
    assert_eq!(hidden.await.unwrap(), None);
    assert_eq!(claim(&asked).await, None, "a worker runs it");
    assert_eq!(claim("exec_unknown").await, None);
    assert_eq!(claim(&client).await, RUN);

    // A result counts whoever sends it, and then there is nothing to claim.
    let (access, end) = (tenant(), tool_end("1"));
    let sender = ResultSender::Client;
    let stored = turn.store.store_result(&access, "c", &client, sender, end);
    stored.await.unwrap();
    assert_eq!(claim(&client).await, None);
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    turn.store
        .delete_conversation(&access, "c", None)
        .await
        .unwrap();
    assert_eq!(claim(&client).await, None);
}

pub async fn the_clients_first_result_is_kept(backend: &impl Backend) {
    let turn = asking(backend).await;
    let (asked, client) = (turn.execution_id(0, 0), turn.execution_id(0, 1));
    let put = |access: Access, id: String, result: &str| {
        let (store, end) = (turn.store.clone(), tool_end(result));
        async move {
            store
                .store_result(&access, "c", &id, ResultSender::Client, end)
                .await
                .unwrap()
        }
    };
    assert_eq!(
        put(Access::tenant("another"), client.clone(), "1").await,
        None
    );
    let not_ours = put(tenant(), asked, "1").await.unwrap();
    assert_eq!(not_ours.record.end, None, "a worker runs it");
    let first = put(tenant(), client.clone(), "1").await.unwrap();
    assert_eq!(first.record.end.as_ref().unwrap().result.as_str(), "1");
    let second = put(tenant(), client.clone(), "2").await.unwrap();
    assert_eq!(second.record.end, first.record.end, "the first one is kept");
    let again = turn
        .store
        .save(&turn.request(0, Batch::Thought(SaveThought {})))
        .await
        .unwrap()
        .result;
    assert_eq!(
        (again.approvals_answered, again.results_stored),
        (vec![], vec![client])
    );
    turn.observe(0, 1, "").await;
    assert_eq!(data(turn.events().await.last().unwrap())["result"], 1);
}

/// The worker of a remote tool sends the result while its activity runs, and the turn records the end of the activity
/// later.
pub async fn a_remote_tools_result_is_kept_when_its_run_claimed_the_call(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let mut calls = [0, 1].map(|index| turn.call(0, index, Effect::Once));
    calls[0].kind = ToolKind::Remote.into();
    let asked = state("look", calls.to_vec());
    turn.store
        .complete_step(&turn.step(0), asked)
        .await
        .unwrap();
    turn.thought(0).await;
    let key = turn.tool(0, 0);
    let put = |access: Access, id: String, run_id: &'static str, result: &str| {
        let (store, end) = (turn.store.clone(), tool_end(result));
        async move {
            let sender = ResultSender::RemoteTool { run_id };
            let stored = store.store_result(&access, "c", &id, sender, end).await;
            stored.unwrap().map(|call| call.record)
        }
    };
    let remote = turn.execution_id(0, 0);
    let early = put(tenant(), remote.clone(), "", "1").await.unwrap();
    assert_eq!(early.end, None, "nobody has claimed it");
    turn.store.claim_tool(&key, "run 1").await.unwrap();
    let another = Access::tenant("another");
    assert_eq!(put(another, remote.clone(), "run 1", "1").await, None);
    let of_other_run = put(tenant(), remote.clone(), "run 2", "1").await;
    assert_eq!(of_other_run.unwrap().end, None, "another run claimed it");
    let own = turn.execution_id(0, 1);
    turn.store
        .claim_tool(&turn.tool(0, 1), "run 1")
        .await
        .unwrap();
    let not_remote = put(tenant(), own, "run 1", "1").await.unwrap();
    assert_eq!(not_remote.end, None, "our own worker runs it");
    let first = put(tenant(), remote.clone(), "run 1", "1").await.unwrap();
    assert_eq!(first.end.as_ref().unwrap().result.as_str(), "1");
    let second = put(tenant(), remote, "run 1", "2").await.unwrap();
    assert_eq!(second.end, first.end, "the first one is kept");
    let recorded = turn.store.finish_tool(&key, tool_end("null")).await;
    assert_eq!(recorded.unwrap().end, first.end, "also after the activity");
    turn.observe(0, 0, "").await;
    assert_eq!(data(turn.events().await.last().unwrap())["result"], 1);
}

pub async fn the_end_closes_what_waits(backend: &impl Backend) {
    let turn = asking(backend).await;
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    let expected = [
        "user_message",
        "thought",
        "act",
        "act",
        "approval_requested",
        "client_tool_requested",
        "approval_resolved",
        "observe",
        "observe",
        "cancelled",
    ];
    assert_eq!(turn.types().await, expected);
    assert_eq!(
        turn.store
            .waiting_tools(&tenant(), "c", PageLimit::rows(10))
            .await
            .unwrap(),
        []
    );
    let late = turn
        .store
        .store_result(
            &tenant(),
            "c",
            &turn.execution_id(0, 1),
            ResultSender::Client,
            tool_end("1"),
        )
        .await
        .unwrap();
    assert_eq!(late.unwrap().record.status, ToolStatus::Cancelled);
}
