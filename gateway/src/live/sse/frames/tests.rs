//! Frames of events and texts, to the letter.

use everturn_proto::Json;

use super::*;

fn rendered(event_type: &str, data: &str) -> String {
    let event = Event {
        id: "e".to_owned(),
        conversation_id: "c".to_owned(),
        message_id: "m".to_owned(),
        event_type: event_type.to_owned(),
        event_data: Json::parse(data).ok(),
        sequence_number: 7,
        created_at: "2026-01-02T03:04:05.678Z".to_owned(),
    };
    let cursor = Some(Cursor::behind(&event));
    render("c", &LiveFrame::Event(event), cursor)
}

const ENVELOPE: &str = r#""conversation_id":"c","message_id":"m","sequence_number":7,"created_at":"2026-01-02T03:04:05.678Z""#;

#[test]
fn event_data_stays_to_the_letter() {
    let data =
        r#"{"tool_input":{"z":9007199254740993,"a":1.10},"execution_id":"exec_1","later":[ ]}"#;
    let expected = format!(
        "id: 7-19b7ca98f2e\nevent: act\ndata: {{\"type\":\"act\",{ENVELOPE},{}\n\n",
        &data[1..] // the fields and the closing brace
    );
    assert_eq!(rendered("act", data), expected);
}

#[test]
fn data_cannot_overwrite_the_envelope_but_names_its_own_message() {
    let frame = rendered(
        "assistant_message",
        r#"{"type":"x","sequence_number":1,"message_id":"msg_a"}"#,
    );
    assert!(
        frame.contains(r#""type":"assistant_message""#) && frame.contains(r#""sequence_number":7"#)
    );
    assert!(frame.contains(r#""message_id":"msg_a""#) && !frame.contains(r#""m""#));
    assert_eq!(frame.matches("\"type\"").count(), 1);
}

#[test]
fn odd_data_is_left_out() {
    for data in ["null", "[1,2]", "5"] {
        assert_eq!(
            rendered("x", data),
            format!("id: 7-19b7ca98f2e\nevent: x\ndata: {{\"type\":\"x\",{ENVELOPE}}}\n\n")
        );
    }
}

#[test]
fn line_breaks_cannot_end_a_frame() {
    let frame = rendered("x\ny", "{\"a\":\r\n{\n\n\"b\":\"\\n\"}}");
    assert_eq!(frame.matches("\n\n").count(), 1);
    assert!(
        frame
            .lines()
            .filter(|line| !line.is_empty())
            .skip(2)
            .all(|line| line.starts_with("data: "))
    );
    assert!(!frame.contains('\r'));
}

#[test]
fn no_event_is_taken_for_one_of_event_source() {
    for (event_type, name) in [
        ("error", "turn_error"),
        ("message", "event"),
        ("open", "event"),
        ("act", "act"),
    ] {
        let frame = rendered(event_type, "{}");
        assert!(frame.contains(&format!("\nevent: {name}\n")), "{frame}");
        assert!(
            frame.contains(&format!(r#""type":"{event_type}""#)),
            "{frame}"
        );
    }
}

#[test]
fn deltas_carry_no_id() {
    let key = TextKey {
        agent_execution_id: "run".to_owned(),
        step: 1,
        part: Part::Reasoning,
    };
    let piece = everturn_stream::Piece {
        message_id: "m".to_owned(),
        key,
        generation: 2,
        offset: 3,
        text: "a\nb".to_owned(),
        is_end: false,
        continues: false,
    };
    let expected = concat!(
        "event: text_delta\n",
        r#"data: {"type":"text_delta","conversation_id":"c","message_id":"m","agent_execution_id":"run","#,
        r#""step":1,"part":"reasoning","generation":2,"offset":3,"text":"a\nb"}"#,
        "\n\n"
    );
    assert_eq!(render("c", &LiveFrame::TextDelta(piece), None), expected);
}

#[test]
fn the_progress_of_a_tool_has_no_id() {
    let progress = ToolProgress {
        message_id: "m".to_owned(),
        agent_execution_id: "run".to_owned(),
        execution_id: "exec".to_owned(),
        tool_name: "copy".to_owned(),
        progress: Some(3.into()),
        total: Number::from_f64(7.5),
        message: "copying".to_owned(),
        level: None,
    };
    let line = ToolProgress {
        progress: None,
        total: None,
        level: Some("info".to_owned()),
        ..progress.clone()
    };
    let rendered = |progress| render("c", &LiveFrame::Notice(Notice::ToolWorks(progress)), None);
    assert_eq!(
        rendered(progress),
        "event: tool_progress\ndata: {\"type\":\"tool_progress\",\"conversation_id\":\"c\",\"message_id\":\"m\",\
         \"agent_execution_id\":\"run\",\"execution_id\":\"exec\",\"tool_name\":\"copy\",\"progress\":3,\"total\":7.5,\
         \"message\":\"copying\"}\n\n"
    );
    assert!(rendered(line).ends_with("\"message\":\"copying\",\"level\":\"info\"}\n\n"));
}

#[test]
fn a_wait_has_no_id() {
    let wait = ModelWait {
        message_id: "m".to_owned(),
        agent_execution_id: "run".to_owned(),
        step: 2,
        code: "llm_overloaded".to_owned(),
        message: "It has too much to do.".to_owned(),
        attempt: 4,
        retry_after_ms: 12_000,
    };
    assert_eq!(
        render("c", &LiveFrame::Notice(Notice::ModelWaits(wait)), None),
        "event: model_waiting\ndata: {\"type\":\"model_waiting\",\"conversation_id\":\"c\",\"message_id\":\"m\",\
         \"agent_execution_id\":\"run\",\"step\":2,\"code\":\"llm_overloaded\",\"message\":\"It has too much to do.\",\
         \"attempt\":4,\"retry_after_ms\":12000}\n\n"
    );
}
