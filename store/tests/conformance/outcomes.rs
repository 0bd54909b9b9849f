//! Unknown outcomes of tool calls: who may settle them, what the event and the transcript say, and that a repeated request
//! changes nothing.

use everturn_proto::{
    Json, Thread,
    words::{AgentExecutionStatus, AuditAction, AuditTargetKind, Effect, ToolOutcome, ToolStatus},
};
use everturn_store::{
    Access, AgentExecutions, AuditQuery, AuditTrail, ContextMessage, NewAuditEntry, OutcomeRefusal,
    OutsideTools, PageLimit, PersonsOutcome, ReadBefore, SettledOutcome, ToolClaims, ToolEnd,
    ToolResults,
};
use serde_json::{Value, json};

use super::{
    Backend,
    fixture::{Turn, TurnStore, operator_entry, tenant},
};

/// Runs a turn of two calls, the first with an unknown outcome, to its end.
async fn unknown<B: Backend>(backend: &B) -> Turn<B::Store> {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "Paying.", &[Effect::Once, Effect::Read]).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let end = ToolEnd::unknown("The worker died.", 7);
    turn.store.finish_tool(&turn.tool(0, 0), end).await.unwrap();
    turn.observe(0, 0, "").await;
    turn.runs(0, 1).await;
    turn.complete(1, "Who knows?", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    turn
}

fn happened(turn: &Turn<impl TurnStore>) -> PersonsOutcome {
    PersonsOutcome {
        execution_id: turn.execution_id(0, 0),
        outcome: ToolOutcome::Happened,
        result: Some(Json::of(&json!({"receipt": 7}))),
        comment: "The bank has it.".into(),
        settled_by: "ann".into(),
    }
}

fn entry(turn: &Turn<impl TurnStore>) -> NewAuditEntry {
    let (action, kind) = (AuditAction::OutcomeSettled, AuditTargetKind::ToolExecution);
    operator_entry(Some("default"), action, kind, &turn.execution_id(0, 0))
}

async fn settle(
    turn: &Turn<impl TurnStore + OutsideTools>,
    access: &Access,
    outcome: &PersonsOutcome,
) -> SettledOutcome {
    let (store, entry) = (&turn.store, entry(turn));
    let settled = store.settle_outcome(access, "c", outcome, &entry).await;
    settled.unwrap()
}

async fn entries(turn: &Turn<impl AuditTrail>) -> usize {
    let query = AuditQuery {
        action: Some(AuditAction::OutcomeSettled),
        ..AuditQuery::default()
    };
    turn.store.audit_entries(&query).await.unwrap().len()
}

async fn read(turn: &Turn<impl TurnStore>, before: Option<ReadBefore>) -> Vec<ContextMessage> {
    let rows = PageLimit::rows(20);
    let read = turn.store.context("c", &Thread::Conversation, rows, before);
    read.await.unwrap().messages
}

/// Returns the result of the first call, as a model reads it.
fn result(context: &[ContextMessage]) -> (bool, Value) {
    let mut results = context.iter().flat_map(|message| &message.tool_results);
    let first = results.next().unwrap();
    (first.is_error, first.result.to_value())
}

pub async fn a_settled_outcome_is_an_event_and_changes_what_models_read(backend: &impl Backend) {
    let turn = unknown(backend).await;
    let before = read(&turn, None).await;
    assert!(result(&before).0);
    let known = ReadBefore::of(&before);
    assert_eq!(read(&turn, known).await, [], "nothing is new");
    let events = turn.events().await.len();

    let SettledOutcome::Settled(event) = settle(&turn, &tenant(), &happened(&turn)).await else {
        panic!("it was refused");
    };
    assert_eq!(
        (event.outcome.as_str(), event.settled_by.as_str()),
        ("happened", "ann")
    );
    let stored = turn.events().await;
    assert_eq!(stored.len(), events + 1);
    let last = stored.last().unwrap();
    assert_eq!(
        (last.event_type.as_str(), last.message_id.as_str()),
        ("outcome_settled", "m")
    );
    let data = last.event_data.clone().unwrap().to_value();
    assert_eq!(data["result"], json!({"receipt": 7}));
    assert_eq!(data["comment"], "The bank has it.");

    let (is_error, shown) = result(&read(&turn, None).await);
    assert!(!is_error);
    assert_eq!(shown["outcome"], "happened");
    assert_eq!(shown["result"], json!({"receipt": 7}));
    assert_eq!(shown["comment"], "The bank has it.");
    let again = read(&turn, known).await;
    assert_eq!(again.len(), before.len(), "a worker reads everything again");
    assert_eq!(result(&again).1, shown);
    let after = ReadBefore::of(&again);
    assert_eq!(read(&turn, after).await, [], "and then nothing is new");
    let status = turn
        .store
        .tool_executions(&tenant(), "c", &turn.execution, 10)
        .await;
    assert_eq!(status.unwrap()[0].status, ToolStatus::Completed);
}

pub async fn an_outcome_is_settled_once(backend: &impl Backend) {
    let turn = unknown(backend).await;
    let first = settle(&turn, &tenant(), &happened(&turn)).await;
    assert!(matches!(first, SettledOutcome::Settled(_)));
    let events = turn.events().await.len();
    let by_bob = PersonsOutcome {
        settled_by: "bob".into(),
        ..happened(&turn)
    };
    assert_eq!(
        settle(&turn, &tenant(), &by_bob).await,
        first,
        "ann settled it"
    );
    for other in [
        PersonsOutcome {
            outcome: ToolOutcome::NotHappened,
            ..happened(&turn)
        },
        PersonsOutcome {
            result: None,
            ..happened(&turn)
        },
        PersonsOutcome {
            comment: String::new(),
            ..happened(&turn)
        },
    ] {
        let refused = SettledOutcome::Refused(OutcomeRefusal::SettledOtherwise);
        assert_eq!(settle(&turn, &tenant(), &other).await, refused);
    }
    assert_eq!(turn.events().await.len(), events);
    assert_eq!(entries(&turn).await, 2, "of the accepted requests");
}

pub async fn a_call_that_did_not_happen_may_be_made_again(backend: &impl Backend) {
    let turn = unknown(backend).await;
    let not_happened = PersonsOutcome {
        outcome: ToolOutcome::NotHappened,
        result: None,
        ..happened(&turn)
    };
    settle(&turn, &tenant(), &not_happened).await;
    let (is_error, shown) = result(&read(&turn, None).await);
    assert!(is_error);
    let text = shown["error"].as_str().unwrap();
    assert!(text.contains("did not happen") && text.contains("The bank has it."));
    let status = turn
        .store
        .tool_executions(&tenant(), "c", &turn.execution, 10)
        .await;
    assert_eq!(status.unwrap()[0].status, ToolStatus::Failed);
}

pub async fn only_an_unknown_outcome_of_ones_own_is_settled(backend: &impl Backend) {
    let turn = unknown(backend).await;
    let refused = |refusal| SettledOutcome::Refused(refusal);
    let foreign = Access::tenant("another");
    let no_call = refused(OutcomeRefusal::NoCall);
    assert_eq!(settle(&turn, &foreign, &happened(&turn)).await, no_call);
    let owner = Access::owner("default", "somebody");
    assert_eq!(settle(&turn, &owner, &happened(&turn)).await, no_call);
    for (index, refusal) in [(1, OutcomeRefusal::Known), (2, OutcomeRefusal::NoCall)] {
        let other = PersonsOutcome {
            execution_id: turn.execution_id(0, index),
            ..happened(&turn)
        };
        assert_eq!(settle(&turn, &tenant(), &other).await, refused(refusal));
    }
    assert_eq!(entries(&turn).await, 0);
    assert!(result(&read(&turn, None).await).0, "nothing has changed");
}

pub async fn an_outcome_is_settled_while_its_turn_runs(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Once, Effect::Read]).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    let known = SettledOutcome::Refused(OutcomeRefusal::Known);
    assert_eq!(settle(&turn, &tenant(), &happened(&turn)).await, known);
    let end = ToolEnd::unknown("The worker died.", 7);
    turn.store.finish_tool(&turn.tool(0, 0), end).await.unwrap();
    assert_eq!(settle(&turn, &tenant(), &happened(&turn)).await, known);
    turn.observe(0, 0, "").await;
    // The other call of the step still runs, so no model has read the results.
    let settled = settle(&turn, &tenant(), &happened(&turn)).await;
    assert!(matches!(settled, SettledOutcome::Settled(_)));
    turn.runs(0, 1).await;
    assert_eq!(result(&read(&turn, None).await).1["outcome"], "happened");
    turn.complete(1, "Done.", &[]).await;
    turn.end(1, AgentExecutionStatus::Completed).await;
    let whole = turn
        .store
        .tool_result(
            &tenant(),
            "c",
            &turn.execution_id(0, 0),
            everturn_store::ResultRange::new(0, 1000),
        )
        .await
        .unwrap()
        .unwrap();
    assert!(whole.text.contains("receipt"), "{}", whole.text);
}
