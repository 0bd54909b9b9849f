//! The timeline (B9): made from events alone, by a pure function.
//!
//! Unknown events are skipped and missing fields are left out: events of every earlier version make a timeline.

use std::collections::{HashMap, VecDeque};

use chrono::DateTime;
use everturn_proto::{
    Json,
    event::Event,
    words::event_type::{
        ACT, APPROVAL_RESOLVED, ASSISTANT_MESSAGE, OBSERVE, SUB_AGENT_START, THOUGHT, USER_MESSAGE,
    },
};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    fields::Fields,
    schema::{Sequence, one_of},
};

const TOOL_CALL: &str = "tool_call";

/// One item of a timeline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TimelineItem)]
pub struct Item {
    /// The message's id, else `<event type>-<sequence number>`.
    pub id: String,
    /// `user_message`, `thought`, `tool_call`, `tool_result` or `assistant_message`.
    #[serde(rename = "type")]
    #[schema(schema_with = kinds)]
    pub kind: &'static str,
    /// The event's place.
    #[schema(value_type = Sequence)]
    pub sequence_number: u32,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// Text of a message or a thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content: Option<String>,
    /// Of a tool call or result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool_name: Option<String>,
    /// Of a tool call, to the letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub tool_input: Option<Json>,
    /// Of a tool result, to the letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub tool_output: Option<Json>,
    /// Of a tool result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub is_error: Option<bool>,
    /// Of a tool call or result: what pairs the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub execution_id: Option<String>,
    /// Of a tool call or result: the model's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub call_id: Option<String>,
    /// Of a sub-agent's item: its agent execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_execution_id: Option<String>,
    /// Of a sub-agent's item: the `callId` of the tool call that started the sub-agent, under which it belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

fn kinds() -> Object {
    one_of(&[
        "user_message",
        "thought",
        "tool_call",
        "tool_result",
        "assistant_message",
    ])
}

/// A timeline under construction: the newest items, and how many there are in all.
#[derive(Debug)]
pub struct Timeline {
    items: VecDeque<Item>,
    total: usize,
    limit: usize,
    /// The calls that started sub-agents, by agent execution. As many as the conversation has sub-agents.
    parents: HashMap<String, String>,
}

impl Timeline {
    /// An empty timeline that keeps the newest `limit` items.
    pub fn new(limit: usize) -> Self {
        Self {
            items: VecDeque::new(),
            total: 0,
            limit,
            parents: HashMap::new(),
        }
    }

    /// Adds the next event.
    pub fn push(&mut self, event: &Event) {
        if event.event_type == APPROVAL_RESOLVED {
            self.show_approved_input(event);
        }
        let fields = event
            .event_data
            .as_ref()
            .map(Fields::of)
            .unwrap_or_default();
        let execution = fields
            .get::<String>("agent_execution_id")
            .unwrap_or_default();
        if event.event_type == SUB_AGENT_START
            && let Some(call_id) = fields.get("call_id")
        {
            self.parents.insert(execution.clone(), call_id);
        }
        if let Some(mut item) = item(event) {
            if let Some(call_id) = self.parents.get(&execution) {
                item.parent_tool_call_id = Some(call_id.clone());
                item.agent_execution_id = Some(execution);
            }
            self.total += 1;
            self.items.push_back(item);
            if self.items.len() > self.limit {
                self.items.pop_front();
            }
        }
    }

    /// A call that was approved with another input shows what ran.
    fn show_approved_input(&mut self, event: &Event) {
        let fields = event
            .event_data
            .as_ref()
            .map(Fields::of)
            .unwrap_or_default();
        let input = fields
            .raw("tool_input")
            .and_then(|raw| Json::parse(raw).ok());
        let id = fields.get::<String>("execution_id");
        let call = self
            .items
            .iter_mut()
            .rev()
            .find(|item| item.kind == TOOL_CALL && item.execution_id == id);
        if let (Some(call), Some(input), Some(true)) = (call, input, fields.get("edited")) {
            call.tool_input = Some(input);
        }
    }

    /// Items seen, those dropped included.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The items, in order.
    pub fn into_items(self) -> Vec<Item> {
        self.items.into()
    }
}

/// The item of an event; `None` for events that timelines do not show.
pub fn item(event: &Event) -> Option<Item> {
    let fields = event
        .event_data
        .as_ref()
        .map(Fields::of)
        .unwrap_or_default();
    let base = Item {
        id: format!("{}-{}", event.event_type, event.sequence_number),
        sequence_number: event.sequence_number,
        timestamp: DateTime::parse_from_rfc3339(&event.created_at)
            .map_or(0, |at| at.timestamp_millis()),
        ..Item::default()
    };
    let text = |name: &str| fields.get::<String>(name);
    let id = |name: &str| text(name).filter(|id| !id.is_empty());
    let json = |name: &str| fields.raw(name).and_then(|raw| Json::parse(raw).ok());
    Some(match event.event_type.as_str() {
        USER_MESSAGE => {
            let own = id("message_id")
                .or_else(|| Some(event.message_id.clone()).filter(|id| !id.is_empty()));
            let content = Some(text("content").unwrap_or_default());
            Item {
                kind: "user_message",
                id: own.unwrap_or(base.id),
                content,
                ..base
            }
        }
        ASSISTANT_MESSAGE => {
            let content = Some(text("content").unwrap_or_default());
            Item {
                kind: "assistant_message",
                id: id("message_id").unwrap_or(base.id),
                content,
                ..base
            }
        }
        THOUGHT => {
            let content = text("thought").filter(|thought| !thought.trim().is_empty())?;
            Item {
                kind: "thought",
                content: Some(content),
                ..base
            }
        }
        ACT => Item {
            kind: TOOL_CALL,
            tool_name: Some(text("tool_name").unwrap_or_default()),
            tool_input: Some(json("tool_input").unwrap_or_default()),
            execution_id: id("execution_id"),
            call_id: id("call_id"),
            ..base
        },
        OBSERVE => Item {
            kind: "tool_result",
            tool_name: Some(text("tool_name").unwrap_or_default()),
            tool_output: Some(
                json("result")
                    .or_else(|| json("observation"))
                    .unwrap_or_default(),
            ),
            is_error: Some(fields.get("is_error").unwrap_or_default()),
            execution_id: id("execution_id"),
            call_id: id("call_id"),
            ..base
        },
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
        let mut timeline = Timeline::new(100);
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
        assert!(
            items[3].contains(r#""id":"observe-4""#) && items[3].contains(r#""toolOutput":null"#)
        );
        assert!(items[4].contains(r#""id":"assistant_message-5""#));
    }

    #[test]
    fn a_time_that_is_none_is_0() {
        let mut event = events(&[("user_message", "{}")]).remove(0);
        event.created_at = "yesterday".to_owned();
        assert_eq!(item(&event).unwrap().timestamp, 0);
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
        assert!(items[1].ends_with(
            r#""content":"hi","agentExecutionId":"child","parentToolCallId":"call_1"}"#
        ));
        assert!(!items[0].contains("parentToolCallId") && !items[2].contains("agentExecutionId"));
    }

    #[test]
    fn keeps_the_newest_and_counts_all() {
        let mut timeline = Timeline::new(2);
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
}
