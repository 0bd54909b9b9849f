//! Batches that end agent executions.

use everturn_proto::{turn::SaveEnd, words::AgentExecutionStatus};

use super::*;
use crate::api::{AgentEnd, WaitingHooks};

#[test]
fn an_answer_has_its_reasoning_before_it() {
    let totals = Totals {
        calls: 2,
        input_tokens: 30,
        output_tokens: 4,
        ..Totals::default()
    };
    let snapshot = Snapshot {
        checkpoint: Some(state("hi", "hm", vec![])),
        steps: 1,
        totals,
        ..Snapshot::default()
    };
    let batch = build(&end(1, completed()), &snapshot).unwrap();
    assert_eq!(types(&batch), ["thought", "assistant_message", "complete"]);
    assert_eq!(field(&batch, 0, "reasoning"), "hm");
    assert_eq!(field(&batch, 0, "thought"), "", "the text is the answer");
    assert_eq!(field(&batch, 1, "partial"), false);
    assert_eq!(field(&batch, 1, "finish"), "stop");
    assert_eq!(field(&batch, 2, "finish"), "stop");
    assert_eq!(field(&batch, 2, "input_tokens"), 30);
    assert_eq!((batch.new_messages, batch.steps), (1, 2));

    let snapshot = Snapshot {
        checkpoint: Some(state("hi", "", vec![])),
        ..snapshot
    };
    assert_eq!(
        types(&build(&end(1, completed()), &snapshot).unwrap()),
        ["assistant_message", "complete"]
    );
}

#[test]
fn only_a_completed_turn_has_hooks_after_it() {
    let hooks = Some(WaitingHooks {
        tool_queue: Some("tools".into()),
    });
    let answered = Snapshot {
        checkpoint: Some(state("hi", "", vec![])),
        ..Snapshot::default()
    };
    let complete = AgentExecutionEnd::Completed {
        hooks: hooks.clone(),
    };
    let batch = build(&end(0, complete.clone()), &answered).unwrap();
    assert_eq!(batch.hooks, hooks);
    for other in [completed(), cancelled(), failed()] {
        assert_eq!(build(&end(0, other), &answered).unwrap().hooks, None);
    }
    let invalid = Snapshot {
        checkpoint: Some(LlmCompleteState {
            invalid_output: Some("no JSON".into()),
            ..state("hi", "", vec![])
        }),
        ..Snapshot::default()
    };
    let batch = build(&end(0, complete), &invalid).unwrap();
    let status = batch.end.map(|end| end.status);
    assert_eq!(status, Some(AgentExecutionStatus::Failed));
    assert_eq!(batch.hooks, None);
}

#[test]
fn an_answer_that_was_cut_says_so_and_may_go_on() {
    let snapshot = Snapshot {
        checkpoint: Some(LlmCompleteState {
            is_cut: true,
            ..state("1 2", "", vec![])
        }),
        ..Snapshot::default()
    };
    let batch = build(&end(0, completed()), &snapshot).unwrap();
    assert_eq!(types(&batch), ["assistant_message", "complete"]);
    assert_eq!(field(&batch, 0, "finish"), "length");
    assert_eq!(field(&batch, 1, "finish"), "length");
    let batch = build(&request(0, Save::CutReply), &snapshot).unwrap();
    assert_eq!(types(&batch), ["assistant_message"]);
    assert_eq!(field(&batch, 0, "finish"), "length");
    assert!(batch.end.is_none());
    assert_eq!((batch.new_messages, batch.steps), (1, 1));
}

#[test]
fn an_invalid_answer_completes_nothing() {
    let snapshot = Snapshot {
        checkpoint: Some(LlmCompleteState {
            invalid_output: Some("no".into()),
            ..state("hi", "hm", vec![])
        }),
        ..Snapshot::default()
    };
    let batch = build(&end(0, completed()), &snapshot).unwrap();
    assert_eq!(types(&batch), ["thought", "assistant_message", "error"]);
    assert_eq!(field(&batch, 1, "finish"), "invalid_output");
    assert_eq!(field(&batch, 2, "code"), "llm_output_invalid");
    assert_eq!(batch.end.unwrap().status, AgentExecutionStatus::Failed);
    // Whoever cancels meanwhile has cancelled.
    let batch = build(&end(0, cancelled()), &snapshot).unwrap();
    assert_eq!(types(&batch), ["thought", "assistant_message", "cancelled"]);
}

#[test]
fn a_turn_does_not_complete_on_tool_calls_or_an_unknown_status() {
    let snapshot = Snapshot {
        checkpoint: Some(state("", "", vec![call("e", Effect::Read)])),
        ..Snapshot::default()
    };
    assert!(matches!(
        build(&end(0, completed()), &snapshot),
        Err(StoreError::Conflict(_))
    ));
    for status in [AgentExecutionStatus::Running.as_str(), ""] {
        let end = SaveEnd {
            status: status.into(),
            ..SaveEnd::default()
        };
        let refused = AgentExecutionEnd::try_from(&end);
        assert!(matches!(refused, Err(StoreError::Conflict(_))), "{status}");
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
            Some(state("before tools", "", vec![call("e", Effect::Read)])),
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
        let batch = build(&end(0, cancelled()), &snapshot).unwrap();
        assert_eq!(types(&batch), expected);
        if expected.len() > 1 {
            assert_eq!(field(&batch, 0, "partial"), true);
            assert_eq!(field(&batch, 0, "finish"), "cancelled");
            assert_eq!(batch.assistant.unwrap().tool_calls, []);
        }
    }
}

#[test]
fn a_saved_step_is_not_saved_again_by_the_end() {
    let checkpoint = Some(state(
        "before tools",
        "",
        vec![call("exec_a", Effect::Read)],
    ));
    let tools = vec![tool("exec_a", Effect::Read, ToolStatus::Pending)];
    let snapshot = Snapshot {
        checkpoint,
        tools,
        assistants: vec![assistant(&["exec_a"])],
        ..Snapshot::default()
    };
    let batch = build(&end(0, failed()), &snapshot).unwrap();
    assert_eq!(types(&batch), ["observe", "error"]);
    assert_eq!(
        batch.observed_tools[0].tool.record.status,
        ToolStatus::Cancelled
    );
    let expected = AgentEnd {
        agent: String::new(),
        status: AgentExecutionStatus::Failed,
        error_code: Some("code".into()),
        error_message: Some("why".into()),
        calls: 0,
        input_tokens: 0,
        output_tokens: 0,
    };
    assert_eq!(batch.end, Some(expected));
}
