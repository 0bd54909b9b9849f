//! Timelines of turns, of old events and of sub-agents.

#![allow(clippy::unwrap_used)]

use everturn_proto::{Json, event::Event};

use super::{Timeline, TimelineItem};

fn events(list: &[(&str, &str)]) -> Vec<Event> {
    list.iter()
        .zip(1..)
        .map(|((event_type, data), sequence_number)| Event {
            id: format!("e{sequence_number}"),
            conversation_id: "c".to_owned(),
            message_id: "m1".to_owned(),
            event_type: (*event_type).to_owned(),
            event_data: Json::parse(*data).ok(),
            sequence_number,
            created_at: format!("2026-01-02T03:04:05.00{sequence_number}Z"),
        })
        .collect()
}

fn timeline(list: &[(&str, &str)]) -> Vec<String> {
    let mut timeline = Timeline::new(100, usize::MAX);
    for event in events(list) {
        timeline.push(&event);
    }
    timeline
        .into_items()
        .iter()
        .map(|item| serde_json::to_string(item).unwrap())
        .collect()
}

#[test]
fn a_turn_with_a_tool_has_five_items() {
    let items = timeline(&[
        ("user_message", r#"{"content":"hi","message_id":"m1"}"#),
        ("thought", r#"{"thought":"hm"}"#),
        (
            "act",
            r#"{"execution_id":"exec_1","tool_name":"t","tool_input":{"n":9007199254740993},"call_id":"call_1"}"#,
        ),
        (
            "observe",
            r#"{"execution_id":"exec_1","tool_name":"t","result":[1.0],"call_id":"call_1","is_error":true}"#,
        ),
        (
            "assistant_message",
            r#"{"content":"done","message_id":"msg_a","partial":false}"#,
        ),
        ("complete", r#"{"steps":2}"#),
    ]);
    assert_eq!(
        items,
        [
            r#"{"id":"m1","type":"user_message","sequenceNumber":1,"timestamp":1767323045001,"content":"hi"}"#,
            r#"{"id":"thought-2","type":"thought","sequenceNumber":2,"timestamp":1767323045002,"content":"hm"}"#,
            concat!(
                r#"{"id":"act-3","type":"tool_call","sequenceNumber":3,"timestamp":1767323045003,"toolName":"t","#,
                r#""toolInput":{"n":9007199254740993},"executionId":"exec_1","callId":"call_1"}"#
            ),
            concat!(
                r#"{"id":"observe-4","type":"tool_result","sequenceNumber":4,"timestamp":1767323045004,"#,
                r#""toolName":"t","toolOutput":[1.0],"isError":true,"executionId":"exec_1","callId":"call_1"}"#
            ),
            concat!(
                r#"{"id":"msg_a","type":"assistant_message","sequenceNumber":5,"timestamp":1767323045005,"#,
                r#""content":"done"}"#
            ),
        ]
    );
}

#[test]
fn a_call_shows_the_input_that_a_person_gave() {
    let call = (
        "act",
        r#"{"execution_id":"e","tool_name":"t","tool_input":{"n":1}}"#,
    );
    let resolved =
        |edited| format!(r#"{{"execution_id":"e","edited":{edited},"tool_input":{{"n":2}}}}"#);
    for (answer, shown) in [
        (resolved(true), r#""toolInput":{"n":2}"#),
        (resolved(false), r#""toolInput":{"n":1}"#),
        (
            resolved(true).replace(r#""e""#, r#""other""#),
            r#""toolInput":{"n":1}"#,
        ),
        ("null".to_owned(), r#""toolInput":{"n":1}"#),
    ] {
        let items = timeline(&[call, ("approval_resolved", &answer)]);
        assert!(items.len() == 1 && items[0].contains(shown), "{items:?}");
    }
}

#[test]
fn blank_thoughts_and_unknown_events_are_skipped() {
    let items = timeline(&[
        ("thought", r#"{"thought":""}"#),
        ("thought", r#"{"thought":" \n"}"#),
        ("thought", "{}"),
        ("work_plan", r#"{"title":"x"}"#),
        ("from_the_future", "{}"),
        ("error", r#"{"code":"x"}"#),
    ]);
    assert!(items.is_empty(), "{items:?}");
}

#[test]
fn old_events_make_items_too() {
    let items = timeline(&[
        ("user_message", "{}"),
        ("act", r#"{"tool_name":"t"}"#),
        ("observe", r#"{"tool_name":"t","observation":"it rained"}"#),
        ("observe", "null"),
        ("assistant_message", r#"{"content":7}"#),
    ]);
    assert!(items[0].contains(r#""id":"m1""#) && items[0].contains(r#""content":"""#));
    assert!(items[1].contains(r#""toolInput":null"#) && !items[1].contains("executionId"));
    assert!(items[2].contains(r#""toolOutput":"it rained","isError":false"#));
    assert!(items[3].contains(r#""id":"observe-4""#) && items[3].contains(r#""toolOutput":null"#));
    assert!(items[4].contains(r#""id":"assistant_message-5""#));
}

#[test]
fn a_time_that_is_none_is_0() {
    let mut event = events(&[("user_message", "{}")]).remove(0);
    event.created_at = "yesterday".to_owned();
    assert_eq!(TimelineItem::of(&event).unwrap().timestamp, 0);
}

#[test]
fn items_of_a_sub_agent_name_the_call_that_started_it() {
    let items = timeline(&[
        (
            "act",
            r#"{"call_id":"call_1","tool_name":"delegate","agent_execution_id":"root"}"#,
        ),
        (
            "sub_agent_start",
            r#"{"call_id":"call_1","agent_execution_id":"child"}"#,
        ),
        (
            "assistant_message",
            r#"{"content":"hi","agent_execution_id":"child"}"#,
        ),
        (
            "observe",
            r#"{"call_id":"call_1","agent_execution_id":"root"}"#,
        ),
    ]);
    assert_eq!(items.len(), 3);
    assert!(
        items[1]
            .ends_with(r#""content":"hi","agentExecutionId":"child","parentToolCallId":"call_1"}"#)
    );
    assert!(!items[0].contains("parentToolCallId") && !items[2].contains("agentExecutionId"));
}

#[test]
fn keeps_the_newest_up_to_its_bytes() {
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(1000));
    let list = vec![("user_message", long.as_str()); 5];
    let shown = |max_bytes| {
        let mut timeline = Timeline::new(100, max_bytes);
        for event in events(&list) {
            timeline.push(&event);
        }
        (timeline.total(), timeline.into_items().len())
    };
    assert_eq!(shown(3_000), (5, 2));
    assert_eq!(shown(1), (5, 1), "one item always stays");
}

#[test]
fn keeps_the_newest_and_counts_all() {
    let mut timeline = Timeline::new(2, usize::MAX);
    let list = vec![("user_message", "{}"); 5];
    for event in events(&list) {
        timeline.push(&event);
    }
    assert_eq!(timeline.total(), 5);
    let kept: Vec<_> = timeline
        .into_items()
        .iter()
        .map(|item| item.sequence_number)
        .collect();
    assert_eq!(kept, [4, 5]);
}
