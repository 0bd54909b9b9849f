//! Batches about approvals and client tools.

use everturn_proto::words::ToolKind;

use super::*;

/// Returns a call that needs an approval, and one that the client runs.
fn outside_calls() -> Vec<ToolCall> {
    let asked = ToolCall {
        approval_timeout_s: Some(60),
        input_hash: "h".into(),
        ..call("exec_a", Effect::Once)
    };
    let client = ToolCall {
        kind: ToolKind::Client.into(),
        timeout_ms: 30_000,
        ..call("exec_c", Effect::Read)
    };
    vec![asked, client]
}

#[test]
fn a_thought_asks_who_must_be_asked() {
    let checkpoint = Some(state("", "", outside_calls()));
    let batch = build(
        &thought(0),
        &Snapshot {
            checkpoint,
            ..Snapshot::default()
        },
    )
    .unwrap();
    let expected = [
        "thought",
        "act",
        "act",
        "approval_requested",
        "client_tool_requested",
    ];
    assert_eq!(types(&batch), expected);
    assert_eq!(
        (
            field(&batch, 3, "input_hash"),
            field(&batch, 3, "expires_at")
        ),
        ("h".into(), "1970-01-01T00:01:00.000Z".into())
    );
    assert_eq!(field(&batch, 4, "expires_at"), "1970-01-01T00:00:30.000Z");
    assert_eq!(
        batch.pending_tools[0].record.approval,
        ApprovalState::Pending
    );
    assert_eq!(
        batch.pending_tools[1].record.approval,
        ApprovalState::NotNeeded
    );
}

/// An answer through the engine has the notation of its sender.
#[test]
fn an_edit_is_kept_in_canonical_form_and_another_notation_is_no_edit() {
    for (sent, edited, runs) in [
        (
            r#"{ "n" : 9007199254740993 }"#,
            false,
            r#"{"n":9007199254740993}"#,
        ),
        (
            r#"{ "n":1.50, "a":12345678901234567890123}"#,
            true,
            r#"{"a":12345678901234567890123,"n":1.50}"#,
        ),
    ] {
        let snapshot = Snapshot {
            tools: vec![asked("exec_a")],
            assistants: vec![assistant(&["exec_a"])],
            ..Snapshot::default()
        };
        let answer = SaveApproval {
            execution_id: "exec_a".into(),
            decision: ApprovalState::Approved.into(),
            tool_input: Json::parse(sent).ok(),
            ..SaveApproval::default()
        };
        let batch = build(&request(0, Save::Approval(answer)), &snapshot).unwrap();
        assert_eq!(field(&batch, 0, "edited"), edited);
        let text = if edited {
            runs.into()
        } else {
            serde_json::Value::Null
        };
        assert_eq!(field(&batch, 0, "input_text"), text);
        let approved = batch.approved_tool.unwrap().record.call;
        assert_eq!(approved.input_text(), runs);
    }
}

#[test]
fn an_approval_lets_the_call_run_with_what_was_approved() {
    let snapshot = Snapshot {
        tools: vec![asked("exec_a")],
        assistants: vec![assistant(&["exec_a"])],
        ..Snapshot::default()
    };
    let batch = build(&approval(0, "exec_a", ApprovalState::Approved), &snapshot).unwrap();
    assert_eq!(types(&batch), ["approval_resolved"]);
    assert_eq!(field(&batch, 0, "edited"), true);
    let approved = batch.approved_tool.unwrap().record;
    assert_eq!(
        (approved.approval, approved.status),
        (ApprovalState::Approved, ToolStatus::Pending)
    );
    assert_eq!(
        approved.call.tool_input.unwrap().as_str(),
        r#"{"edited":true}"#
    );
    assert_eq!(
        batch.edited_calls.unwrap().1[0]
            .tool_input
            .as_ref()
            .unwrap()
            .as_str(),
        r#"{"edited":true}"#
    );
    assert!(batch.observed_tools.is_empty());
}

#[test]
fn a_denied_or_expired_call_is_observed_at_once() {
    for (decision, said) in [
        (ApprovalState::Denied, "denied"),
        (ApprovalState::Expired, "in time"),
    ] {
        let snapshot = Snapshot {
            tools: vec![asked("exec_a")],
            assistants: vec![assistant(&["exec_a"])],
            ..Snapshot::default()
        };
        let batch = build(&approval(0, "exec_a", decision.clone()), &snapshot).unwrap();
        assert_eq!(types(&batch), ["approval_resolved", "observe"]);
        assert!(
            field(&batch, 1, "result")["error"]
                .as_str()
                .unwrap()
                .contains(said)
        );
        let ended = &batch.observed_tools[0].tool.record;
        assert_eq!(
            (&ended.approval, &ended.status),
            (&decision, &ToolStatus::Failed)
        );
    }
}
