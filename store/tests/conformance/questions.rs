//! Questions of running tools to a person: one wait of a call after the other, each with its own hash and its own answers.

use everturn_proto::{
    ids,
    turn::{
        AskedQuestion, ResolveApproval, SaveApproval, SaveQuestion, SaveThought,
        save_request::Batch,
    },
    words::{AgentExecutionStatus, ApprovalState, Effect, ToolStatus},
};
use everturn_store::{NotedAnswer, OutsideTools, PageLimit, ToolClaim, ToolClaims, ToolRecord};

use super::{
    Backend,
    approvals::note_given,
    fixture::{Turn, TurnStore, json, tenant, tool_end},
};

fn question(number: u32) -> AskedQuestion {
    AskedQuestion {
        number,
        message: format!("Question {number}?"),
        schema: Some(json(r#"{"type":"object"}"#)),
        timeout_s: 60,
        notes: Some(json(r#""secret notes""#)),
        ..AskedQuestion::default()
    }
}

async fn claimed<S: TurnStore>(turn: &Turn<S>, claimant: &str) -> ToolClaim {
    let key = turn.tool(0, 0);
    turn.store.claim_tool(&key, claimant).await.unwrap()
}

async fn runs<S: TurnStore>(turn: &Turn<S>, claimant: &str) -> ToolRecord {
    match claimed(turn, claimant).await {
        ToolClaim::Run { record, .. } => record,
        other => panic!("the tool may run: {other:?}"),
    }
}

async fn ask<S: TurnStore>(turn: &Turn<S>, attempt: u32, number: u32) {
    let asked = SaveQuestion {
        execution_id: turn.execution_id(0, 0),
        attempt,
        question: Some(question(number)),
    };
    turn.save(0, Batch::Question(asked)).await;
}

fn answer<S: TurnStore>(turn: &Turn<S>, number: u32, decision: ApprovalState) -> SaveApproval {
    let execution_id = turn.execution_id(0, 0);
    SaveApproval {
        input_hash: ids::question_hash(&execution_id, &question(number)),
        answer: (decision == ApprovalState::Approved).then(|| json(r#"{"a":1}"#)),
        decision: decision.into(),
        execution_id,
        ..SaveApproval::default()
    }
}

async fn requests<S: TurnStore>(turn: &Turn<S>) -> usize {
    turn.all_data("approval_requested").await.len()
}

/// The tool of effect `once` runs again after each answer, because the call ended with a question and without an effect.
pub async fn a_tool_asks_and_gets_the_answers(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Once]).await;
    assert_eq!(runs(&turn, "a").await.question, None);
    ask(&turn, 1, 1).await;
    let access = tenant();
    let waiting = turn.store.waiting_tools(&access, "c", PageLimit::rows(9));
    let waiting = waiting.await.unwrap();
    let record = &waiting[0].record;
    assert!(waiting[0].needs_approval() && waiting[0].expires_at.is_some());
    assert_eq!(record.open_question(), Some(&question(1)));
    let inbox = turn.store.approval_inbox(&access, None, PageLimit::rows(9));
    let (inbox, _) = inbox.await.unwrap();
    assert_eq!(inbox[0].tool.record.question, Some(question(1)));
    let ToolClaim::Asks(asks) = claimed(&turn, "b").await else {
        panic!("the tool waits for the answer");
    };
    assert_eq!(asks.question, Some(question(1)));
    let again = turn.save(0, Batch::Thought(SaveThought {})).await.result;
    assert_eq!(again.still_waiting[0].input_hash, record.call.input_hash);

    let given = answer(&turn, 1, ApprovalState::Approved);
    let other = SaveApproval {
        input_hash: "of another request".to_owned(),
        ..given.clone()
    };
    turn.save(0, Batch::Approval(other)).await;
    let saved = turn.save(0, Batch::Approval(given.clone())).await;
    assert_eq!(saved.result.approval_saved.unwrap().decision, "approved");
    let repeated = turn.save(0, Batch::Approval(given)).await;
    assert_eq!(repeated.result.approval_saved.unwrap().decision, "approved");
    let record = runs(&turn, "c").await;
    let asked = record.question.unwrap();
    assert_eq!(
        (asked.answer, asked.notes),
        (Some(json(r#"{"a":1}"#)), question(1).notes)
    );
    assert_eq!(asked.decision.as_deref(), Some("approved"));

    ask(&turn, 1, 2).await;
    let declined = turn.save(0, Batch::Approval(answer(&turn, 2, ApprovalState::Denied)));
    let declined = declined.await.result.approval_saved.unwrap();
    assert_eq!(declined.decision, "declined");
    let record = runs(&turn, "d").await;
    assert_eq!(record.approval, ApprovalState::Declined);
    let key = turn.tool(0, 0);
    let end = turn.store.finish_tool(&key, tool_end("1")).await;
    assert_eq!(end.unwrap().status, ToolStatus::Completed);
    let ToolClaim::Ended(ended) = claimed(&turn, "e").await else {
        panic!("the call has ended");
    };
    assert_eq!(ended.question, None, "the tool's notes go with the end");

    let events = turn.all_data("approval_resolved").await;
    assert_eq!(events[0]["answer"], serde_json::json!({"a": 1}));
    assert_eq!(events[1]["decision"], "declined");
    let requested = turn.all_data("approval_requested").await;
    assert_eq!(requested[1]["question"]["message"], "Question 2?");
    let shown = serde_json::to_string(&turn.events().await).unwrap();
    assert!(!shown.contains("secret notes"), "readers get no notes");
}

/// The answer of a person counts for one request of a call.
pub async fn an_answer_counts_for_its_question(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    runs(&turn, "a").await;
    ask(&turn, 1, 1).await;
    let hash = |number| answer(&turn, number, ApprovalState::Approved).input_hash;
    let given = |number: u32, text: &str| ResolveApproval {
        execution_id: turn.execution_id(0, 0),
        decision: "approve".into(),
        input_hash: Some(hash(number)),
        answer: Some(json(text)),
        ..ResolveApproval::default()
    };
    let noted = note_given(&turn.store, &given(1, r#"{"n":1}"#), "first", "ann").await;
    assert_eq!(noted, NotedAnswer::Noted);
    let save = |number, id: &str| SaveApproval {
        answer_id: Some(id.to_owned()),
        ..answer(&turn, number, ApprovalState::Approved)
    };
    turn.save(0, Batch::Approval(save(1, "first"))).await;
    runs(&turn, "b").await;
    ask(&turn, 1, 2).await;
    note_given(&turn.store, &given(2, r#"{"n":2}"#), "second", "ann").await;
    note_given(&turn.store, &given(1, r#"{"n":3}"#), "late", "bob").await;
    turn.save(0, Batch::Approval(save(2, "second"))).await;
    let asked = runs(&turn, "c").await.question.unwrap();
    assert_eq!(asked.answer, Some(json(r#"{"n":2}"#)));
    let resolved = turn.all_data("approval_resolved").await;
    let by: Vec<_> = resolved.iter().map(|it| &it["resolved_by"]).collect();
    assert_eq!(by, ["ann", "ann"]);
}

/// Only the attempt that runs asks, and only once for each number.
pub async fn an_older_attempt_asks_nobody(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    runs(&turn, "a").await;
    runs(&turn, "b").await;
    ask(&turn, 1, 1).await;
    ask(&turn, 2, 2).await;
    assert_eq!(requests(&turn).await, 0);
    ask(&turn, 2, 1).await;
    ask(&turn, 2, 1).await;
    assert_eq!(requests(&turn).await, 1);
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    let resolved = turn.all_data("approval_resolved").await;
    assert_eq!(resolved[0]["decision"], "cancelled");
}

pub async fn an_unanswered_question_ends_the_call(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Once]).await;
    runs(&turn, "a").await;
    ask(&turn, 1, 1).await;
    turn.save(0, Batch::Approval(answer(&turn, 1, ApprovalState::Expired)))
        .await;
    let observe = &turn.all_data("observe").await[0];
    let text = observe["result"].to_string();
    assert!(
        text.contains("no person answered the tool's question"),
        "{text}"
    );
    assert_eq!(observe["is_error"], true);
    let ToolClaim::Ended(ended) = claimed(&turn, "b").await else {
        panic!("the call has ended");
    };
    assert_eq!(ended.question, None);
}
