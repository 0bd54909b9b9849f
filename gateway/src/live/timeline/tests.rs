//! Timelines of turns, of old events and of sub-agents.

#![allow(clippy::unwrap_used)]

use everturn_proto::{Json, event::Event, ids, words::EventType};
use everturn_store::{ApprovedCall, EventLinks};
use proptest::prelude::*;

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
    let timeline = page(&events(list), 100, usize::MAX);
    assert_eq!(timeline.wanted_links().agent_executions, [""; 0]);
    let items = timeline.into_items(EventLinks::default());
    let shown = items.iter().map(serde_json::to_string);
    shown.map(Result::unwrap).collect()
}

/// The newest page of a conversation with these events.
fn page(events: &[Event], max_items: usize, max_bytes: usize) -> Timeline {
    let mut timeline = Timeline::new(max_items, max_bytes);
    for event in events.iter().rev() {
        if !timeline.push_before(event) {
            break;
        }
    }
    timeline
}

fn numbers(timeline: Timeline) -> Vec<u32> {
    let items = timeline.into_items(EventLinks::default());
    items.iter().map(|item| item.sequence_number).collect()
}

#[test]
fn a_turn_with_a_tool_has_five_items() {
    let items = timeline(&[
        ("user_message", r#"{"content":"hi","message_id":"m1"}"#),
        ("thought", r#"{"thought":"I look.","reasoning":"hm"}"#),
        (
            "act",
            r#"{"execution_id":"exec_1","tool_name":"t","tool_input":{"n":9007199254740993},"call_id":"call_1"}"#,
        ),
        (
            "observe",
            r#"{"execution_id":"exec_1","tool_name":"t","result":[1.0],"call_id":"call_1","is_error":true,"outcome_unknown":true}"#,
        ),
        (
            "assistant_message",
            r#"{"content":"done","message_id":"msg_a","partial":false,"citations":[{"title":"A"}]}"#,
        ),
        ("complete", r#"{"steps":2}"#),
    ]);
    assert_eq!(
        items,
        [
            r#"{"id":"m1","type":"user_message","sequenceNumber":1,"timestamp":1767323045001,"content":"hi"}"#,
            r#"{"id":"thought-2","type":"thought","sequenceNumber":2,"timestamp":1767323045002,"content":"I look.","reasoning":"hm"}"#,
            concat!(
                r#"{"id":"act-3","type":"tool_call","sequenceNumber":3,"timestamp":1767323045003,"toolName":"t","#,
                r#""toolInput":{"n":9007199254740993},"executionId":"exec_1","callId":"call_1"}"#
            ),
            concat!(
                r#"{"id":"observe-4","type":"tool_result","sequenceNumber":4,"timestamp":1767323045004,"#,
                r#""toolName":"t","toolOutput":[1.0],"isError":true,"outcomeUnknown":true,"executionId":"exec_1","#,
                r#""callId":"call_1"}"#
            ),
            concat!(
                r#"{"id":"msg_a","type":"assistant_message","sequenceNumber":5,"timestamp":1767323045005,"#,
                r#""content":"done","citations":[{"title":"A"}]}"#
            ),
        ]
    );
}

#[test]
fn the_answer_says_what_its_turn_took() {
    let took = |tokens: u32| {
        format!(
            r#"{{"agent_execution_id":"a","usage":{{"input_tokens":{tokens},"output_tokens":7,"cached_tokens":5}},"cost_usd":"0.01"}}"#
        )
    };
    let list = events(&[
        (
            "assistant_message",
            r#"{"content":"one part","agent_execution_id":"a","finish":"length"}"#,
        ),
        (
            "assistant_message",
            r#"{"content":"done","agent_execution_id":"a","step":2,"finish":"stop"}"#,
        ),
        ("complete", &took(40)),
        (
            "assistant_message",
            r#"{"content":"of another","agent_execution_id":"b"}"#,
        ),
        ("complete", &took(50)),
    ]);
    let items: Vec<_> = page(&list, 9, usize::MAX)
        .into_items(EventLinks::default())
        .iter()
        .map(|item| serde_json::to_string(item).unwrap())
        .collect();
    assert!(
        items[0].ends_with(r#""content":"one part","finish":"length"}"#),
        "{items:?}"
    );
    assert!(
        items[1].ends_with(concat!(
            r#""content":"done","step":2,"finish":"stop","usage":{"inputTokens":40,"outputTokens":7,"#,
            r#""cachedTokens":5,"cacheWriteTokens":0,"reasoningTokens":0,"estimated":false},"costUsd":"0.01"}"#
        )),
        "{items:?}"
    );
    assert!(!items[2].contains("usage"), "{items:?}");
}

#[test]
fn an_end_without_an_answer_has_its_code_and_the_text_that_was_kept() {
    let items = timeline(&[
        (
            "assistant_message",
            r#"{"content":"Half an","partial":true,"finish":"cancelled"}"#,
        ),
        (
            "cancelled",
            r#"{"reason":"enough","usage":{"input_tokens":3}}"#,
        ),
        (
            "error",
            r#"{"code":"budget_exhausted","message":"The budget is used up.","step":4,"cost_usd":"0.5"}"#,
        ),
    ]);
    assert!(items[0].ends_with(r#""content":"Half an","partial":true,"finish":"cancelled"}"#));
    assert!(
        items[1].contains(r#""type":"cancelled""#)
            && items[1].contains(r#""content":"enough","usage":{"inputTokens":3,"#)
    );
    assert_eq!(
        items[2],
        concat!(
            r#"{"id":"error-3","type":"error","sequenceNumber":3,"timestamp":1767323045003,"#,
            r#""content":"The budget is used up.","step":4,"code":"budget_exhausted","costUsd":"0.5"}"#
        )
    );
}

#[test]
fn what_happened_besides_has_its_data_to_the_letter() {
    let data = r#"{"execution_id":"exec_1","call_id":"call_1","agent_execution_id":"child","n":9007199254740993.0}"#;
    for kind in [
        "work_plan",
        "step_start",
        "step_end",
        "approval_requested",
        "approval_resolved",
        "client_tool_requested",
        "sub_agent_start",
        "context_compacted",
        "model_fallback",
    ] {
        let mut item = page(&events(&[(kind, data)]), 9, usize::MAX).into_items(EventLinks {
            parent_calls: [("child".to_owned(), "call_1".to_owned())].into(),
            ..EventLinks::default()
        });
        let item = serde_json::to_string(&item.remove(0)).unwrap();
        let ids = r#""executionId":"exec_1","callId":"call_1""#;
        let of = r#""agentExecutionId":"child","parentToolCallId":"call_1""#;
        for part in [
            &format!(r#""type":"{kind}""#),
            ids,
            &format!(r#""data":{data}"#),
            of,
        ] {
            assert!(item.contains(part), "{part} in {item}");
        }
    }
    let bare = timeline(&[("model_fallback", "null")]);
    assert!(bare[0].ends_with(r#""data":null}"#), "{bare:?}");
}

#[test]
fn a_plan_is_of_the_agent_whose_tool_made_it() {
    let list = events(&[
        ("work_plan", r#"{"plan_id":"p"}"#),
        ("observe", r#"{"agent_execution_id":"child"}"#),
        ("work_plan", r#"{"plan_id":"q"}"#),
        ("observe", r#"{"agent_execution_id":"other"}"#),
    ]);
    let items = page(&list, 9, usize::MAX).into_items(EventLinks {
        parent_calls: ["child", "other"]
            .map(|id| (id.to_owned(), "call".to_owned()))
            .into(),
        ..EventLinks::default()
    });
    let agents: Vec<_> = items
        .iter()
        .map(|item| item.agent_execution_id.as_deref().unwrap())
        .collect();
    assert_eq!(agents, ["child", "child", "other", "other"]);
}

#[test]
fn a_call_shows_the_input_that_a_person_gave() {
    let call = (
        "act",
        r#"{"execution_id":"e","tool_name":"t","tool_input":{"n":1},"title":"Pay 1"}"#,
    );
    let resolved = |edited| {
        format!(
            r#"{{"execution_id":"e","edited":{edited},"tool_input":{{"n":2}},"title":"Pay 2"}}"#
        )
    };
    for (answer, shown) in [
        (resolved(true), r#""title":"Pay 2","toolInput":{"n":2}"#),
        (resolved(false), r#""title":"Pay 1","toolInput":{"n":1}"#),
        (
            resolved(true).replace(r#""e""#, r#""other""#),
            r#""title":"Pay 1","toolInput":{"n":1}"#,
        ),
        ("null".to_owned(), r#""title":"Pay 1","toolInput":{"n":1}"#),
    ] {
        let items = timeline(&[call, ("approval_resolved", &answer)]);
        assert!(items.len() == 2 && items[0].contains(shown), "{items:?}");
    }
}

#[test]
fn blank_thoughts_and_unknown_events_are_skipped() {
    let items = timeline(&[
        ("thought", r#"{"thought":"","reasoning":""}"#),
        ("thought", r#"{"thought":" \n","reasoning":"\t"}"#),
        ("thought", "{}"),
        ("skill_matched", r#"{"skill_name":"x"}"#),
        ("from_the_future", "{}"),
        ("complete", "{}"),
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
    let root = ids::root_agent_execution_id("c", "m1");
    let (call, end) = (
        format!(r#"{{"call_id":"call_1","tool_name":"delegate","agent_execution_id":"{root}"}}"#),
        format!(r#"{{"call_id":"call_1","agent_execution_id":"{root}"}}"#),
    );
    let items = timeline(&[
        ("act", &call),
        (
            "sub_agent_start",
            r#"{"call_id":"call_1","agent_execution_id":"child"}"#,
        ),
        (
            "assistant_message",
            r#"{"content":"hi","agent_execution_id":"child"}"#,
        ),
        ("observe", &end),
    ]);
    assert_eq!(items.len(), 4);
    assert!(
        items[2]
            .ends_with(r#""content":"hi","agentExecutionId":"child","parentToolCallId":"call_1"}"#)
    );
    assert!(!items[0].contains("parentToolCallId") && !items[3].contains("agentExecutionId"));
}

#[test]
fn a_page_ends_at_its_bytes() {
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(1000));
    let list = vec![("user_message", long.as_str()); 5];
    let shown = |max_bytes| {
        let timeline = page(&events(&list), 100, max_bytes);
        (timeline.oldest(), numbers(timeline))
    };
    assert_eq!(shown(3_000), (Some(4), vec![4, 5]));
    assert_eq!(shown(1), (Some(5), vec![5]), "one item always fits");
}

#[test]
fn a_page_ends_at_its_items_and_the_one_before_goes_on() {
    let list = [
        ("user_message", "{}"),
        ("thought", "{}"),
        ("user_message", "{}"),
        ("thought", "{}"),
        ("user_message", "{}"),
    ];
    let newest = page(&events(&list), 2, usize::MAX);
    assert_eq!(
        newest.oldest(),
        Some(2),
        "what is not shown belongs to it, too"
    );
    assert_eq!(numbers(newest), [3, 5]);
    assert_eq!(numbers(page(&events(&list[..1]), 2, usize::MAX)), [1]);
    assert_eq!(Timeline::new(2, usize::MAX).oldest(), None);
}

#[test]
fn the_end_of_a_turn_is_in_the_page_of_its_answer() {
    let list = events(&[
        ("assistant_message", r#"{"content":"x"}"#),
        ("complete", r#"{"cost_usd":"0.1"}"#),
        ("user_message", "{}"),
    ]);
    let newest = page(&list, 1, usize::MAX);
    assert_eq!((newest.oldest(), newest.items.len()), (Some(3), 1));
    let before = page(&list[..2], 1, usize::MAX).into_items(EventLinks::default());
    assert_eq!(before[0].cost_usd.as_deref(), Some("0.1"));
}

#[test]
fn a_page_asks_for_what_is_said_beyond_it() {
    let list = events(&[
        (
            "act",
            r#"{"execution_id":"open","tool_input":{"n":1},"agent_execution_id":"child"}"#,
        ),
        (
            "act",
            r#"{"execution_id":"over","tool_input":{"n":1},"agent_execution_id":"child"}"#,
        ),
        (
            "observe",
            r#"{"execution_id":"over","agent_execution_id":"child"}"#,
        ),
        ("assistant_message", r#"{"agent_execution_id":"nobody's"}"#),
    ]);
    let timeline = page(&list, 100, usize::MAX);
    let mut wanted = timeline.wanted_links();
    wanted.agent_executions.sort();
    assert_eq!(wanted.agent_executions, ["child", "nobody's"]);
    assert_eq!(wanted.tool_executions, ["open"]);
    let input = Json::parse(r#"{"n":2}"#).unwrap();
    let approved = ApprovedCall {
        tool_input: input.clone(),
        title: Some("Pay 2".to_owned()),
    };
    let items = timeline.into_items(EventLinks {
        parent_calls: [("child".to_owned(), "call_1".to_owned())].into(),
        approved_calls: [("open".to_owned(), approved)].into(),
    });
    assert_eq!(items[0].tool_input, Some(input));
    assert_eq!(items[0].title.as_deref(), Some("Pay 2"));
    assert_eq!(items[1].tool_input.as_ref().unwrap().as_str(), r#"{"n":1}"#);
    for item in &items[..3] {
        assert_eq!(item.agent_execution_id.as_deref(), Some("child"));
        assert_eq!(item.parent_tool_call_id.as_deref(), Some("call_1"));
    }
    assert_eq!(
        (&items[3].agent_execution_id, &items[3].parent_tool_call_id),
        (&None, &None)
    );
}

/// Events of every type that there is, was, or may come, in which each field may hold anything.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    const NAMES: [&str; 20] = [
        "message_id",
        "content",
        "reasoning",
        "execution_id",
        "call_id",
        "tool_name",
        "tool_input",
        "result",
        "observation",
        "is_error",
        "duration_ms",
        "step",
        "partial",
        "usage",
        "edited",
        "agent_execution_id",
        "attachments",
        "retry_of",
        "citations",
        "code",
    ];
    let known = EventType::ALL.iter().map(|known| known.as_str().to_owned());
    let event_type =
        prop_oneof![8 => prop::sample::select(known.collect::<Vec<_>>()), 1 => "[a-z_]{0,8}"];
    let value = prop_oneof![
        Just(r#""a""#.to_owned()),
        r#""[a-z\\\\/"]{0,4}""#,
        "-?[0-9]{1,25}(\\.[0-9]{1,3})?",
        "true|null|\\[\\]|\\{\"input_tokens\":[0-9]{1,12}\\}",
        (0_usize..300).prop_map(|levels| format!("{}1{}", "[".repeat(levels), "]".repeat(levels))),
    ];
    let field = (prop::sample::select(&NAMES[..]), value)
        .prop_map(|(name, value)| format!("\"{name}\":{value}"));
    let data = prop_oneof![
        9 => prop::collection::vec(field, 0..8).prop_map(|fields| format!("{{{}}}", fields.join(","))),
        1 => "\\PC{0,9}",
    ];
    let created_at = prop_oneof![
        Just("2026-01-02T03:04:05.006Z".to_owned()),
        "[-+0-9T:Z.]{0,30}"
    ];
    let event = (event_type, data, created_at, any::<u32>());
    prop::collection::vec(event, 0..30).prop_map(|events| {
        let make =
            |(event_type, data, created_at, sequence_number): (String, String, String, u32)| {
                Event {
                    event_type,
                    event_data: Json::parse(data).ok(),
                    created_at,
                    sequence_number,
                    ..Event::default()
                }
            };
        events.into_iter().map(make).collect()
    })
}

proptest! {
    #[test]
    fn any_stored_events_make_a_page_within_its_limits(events in any_events(), max_items in 1_usize..20, max_bytes in 0_usize..5000) {
        let page = page(&events, max_items, max_bytes);
        let _ = page.wanted_links();
        let items = page.into_items(EventLinks::default());
        prop_assert!(items.len() <= max_items.min(events.len()));
        prop_assert!(items.len() <= 1 || items.iter().map(TimelineItem::bytes).sum::<usize>() <= max_bytes);
        prop_assert!(serde_json::to_string(&items).is_ok());
    }
}
