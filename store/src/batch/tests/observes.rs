//! Batches of tools that have ended.

use everturn_proto::{
    event::{WorkPlan, WorkPlanStep},
    words::EventType,
};

use super::*;
use crate::api::ToolEnd;

#[test]
fn a_tool_without_an_end_is_ended_by_its_effect_and_status() {
    let cases = [
        (
            Effect::Once,
            ToolStatus::Running,
            ToolStatus::OutcomeUnknown,
        ),
        (Effect::Once, ToolStatus::Pending, ToolStatus::Failed),
        (Effect::Read, ToolStatus::Running, ToolStatus::Failed),
        (Effect::Idempotent, ToolStatus::Running, ToolStatus::Failed),
        // A tool whose effect this version does not know may have had any effect.
        (
            "later".into(),
            ToolStatus::Running,
            ToolStatus::OutcomeUnknown,
        ),
    ];
    for (effect, status, expected) in cases {
        let case = format!("{effect} {status}");
        let snapshot = Snapshot {
            tools: vec![tool("exec_a", effect, status)],
            assistants: vec![assistant(&["exec_a"])],
            ..Snapshot::default()
        };
        let batch = build(&observe(0, "exec_a", Some("timed out")), &snapshot).unwrap();
        assert_eq!(
            batch.observed_tools[0].tool.record.status, expected,
            "{case}"
        );
        assert_eq!(field(&batch, 0, "is_error"), true);
        let is_unknown = expected == ToolStatus::OutcomeUnknown;
        let said = field(&batch, 0, "outcome_unknown");
        assert_eq!(said.as_bool(), is_unknown.then_some(true), "{case}");
        let result = field(&batch, 0, "result");
        assert!(
            result["error"].as_str().unwrap().starts_with("timed out"),
            "{result}"
        );
    }
}

#[test]
fn an_end_names_each_step_whose_calls_it_observes_once() {
    let calls = ["exec_a", "exec_b", "exec_c"];
    let tools = ["exec_a", "exec_c"].map(|id| tool(id, Effect::Read, ToolStatus::Running));
    let snapshot = Snapshot {
        tools: tools.into(),
        assistants: vec![assistant(&calls)],
        recorded: calls.map(str::to_owned).into(),
        ..Snapshot::default()
    };
    let batch = build(&end(0, cancelled()), &snapshot).unwrap();
    assert_eq!(types(&batch), ["observe", "observe", "cancelled"]);
    let step = &batch.observed_steps[0];
    assert_eq!(step.execution_ids, calls);
    assert_eq!(batch.observed_steps.len(), 1);
}

#[test]
fn an_observed_tool_is_not_observed_again() {
    let mut observed = tool("exec_a", Effect::Read, ToolStatus::Completed);
    observed.observed_sequence = Some(3);
    let snapshot = Snapshot {
        tools: vec![observed],
        ..Snapshot::default()
    };
    assert_eq!(
        build(&observe(7, "exec_a", None), &snapshot)
            .unwrap()
            .events,
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
    let event = |kind: &str, data: &str| (kind.into(), Json::parse(data).unwrap());
    let mut done = tool("exec_a", Effect::Read, ToolStatus::Completed);
    done.record.end = Some(ToolEnd {
        status: ToolStatus::Completed,
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
    let batch = build(&observe(0, "exec_a", None), &snapshot).unwrap();
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
fn a_lost_record_is_made_anew_from_the_assistants_row() {
    let calls = [Effect::Read, Effect::Once].map(|effect| call(&format!("exec_{effect}"), effect));
    let row = AssistantRow {
        tool_calls: calls.into(),
        ..assistant(&[])
    };
    let snapshot = Snapshot {
        assistants: vec![row],
        ..Snapshot::default()
    };
    // Nobody knows whether the tool ran.
    let statuses = [
        ("exec_read", 0, ToolStatus::Failed),
        ("exec_once", 1, ToolStatus::OutcomeUnknown),
    ];
    for (execution_id, call_index, status) in statuses {
        let batch = build(&observe(0, execution_id, None), &snapshot).unwrap();
        assert_eq!(types(&batch), ["observe"]);
        let made = &batch.observed_tools[0].tool;
        assert_eq!(
            (made.call_index, &made.record.status),
            (call_index, &status)
        );
    }
    let unknown = build(&observe(0, "exec_none", None), &snapshot);
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));

    let ended = build(&end(0, cancelled()), &snapshot).unwrap();
    assert_eq!(types(&ended), ["observe", "observe", "cancelled"]);
}

#[test]
fn an_end_has_only_the_events_of_a_tool_and_of_its_probe() {
    let unknown = EventType::Unknown("from_the_future".into());
    for event_type in EventType::ALL.iter().chain([&unknown]) {
        let mut done = tool("exec_a", Effect::Read, ToolStatus::Completed);
        let end = ToolEnd::of_result("exec_a", Json::parse("1").unwrap(), false, 5);
        let data = Json::parse("{}").unwrap();
        done.record.end = Some(end.with_events(vec![(event_type.clone(), data)]));
        let snapshot = Snapshot {
            tools: vec![done],
            assistants: vec![assistant(&["exec_a"])],
            ..Snapshot::default()
        };
        let batch = build(&observe(0, "exec_a", None), &snapshot).unwrap();
        let is_saved = types(&batch) == [event_type.as_str(), "observe"];
        assert_eq!(is_saved, event_type.may_be_in_tool_end(), "{event_type}");
        assert!(is_saved || types(&batch) == ["observe"], "{event_type}");
    }
}
