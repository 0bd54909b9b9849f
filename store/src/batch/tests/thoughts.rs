//! Batches of steps that asked for tools.

use everturn_proto::turn::Citation;

use super::*;

#[test]
fn a_thought_keeps_the_text_apart_from_the_reasoning() {
    for (text, reasoning) in [("t", "r"), ("t", ""), ("", "r"), ("", "")] {
        let checkpoint = Some(state(text, reasoning, vec![call("exec_a", Effect::Read)]));
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
        assert_eq!(field(&batch, 0, "thought"), text);
        assert_eq!(field(&batch, 0, "reasoning"), reasoning);
        assert_eq!(batch.events[0].sequence_number, 5);
        assert_eq!(
            (batch.last_sequence, batch.steps, batch.new_messages),
            (6, 1, 0)
        );
        assert_eq!(batch.assistant.unwrap().content, text);
    }
}

#[test]
fn a_text_has_its_sources_and_a_text_without_sources_has_no_field() {
    let cited = Citation {
        url: "https://a.example/".into(),
        title: "A".into(),
        text: String::new(),
    };
    let json = serde_json::json!([{"url": "https://a.example/", "title": "A"}]);
    for citations in [vec![cited], Vec::new()] {
        let expected = if citations.is_empty() {
            &serde_json::Value::Null
        } else {
            &json
        };
        let batch = |calls, request: &BatchRequest| {
            let state = LlmCompleteState {
                citations: citations.clone(),
                ..state("t", "r", calls)
            };
            let snapshot = Snapshot {
                checkpoint: Some(state),
                steps: 1,
                ..Snapshot::default()
            };
            build(request, &snapshot).unwrap()
        };
        let step = batch(vec![call("exec_a", Effect::Read)], &thought(0));
        assert_eq!(field(&step, 0, "citations"), *expected);
        let answer = batch(vec![], &end(0, completed()));
        assert_eq!(types(&answer)[..2], ["thought", "assistant_message"]);
        assert_eq!(field(&answer, 0, "citations"), serde_json::Value::Null);
        assert_eq!(field(&answer, 1, "citations"), *expected);
    }
}

#[test]
fn a_call_without_tools_has_no_thought_batch() {
    // The property test found this case: the end of the turn would insert the step's row again.
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
    let checkpoint = Some(state("", "", vec![call("exec_a", Effect::Read)]));
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

#[test]
fn an_act_has_the_title_of_its_input() {
    let titled = |template: &str| ToolCall {
        title_template: template.to_owned(),
        ..call("exec_a", Effect::Read)
    };
    for (template, expected) in [
        ("Count to {n}", Some("Count to 9007199254740993")),
        ("Search for {q}", None),
        ("", None),
    ] {
        let checkpoint = Some(state("", "", vec![titled(template)]));
        let snapshot = Snapshot {
            checkpoint,
            ..Snapshot::default()
        };
        let batch = build(&thought(0), &snapshot).unwrap();
        assert_eq!(field(&batch, 1, "title").as_str(), expected, "{template}");
    }
}

#[test]
fn a_thought_needs_its_checkpoint_and_the_steps_before() {
    let missing = |step, snapshot: &Snapshot| match build(&thought(step), snapshot) {
        Err(StoreError::NotFound { id, .. }) => id,
        other => panic!("{other:?}"),
    };
    let nothing = Snapshot::default();
    let ahead = Snapshot {
        checkpoint: Some(state("hi", "", vec![])),
        steps: 1,
        ..Snapshot::default()
    };
    assert!(missing(0, &nothing).ends_with("/0"));
    assert!(missing(2, &ahead).ends_with("/1"), "the second is missing");
}
