//! Tests of the pure part: what each kind of batch contains, and what holds for any order of saves and replays.

#![allow(clippy::unwrap_used)]

mod model;
mod property;

use everturn_proto::{
    Json,
    event::{WorkPlan, WorkPlanStep},
    turn::{
        LlmCompleteState, SaveApproval, SaveEnd, SaveObserve, SaveRequest, SaveSteer, SaveThought,
        ToolCall, save_request,
    },
    words::{EventType, approval, effect, execution_status, finish, tool_kind, tool_status},
};

use super::*;
use crate::api::ToolEnd;

/// The turn's own execution: any other one is a sub-agent's.
const ROOT: &str = "run_60d47de58b20dc6c";

fn request(step: u32, batch: save_request::Batch) -> SaveRequest {
    SaveRequest {
        conversation_id: "c".into(),
        message_id: "m".into(),
        agent_execution_id: ROOT.into(),
        step,
        batch: Some(batch),
    }
}

fn thought(step: u32) -> SaveRequest {
    request(step, save_request::Batch::Thought(SaveThought {}))
}

fn observe(step: u32, execution_id: &str, failure: &str) -> SaveRequest {
    request(
        step,
        save_request::Batch::Observe(SaveObserve {
            execution_id: execution_id.into(),
            failure: (!failure.is_empty()).then(|| failure.into()),
        }),
    )
}

fn approval(step: u32, execution_id: &str, decision: &str) -> SaveRequest {
    let (execution_id, decision) = (execution_id.into(), decision.into());
    let tool_input =
        (decision == approval::APPROVED).then(|| Json::parse(r#"{"edited":true}"#).unwrap());
    request(
        step,
        save_request::Batch::Approval(SaveApproval {
            execution_id,
            decision,
            tool_input,
            ..SaveApproval::default()
        }),
    )
}

fn steer(message_id: &str) -> SaveRequest {
    let (message_id, content) = (message_id.into(), "and this".into());
    request(
        0,
        save_request::Batch::Steer(SaveSteer {
            message_id,
            content,
        }),
    )
}

fn end(step: u32, status: &str) -> SaveRequest {
    request(
        step,
        save_request::Batch::End(SaveEnd {
            status: status.into(),
            code: Some("code".into()),
            message: Some("why".into()),
        }),
    )
}

fn call(execution_id: &str, effect: &str) -> ToolCall {
    ToolCall {
        execution_id: execution_id.into(),
        call_id: format!("call_{execution_id}"),
        tool_name: "search".into(),
        tool_input: Some(Json::parse(r#"{"n":9007199254740993}"#).unwrap()),
        effect: effect.into(),
        ..ToolCall::default()
    }
}

fn state(text: &str, reasoning: &str, tool_calls: Vec<ToolCall>) -> LlmCompleteState {
    let finish = if tool_calls.is_empty() {
        finish::STOP
    } else {
        finish::TOOL_CALLS
    };
    let (text, reasoning, finish) = (text.into(), reasoning.into(), finish.into());
    LlmCompleteState {
        text,
        reasoning,
        finish,
        tool_calls,
        ..LlmCompleteState::default()
    }
}

fn tool(execution_id: &str, effect: &str, status: &str) -> ToolRow {
    let call = call(execution_id, effect);
    let record = ToolRecord {
        call,
        status: status.into(),
        attempt: 1,
        ..ToolRecord::default()
    };
    ToolRow {
        record,
        ..ToolRow::default()
    }
}

fn assistant(calls: &[&str]) -> AssistantRow {
    let tool_calls = calls.iter().map(|id| call(id, effect::READ)).collect();
    AssistantRow {
        id: ids::assistant_message_id(ROOT, 0),
        tool_calls,
        ..AssistantRow::default()
    }
}

fn types(batch: &Batch) -> Vec<&str> {
    batch
        .events
        .iter()
        .map(|event| event.event_type.as_str())
        .collect()
}

fn field(batch: &Batch, event: usize, name: &str) -> serde_json::Value {
    batch.events[event].data.to_value()[name].clone()
}

#[test]
fn a_thought_joins_what_is_not_empty() {
    for (text, reasoning, expected) in [
        ("t", "r", "r\n\nt"),
        ("t", "", "t"),
        ("", "r", "r"),
        ("", "", ""),
    ] {
        let checkpoint = Some(state(text, reasoning, vec![call("exec_a", effect::READ)]));
        let batch = build(
            &thought(0),
            &Snapshot {
                checkpoint,
                last_sequence: 4,
                ..Snapshot::default()
            },
        )
        .unwrap();
        assert_eq!(types(&batch), ["thought", "act"]);
        assert_eq!(field(&batch, 0, "thought"), expected);
        assert_eq!(batch.events[0].sequence_number, 5);
        assert_eq!(
            (batch.last_sequence, batch.steps, batch.new_messages),
            (6, 1, 0)
        );
        assert_eq!(batch.assistant.unwrap().content, text);
    }
}

#[test]
fn a_call_without_tools_has_no_thought_batch() {
    // Found by the property test: its end would insert the step's row again.
    let snapshot = Snapshot {
        checkpoint: Some(state("answer", "", vec![])),
        ..Snapshot::default()
    };
    assert!(matches!(
        build(&thought(0), &snapshot),
        Err(StoreError::Conflict(_))
    ));
}

#[test]
fn an_act_keeps_its_input_to_the_letter() {
    let checkpoint = Some(state("", "", vec![call("exec_a", effect::READ)]));
    let batch = build(
        &thought(0),
        &Snapshot {
            checkpoint,
            ..Snapshot::default()
        },
    )
    .unwrap();
    assert!(
        batch.events[1]
            .data
            .as_str()
            .contains(r#""tool_input":{"n":9007199254740993}"#)
    );
    assert_eq!(field(&batch, 1, "status"), "running");
}

/// A call that needs an approval, and one that the client runs.
fn outside_calls() -> Vec<ToolCall> {
    let asked = ToolCall {
        approval_timeout_s: Some(60),
        input_hash: "h".into(),
        ..call("exec_a", effect::ONCE)
    };
    let client = ToolCall {
        kind: tool_kind::CLIENT.into(),
        timeout_ms: 30_000,
        ..call("exec_c", effect::READ)
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
    assert_eq!(batch.pending_tools[0].record.approval, approval::PENDING);
    assert_eq!(batch.pending_tools[1].record.approval, approval::NOT_NEEDED);
}

#[test]
fn an_approval_lets_the_call_run_with_what_was_approved() {
    let mut asked = tool("exec_a", effect::ONCE, tool_status::PENDING);
    asked.record.approval = approval::PENDING.into();
    let assistants = vec![assistant(&["exec_a"])];
    let snapshot = Snapshot {
        tools: vec![asked],
        assistants,
        ..Snapshot::default()
    };
    let batch = build(&approval(0, "exec_a", approval::APPROVED), &snapshot).unwrap();
    assert_eq!(types(&batch), ["approval_resolved"]);
    assert_eq!(field(&batch, 0, "edited"), true);
    let approved = batch.approved_tool.unwrap().record;
    assert_eq!(
        (approved.approval.as_str(), approved.status.as_str()),
        (approval::APPROVED, tool_status::PENDING)
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
    for (decision, said) in [(approval::DENIED, "denied"), (approval::EXPIRED, "in time")] {
        let mut asked = tool("exec_a", effect::ONCE, tool_status::PENDING);
        asked.record.approval = approval::PENDING.into();
        let snapshot = Snapshot {
            tools: vec![asked],
            assistants: vec![assistant(&["exec_a"])],
            ..Snapshot::default()
        };
        let batch = build(&approval(0, "exec_a", decision), &snapshot).unwrap();
        assert_eq!(types(&batch), ["approval_resolved", "observe"]);
        assert!(
            field(&batch, 1, "result")["error"]
                .as_str()
                .unwrap()
                .contains(said)
        );
        let ended = &batch.observed_tools[0].record;
        assert_eq!(
            (ended.approval.as_str(), ended.status.as_str()),
            (decision, tool_status::FAILED)
        );
    }
}

#[test]
fn a_thought_without_its_checkpoint_is_corrupt() {
    assert!(matches!(
        build(&thought(0), &Snapshot::default()),
        Err(StoreError::Corrupt(_))
    ));
}

#[test]
fn a_tool_without_an_end_is_ended_by_its_effect_and_status() {
    let cases = [
        (effect::ONCE, tool_status::RUNNING, tool_status::UNKNOWN),
        (effect::ONCE, tool_status::PENDING, tool_status::FAILED),
        (effect::READ, tool_status::RUNNING, tool_status::FAILED),
        (
            effect::IDEMPOTENT,
            tool_status::RUNNING,
            tool_status::FAILED,
        ),
        // An effect this version does not know may be anything.
        ("later", tool_status::RUNNING, tool_status::UNKNOWN),
    ];
    for (effect, status, expected) in cases {
        let tools = vec![tool("exec_a", effect, status)];
        let snapshot = Snapshot {
            tools,
            assistants: vec![assistant(&["exec_a"])],
            ..Snapshot::default()
        };
        let batch = build(&observe(0, "exec_a", "timed out"), &snapshot).unwrap();
        assert_eq!(
            batch.observed_tools[0].record.status, expected,
            "{effect} {status}"
        );
        assert_eq!(field(&batch, 0, "is_error"), true);
        let result = field(&batch, 0, "result");
        assert!(
            result["error"].as_str().unwrap().starts_with("timed out"),
            "{result}"
        );
    }
}

#[test]
fn results_stand_in_call_order() {
    let mut row = assistant(&["exec_a", "exec_b", "exec_c"]);
    for execution_id in ["exec_c", "exec_a", "exec_b"] {
        let tools = vec![tool(execution_id, effect::READ, tool_status::RUNNING)];
        let snapshot = Snapshot {
            tools,
            assistants: vec![row.clone()],
            ..Snapshot::default()
        };
        let batch = build(&observe(0, execution_id, ""), &snapshot).unwrap();
        row.tool_results.clone_from(&batch.results[0].tool_results);
    }
    let order: Vec<_> = row
        .tool_results
        .iter()
        .map(|result| result.execution_id.as_str())
        .collect();
    assert_eq!(order, ["exec_a", "exec_b", "exec_c"]);
}

#[test]
fn an_observed_tool_is_not_observed_again() {
    let mut observed = tool("exec_a", effect::READ, tool_status::COMPLETED);
    observed.observed_sequence = Some(3);
    let snapshot = Snapshot {
        tools: vec![observed],
        ..Snapshot::default()
    };
    assert_eq!(
        build(&observe(7, "exec_a", ""), &snapshot).unwrap().events,
        []
    );
}

#[test]
fn a_tools_events_come_before_its_observe_and_change_the_plan() {
    let step = |number: u32, status: &str| WorkPlanStep {
        step_number: number,
        description: "do".into(),
        status: status.into(),
    };
    let plan = WorkPlan {
        plan_id: "p".into(),
        title: "plan".into(),
        steps: vec![step(1, "pending"), step(2, "x")],
    };
    let event = |kind: &str, data: &str| (kind.to_owned(), Json::parse(data).unwrap());
    let mut done = tool("exec_a", effect::READ, tool_status::COMPLETED);
    done.record.end = Some(ToolEnd {
        status: tool_status::COMPLETED.into(),
        result: Json::parse("1").unwrap(),
        full_result: None,
        is_error: false,
        duration_ms: 5,
        events: vec![
            event(
                "step_start",
                r#"{"plan_id":"p","step_number":1,"description":"do"}"#,
            ),
            event(
                "step_end",
                r#"{"plan_id":"p","step_number":1,"status":"completed"}"#,
            ),
            event("step_start", r#"{"plan_id":"p","step_number":2}"#),
            event("step_end", r#"{"plan_id":"nobody's","step_number":2}"#),
            event("step_end", "[]"),
            event("complete", "{}"),
        ],
    });
    let assistants = vec![assistant(&["exec_a"])];
    let snapshot = Snapshot {
        tools: vec![done],
        assistants,
        plans: vec![plan],
        ..Snapshot::default()
    };
    let batch = build(&observe(0, "exec_a", ""), &snapshot).unwrap();
    // A tool cannot forge the end of a turn.
    assert_eq!(
        types(&batch),
        [
            "step_start",
            "step_end",
            "step_start",
            "step_end",
            "step_end",
            "observe"
        ]
    );
    assert_eq!(batch.plans.len(), 1);
    assert_eq!(
        batch.plans[0].steps,
        [step(1, "completed"), step(2, "running")]
    );
}

#[test]
fn a_tool_emits_only_what_a_tool_may_emit() {
    let unknown = EventType::Unknown("from_the_future".into());
    for event_type in EventType::ALL.iter().chain([&unknown]) {
        let mut done = tool("exec_a", effect::READ, tool_status::COMPLETED);
        done.record.end = Some(ToolEnd {
            status: tool_status::COMPLETED.into(),
            result: Json::parse("1").unwrap(),
            full_result: None,
            is_error: false,
            duration_ms: 5,
            events: vec![(event_type.to_string(), Json::parse("{}").unwrap())],
        });
        let snapshot = Snapshot {
            tools: vec![done],
            assistants: vec![assistant(&["exec_a"])],
            ..Snapshot::default()
        };
        let batch = build(&observe(0, "exec_a", ""), &snapshot).unwrap();
        let is_saved = types(&batch) == [event_type.as_str(), "observe"];
        assert_eq!(
            is_saved,
            event_type.may_be_emitted_by_tools(),
            "{event_type}: {:?}",
            types(&batch)
        );
        assert!(is_saved || types(&batch) == ["observe"]);
    }
}

#[test]
fn an_answer_has_its_reasoning_before_it() {
    let totals = Totals {
        calls: 2,
        input_tokens: 30,
        output_tokens: 4,
    };
    let snapshot = Snapshot {
        checkpoint: Some(state("hi", "hm", vec![])),
        totals,
        ..Snapshot::default()
    };
    let batch = build(&end(1, execution_status::COMPLETED), &snapshot).unwrap();
    assert_eq!(types(&batch), ["thought", "assistant_message", "complete"]);
    assert_eq!(field(&batch, 1, "partial"), false);
    assert_eq!(field(&batch, 2, "input_tokens"), 30);
    assert_eq!((batch.new_messages, batch.steps), (1, 2));

    let snapshot = Snapshot {
        checkpoint: Some(state("hi", "", vec![])),
        ..snapshot
    };
    assert_eq!(
        types(&build(&end(1, execution_status::COMPLETED), &snapshot).unwrap()),
        ["assistant_message", "complete"]
    );
}

#[test]
fn a_turn_does_not_complete_on_tool_calls_or_an_unknown_status() {
    let snapshot = Snapshot {
        checkpoint: Some(state("", "", vec![call("e", effect::READ)])),
        ..Snapshot::default()
    };
    for status in [execution_status::COMPLETED, execution_status::RUNNING, ""] {
        assert!(
            matches!(
                build(&end(0, status), &snapshot),
                Err(StoreError::Conflict(_))
            ),
            "{status}"
        );
    }
}

#[test]
fn a_cut_step_keeps_its_text() {
    let texts = [
        (
            Some(state("all of it", "", vec![])),
            None,
            vec!["assistant_message", "cancelled"],
        ),
        (
            Some(state("before tools", "", vec![call("e", effect::READ)])),
            None,
            vec!["assistant_message", "cancelled"],
        ),
        (
            Some(state("", "only thoughts", vec![])),
            None,
            vec!["cancelled"],
        ),
        (
            None,
            Some(state("so f", "", vec![])),
            vec!["assistant_message", "cancelled"],
        ),
        (None, None, vec!["cancelled"]),
    ];
    for (checkpoint, partial, expected) in texts {
        let snapshot = Snapshot {
            checkpoint,
            partial,
            ..Snapshot::default()
        };
        let batch = build(&end(0, execution_status::CANCELLED), &snapshot).unwrap();
        assert_eq!(types(&batch), expected);
        if expected.len() > 1 {
            assert_eq!(field(&batch, 0, "partial"), true);
            assert_eq!(batch.assistant.unwrap().tool_calls, []);
        }
    }
}

#[test]
fn a_saved_step_is_not_saved_again_by_the_end() {
    let checkpoint = Some(state(
        "before tools",
        "",
        vec![call("exec_a", effect::READ)],
    ));
    let tools = vec![tool("exec_a", effect::READ, tool_status::PENDING)];
    let snapshot = Snapshot {
        checkpoint,
        tools,
        assistants: vec![assistant(&["exec_a"])],
        ..Snapshot::default()
    };
    let batch = build(&end(0, execution_status::FAILED), &snapshot).unwrap();
    assert_eq!(types(&batch), ["observe", "error"]);
    assert_eq!(
        batch.observed_tools[0].record.status,
        tool_status::CANCELLED
    );
    let expected = End {
        status: execution_status::FAILED.into(),
        error_code: Some("code".into()),
    };
    assert_eq!(batch.end, Some(expected));
}

#[test]
fn a_message_is_taken_once_and_its_row_wins() {
    let taken = |message| {
        build(
            &steer("m2"),
            &Snapshot {
                message,
                ..Snapshot::default()
            },
        )
        .unwrap()
    };
    let inserted = taken(None);
    assert_eq!(inserted.events[0].message_id, "m2");
    assert_eq!(
        inserted.taken.unwrap().new_content.as_deref(),
        Some("and this")
    );
    let queued = taken(Some(WaitingMessage {
        content: "stored".into(),
        is_waiting: true,
    }));
    assert_eq!(
        (field(&queued, 0, "content"), queued.new_messages),
        ("stored".into(), 1)
    );
    assert_eq!(
        taken(Some(WaitingMessage {
            content: "stored".into(),
            is_waiting: false
        }))
        .events,
        []
    );
}

#[test]
fn keys_name_roles() {
    let keys = [
        (thought(3), "m/run_60d47de58b20dc6c/3/thought"),
        (
            observe(3, "exec_a", ""),
            "m/run_60d47de58b20dc6c/3/observe/exec_a",
        ),
        (steer("m2"), "m2/user_message"),
        (
            end(3, execution_status::FAILED),
            "m/run_60d47de58b20dc6c/end",
        ),
        (
            end(4, execution_status::COMPLETED),
            "m/run_60d47de58b20dc6c/end",
        ),
    ];
    for (request, expected) in keys {
        assert_eq!(key(&request).unwrap(), expected);
    }
    assert!(key(&SaveRequest::default()).is_err());
}

#[test]
fn stored_ids_never_change() {
    // A change here would store the batches of running turns twice.
    assert_eq!(
        event_id("c", "m/user_message", 0),
        "3aa4e6ac-0b60-59d9-ae15-e49b0d51478d"
    );
    assert_eq!(
        checkpoint_id("run_1", 0, "llm_complete", ""),
        "81e0e567-0a92-5fda-ad07-72b933e410f1"
    );
}
