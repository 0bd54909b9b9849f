//! Approvals and client tools, with an engine that only records. `tests/tests/e2e` tests them with the real one.

use chrono::{TimeDelta, Utc};
use everturn_gateway::turns::ApprovalOutcome;
use everturn_proto::{
    turn::CallRule,
    words::{ApprovalBy, ApprovalRefusal, ApprovalState, ToolKind, ToolStatus},
};
use everturn_store::{OutsideTool, StoreError};
use serde_json::{Value, json};

use crate::support::{Answer, TestGateway, rows::waiting};

const APPROVALS: &str = "/conversations/c/approvals";
const CLIENT_TOOLS: &str = "/conversations/c/client-tools";

async fn gateway(calls: Vec<OutsideTool>) -> TestGateway {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway.store.add("theirs", "another tenant");
    for call in &calls {
        gateway.store.call("c", call);
    }
    gateway
}

fn answer(decision: &str) -> Value {
    json!({"decision": decision, "input_hash": "h"})
}

#[tokio::test]
async fn lists_show_what_waits_for_whom() {
    let mut done = waiting("exec_done");
    done.record.approval = ApprovalState::Approved;
    let gateway = gateway(vec![waiting("exec_1"), waiting("client_1"), done]).await;
    let list = gateway.get(APPROVALS).await;
    let shown = &list.json()["approvals"];
    assert_eq!(shown.as_array().unwrap().len(), 1, "{}", list.text);
    assert!(
        list.text
            .contains(r#""tool_input":{"amount":9007199254740993}"#),
        "{}",
        list.text
    );
    let (shown, expected) = (
        &shown[0],
        [
            ("execution_id", "exec_1"),
            ("input_hash", "h"),
            ("message_id", "m"),
        ],
    );
    assert!(
        expected.iter().all(|(field, value)| shown[field] == *value),
        "{shown}"
    );
    assert!(shown["expires_at"].as_str() > shown["requested_at"].as_str());

    let list = gateway.get(CLIENT_TOOLS).await.json();
    assert_eq!(list["client_tools"].as_array().unwrap().len(), 1);
    assert_eq!(list["client_tools"][0]["execution_id"], "client_1");
    for path in [
        "/conversations/theirs/approvals",
        "/conversations/theirs/client-tools",
    ] {
        gateway
            .get(path)
            .await
            .assert_problem(404, "conversation_not_found");
    }
}

#[tokio::test]
async fn an_answer_goes_to_the_turn() {
    let gateway = gateway(vec![waiting("exec_1")]).await;
    let path = format!("{APPROVALS}/exec_1");
    let answered = gateway.post(&path, &answer("deny")).await;
    assert_eq!(
        (answered.status.as_u16(), &answered.json()["decision"]),
        (200, &json!("denied")),
        "{}",
        answered.text
    );
    let edited = json!({"decision": "approve", "input_hash": "h", "tool_input": {"amount": 1.0}, "remember": true});
    let answered = gateway.post(&path, &edited).await;
    assert_eq!(answered.json()["tool_input"], json!({"amount": 1.0}));
    assert_eq!(
        gateway.turns.take(),
        [
            "deny c exec_1 h  by ",
            r#"approve c exec_1 h {"amount":1.0} by "#
        ]
    );
}

/// Readers of a repeated key disagree, so no approver may make one. Spaces and the order of keys make no other answer.
#[tokio::test]
async fn an_edit_has_one_text() {
    let gateway = gateway(vec![waiting("exec_1")]).await;
    let path = format!("{APPROVALS}/exec_1");
    let post = async |input: &str| {
        let body = format!(r#"{{"decision":"approve","input_hash":"h","tool_input":{input}}}"#);
        let request = gateway.request("POST", &path).body(body);
        let request = request.header("content-type", "application/json");
        Answer::of(request.send().await.unwrap()).await
    };
    for twice in [
        r#"{"amount":5000,"amount":1}"#,
        r#"{"amount":5000,"\u0061mount":1}"#,
        r#"{"pay":[{"amount":5000,"amount":1}]}"#,
    ] {
        post(twice).await.assert_problem(400, "repeated_key");
    }
    assert_eq!(gateway.turns.take(), [""; 0]);
    for input in [
        r#"{"b":9007199254740993,"a":12345678901234567890123,"c":1.50}"#,
        r#"{ "c" : 1.50, "a": 12345678901234567890123, "\u0062":9007199254740993 }"#,
    ] {
        assert_eq!(post(input).await.status, 200);
    }
    let text = r#"{"a":12345678901234567890123,"b":9007199254740993,"c":1.50}"#;
    let expected = format!("approve c exec_1 h {text} by ");
    assert_eq!(gateway.turns.take(), [expected.clone(), expected]);
}

#[tokio::test]
async fn whoever_may_not_approve_may_deny() {
    let mut call = waiting("exec_1");
    call.record.call.rule = Some(CallRule {
        by: ApprovalBy::Other.into(),
        ..CallRule::default()
    });
    let gateway = gateway(vec![call]).await;
    let path = format!("{APPROVALS}/exec_1");
    let refused = gateway.post(&path, &answer("approve")).await;
    refused.assert_problem(403, "approval_needs_other");
    assert_eq!(gateway.turns.take(), [""; 0], "the turn is not asked");
    assert_eq!(gateway.post(&path, &answer("deny")).await.status, 200);
}

#[tokio::test]
async fn what_the_turn_says_becomes_a_problem() {
    let gateway = gateway(vec![waiting("exec_1")]).await;
    let refused = ApprovalOutcome::Refused;
    for (outcome, status, code) in [
        (refused(ApprovalRefusal::Answered), 409, "approval_answered"),
        (refused(ApprovalRefusal::Replaced), 409, "approval_answered"),
        (refused(ApprovalRefusal::Mismatch), 409, "approval_mismatch"),
        (refused(ApprovalRefusal::Invalid), 400, "invalid_body"),
        (
            refused(ApprovalRefusal::NeedsOther),
            403,
            "approval_needs_other",
        ),
        (
            refused(ApprovalRefusal::NotWaiting),
            503,
            "turn_unavailable",
        ),
        (
            refused(ApprovalRefusal::BeingStored),
            503,
            "turn_unavailable",
        ),
        (
            refused("of a later version".into()),
            503,
            "turn_unavailable",
        ),
        (ApprovalOutcome::Unanswered, 503, "turn_unavailable"),
        (ApprovalOutcome::NotRunning, 409, "turn_not_running"),
    ] {
        *gateway.turns.approval_outcome.lock().unwrap() = Some(outcome);
        let answered = gateway
            .post(&format!("{APPROVALS}/exec_1"), &answer("approve"))
            .await;
        answered.assert_problem(status, code);
        assert_eq!(
            answered.header("retry-after"),
            if status == 503 { "1" } else { "" }
        );
    }
    *gateway.turns.is_down.lock().unwrap() = true;
    let answered = gateway
        .post(&format!("{APPROVALS}/exec_1"), &answer("approve"))
        .await;
    answered.assert_problem(503, "temporal_unavailable");
}

#[tokio::test]
async fn what_is_stored_is_refused_without_asking() {
    let with = |id: &str, approval: ApprovalState| {
        let mut call = waiting(id);
        call.record.approval = approval;
        call
    };
    let mut late = waiting("exec_late");
    late.expires_at = Some(Utc::now() - TimeDelta::seconds(1));
    let calls = vec![
        with("exec_yes", ApprovalState::Approved),
        with("exec_no", ApprovalState::Denied),
        with("exec_expired", ApprovalState::Expired),
        with("exec_cancelled", ApprovalState::Cancelled),
        with("exec_free", ApprovalState::NotNeeded),
        late,
        waiting("exec_1"),
    ];
    let gateway = gateway(calls).await;
    for (id, code) in [
        ("exec_yes", "approval_answered"),
        ("exec_no", "approval_answered"),
        ("exec_cancelled", "approval_answered"),
        ("exec_free", "approval_answered"),
        ("exec_expired", "approval_expired"),
        ("exec_late", "approval_expired"),
    ] {
        gateway
            .post(&format!("{APPROVALS}/{id}"), &answer("approve"))
            .await
            .assert_problem(409, code);
    }
    assert_eq!(gateway.turns.take(), [""; 0]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_is_refused_without_asking() {
    let gateway = gateway(vec![waiting("exec_1")]).await;
    let path = format!("{APPROVALS}/exec_1");
    for body in [
        json!({"decision": "approve"}),
        answer("perhaps"),
        json!({"decision": "deny", "input_hash": "h", "remember": true}),
        json!({"decision": "approve", "input_hash": "h", "tool_input": []}),
        json!({"decision": "approve", "input_hash": "h", "tool_input": {"a": "\0"}}),
        json!({"decision": "approve", "input_hash": "h", "tool_input": {"a": "x".repeat(64 * 1024)}}),
        json!({"decision": "deny", "input_hash": "h", "reason": "x".repeat(4 * 1024 + 1)}),
    ] {
        gateway
            .post(&path, &body)
            .await
            .assert_problem(400, "invalid_body");
    }
    let other = json!({"decision": "approve", "input_hash": "of another input"});
    gateway
        .post(&path, &other)
        .await
        .assert_problem(409, "approval_mismatch");
    gateway
        .post(&format!("{APPROVALS}/exec_0"), &answer("deny"))
        .await
        .assert_problem(404, "execution_not_found");
    gateway
        .post(&format!("{APPROVALS}/a%2Fb"), &answer("deny"))
        .await
        .assert_problem(400, "invalid_id");
    let theirs = "/conversations/theirs/approvals/exec_1";
    gateway
        .post(theirs, &answer("deny"))
        .await
        .assert_problem(404, "conversation_not_found");
    gateway.store.lock().broken = Some(|| StoreError::Unavailable("secret".into()));
    gateway
        .post(&path, &answer("deny"))
        .await
        .assert_problem(503, "store_unavailable");
    assert_eq!(gateway.turns.take(), [""; 0]);
}

#[tokio::test]
async fn a_result_is_stored_and_then_the_turn_is_told() {
    let gateway = gateway(vec![waiting("client_1"), waiting("exec_1")]).await;
    let path = format!("{CLIENT_TOOLS}/client_1");
    let body = json!({"result": {"ok": true}});
    *gateway.turns.is_down.lock().unwrap() = true;
    gateway
        .post(&path, &body)
        .await
        .assert_problem(503, "temporal_unavailable");
    *gateway.turns.is_down.lock().unwrap() = false;
    for _again in 0..2 {
        let stored = gateway.post(&path, &body).await;
        let expected = json!({"execution_id": "client_1", "status": "stored"});
        assert_eq!((stored.status.as_u16(), stored.json()), (202, expected));
    }
    assert_eq!(
        gateway.turns.take(),
        ["result c client_1"; 3],
        "told again: whoever stored it may not have told it"
    );
    gateway
        .post(&path, &json!({"result": 2}))
        .await
        .assert_problem(409, "client_tool_answered");
    let error = json!({"result": {"ok": true}, "is_error": true});
    gateway
        .post(&path, &error)
        .await
        .assert_problem(409, "client_tool_answered");
    gateway
        .post(&format!("{CLIENT_TOOLS}/exec_1"), &body)
        .await
        .assert_problem(404, "execution_not_found");
    gateway
        .post(&path, &json!({}))
        .await
        .assert_problem(400, "invalid_body");
    let huge = json!({"result": "x".repeat(1024 * 1024)});
    gateway
        .post(&path, &huge)
        .await
        .assert_problem(413, "result_too_large");
    assert_eq!(gateway.turns.take(), [""; 0]);
}

#[tokio::test]
async fn a_remote_tools_result_is_stored_for_the_run_that_claimed_the_call() {
    let mut remote = waiting("exec_remote");
    remote.record.call.kind = ToolKind::Remote.into();
    remote.record.approval = ApprovalState::NotNeeded;
    remote.record.status = ToolStatus::Running;
    let gateway = gateway(vec![remote, waiting("client_1")]).await;
    let path = "/conversations/c/remote-tools/exec_remote";
    let of_run = |run_id: &str, result: Value| json!({"run_id": run_id, "result": result});
    gateway
        .post(path, &of_run("run-0", json!(1)))
        .await
        .assert_problem(409, "conflict");
    for _again in 0..2 {
        let stored = gateway.post(path, &of_run("run-1", json!(1))).await;
        let expected = json!({"execution_id": "exec_remote", "status": "stored"});
        assert_eq!((stored.status.as_u16(), stored.json()), (202, expected));
    }
    gateway
        .post(path, &of_run("run-1", json!(2)))
        .await
        .assert_problem(409, "conflict");
    gateway
        .post(
            "/conversations/c/remote-tools/client_1",
            &of_run("run-1", json!(1)),
        )
        .await
        .assert_problem(404, "execution_not_found");
    gateway
        .post(path, &json!({"result": 1}))
        .await
        .assert_problem(400, "invalid_body");
    gateway
        .post(path, &of_run("a/b", json!(1)))
        .await
        .assert_problem(400, "invalid_id");
    let huge = "x".repeat(1024 * 1024);
    gateway
        .post(path, &of_run("run-1", json!(huge)))
        .await
        .assert_problem(413, "result_too_large");
    assert_eq!(
        gateway.turns.take(),
        [""; 0],
        "the turn waits for the activity"
    );
}

#[tokio::test]
async fn one_client_gets_the_claim_of_a_call() {
    let mut ended = waiting("client_ended");
    ended.record.status = ToolStatus::Cancelled;
    let mut late = waiting("client_late");
    late.expires_at = Some(Utc::now() - TimeDelta::seconds(1));
    let mut early = waiting("client_early");
    early.record.approval = ApprovalState::Pending;
    let calls = vec![waiting("client_1"), waiting("exec_1"), ended, late, early];
    let gateway = gateway(calls).await;
    let claim = async |id: &str, body: &Value| {
        let path = format!("{CLIENT_TOOLS}/{id}/claim");
        gateway.post(&path, body).await
    };
    let (laptop, phone) = (json!({"claimant": "laptop"}), json!({"claimant": "phone"}));
    for _again in 0..2 {
        let claimed = claim("client_1", &laptop).await;
        assert_eq!(claimed.status, 200, "{}", claimed.text);
        assert_eq!(claimed.json()["is_repeated"], false);
    }
    let refused = claim("client_1", &phone).await;
    refused.assert_problem(409, "client_tool_claimed");
    let seconds: u32 = refused.header("retry-after").parse().unwrap();
    assert!((29..=31).contains(&seconds), "{seconds}");
    let ends = "UPDATE client_tool_claims SET expires_at = '2026-01-01T00:00:00+00:00'";
    gateway.store.run(ends, &[]);
    let claimed = claim("client_1", &phone).await.json();
    assert_eq!(
        (&claimed["claimant"], &claimed["is_repeated"]),
        (&json!("phone"), &json!(true))
    );

    for (id, status, code) in [
        ("client_ended", 409, "client_tool_answered"),
        ("client_late", 409, "client_tool_expired"),
        ("client_early", 409, "conflict"),
        ("exec_1", 404, "execution_not_found"),
        ("nobody", 404, "execution_not_found"),
    ] {
        claim(id, &laptop).await.assert_problem(status, code);
    }
    for (body, code) in [
        (json!({}), "invalid_body"),
        (
            json!({"claimant": "laptop", "lease_ms": 999}),
            "invalid_body",
        ),
        (
            json!({"claimant": "laptop", "lease_ms": 600_001}),
            "invalid_body",
        ),
        (json!({"claimant": "a/b"}), "invalid_id"),
    ] {
        claim("client_1", &body).await.assert_problem(400, code);
    }
}

#[tokio::test]
async fn a_result_that_comes_too_early_or_too_late_is_refused() {
    let mut early = waiting("client_early");
    early.record.approval = ApprovalState::Pending;
    let mut late = waiting("client_late");
    late.expires_at = Some(Utc::now() - TimeDelta::seconds(1));
    let mut ended = waiting("client_ended");
    ended.record.status = ToolStatus::Cancelled;
    let gateway = gateway(vec![early, late, ended]).await;
    for (id, code) in [
        ("client_early", "conflict"),
        ("client_late", "client_tool_expired"),
        ("client_ended", "client_tool_answered"),
    ] {
        gateway
            .post(&format!("{CLIENT_TOOLS}/{id}"), &json!({"result": 1}))
            .await
            .assert_problem(409, code);
    }
    assert_eq!(gateway.turns.take(), [""; 0]);
}
