//! What a timeline shows of one event.

use chrono::DateTime;
use everturn_proto::{Json, event::Event, words::EventType};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    fields::Fields,
    schema::{Sequence, one_of},
};

/// One item of a timeline.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineItem {
    /// The message's id, else `<event type>-<sequence number>`.
    pub id: String,
    /// `user_message`, `thought`, `tool_call`, `tool_result` or `assistant_message`.
    #[serde(rename = "type")]
    #[schema(schema_with = TimelineItemKind::schema)]
    pub kind: TimelineItemKind,
    /// The event's place.
    #[schema(value_type = Sequence)]
    pub sequence_number: u32,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// Text of a message or a thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content: Option<String>,
    /// Of a user's message that names files: `blob_id`, `media_type`, `file_name` and `bytes` of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<serde_json::Value>>, nullable = false)]
    pub attachments: Option<Json>,
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

/// The kind of a timeline's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineItemKind {
    /// What the user said.
    UserMessage,
    /// What the model said before it asked for tools.
    Thought,
    /// What the model asked of a tool.
    ToolCall,
    /// What the tool answered.
    ToolResult,
    /// What the agent answered.
    AssistantMessage,
}

impl TimelineItemKind {
    fn schema() -> Object {
        one_of(&[
            "user_message",
            "thought",
            "tool_call",
            "tool_result",
            "assistant_message",
        ])
    }
}

impl TimelineItem {
    /// About how many bytes the item has as JSON.
    pub(super) fn bytes(&self) -> usize {
        const NAMES_AND_IDS: usize = 300;
        let json = |value: &Option<Json>| value.as_ref().map_or(0, |json| json.as_str().len());
        let content = self.content.as_ref().map_or(0, String::len);
        NAMES_AND_IDS
            + content
            + json(&self.attachments)
            + json(&self.tool_input)
            + json(&self.tool_output)
    }

    /// Returns the item of an event; `None` for an event that timelines do not show.
    pub fn of(event: &Event) -> Option<Self> {
        let fields = Fields::of_event(event);
        match event.event_type() {
            EventType::UserMessage => Some(Self::user_message(event, &fields)),
            EventType::Thought => Self::thought(event, &fields),
            EventType::Act => Some(Self::tool_call(event, &fields)),
            EventType::Observe => Some(Self::tool_result(event, &fields)),
            EventType::AssistantMessage => Some(Self::assistant_message(event, &fields)),
            EventType::WorkPlan
            | EventType::PlanStepStart
            | EventType::PlanStepEnd
            | EventType::PatternMatch
            | EventType::SkillMatched
            | EventType::SkillExecutionStart
            | EventType::SkillExecutionComplete
            | EventType::Complete
            | EventType::Error
            | EventType::Cancelled
            | EventType::ApprovalRequested
            | EventType::ApprovalResolved
            | EventType::ClientToolRequested
            | EventType::SubAgentStart
            | EventType::ContextCompacted
            | EventType::ModelFallback
            | EventType::Unknown(_) => None,
        }
    }

    fn user_message(event: &Event, fields: &Fields<'_>) -> Self {
        let mut item = Self::new(TimelineItemKind::UserMessage, event);
        let of_turn = Some(event.message_id.clone()).filter(|id| !id.is_empty());
        if let Some(id) = id(fields, "message_id").or(of_turn) {
            item.id = id;
        }
        item.content = Some(text(fields, "content"));
        item.attachments = json(fields, "attachments");
        item
    }

    fn assistant_message(event: &Event, fields: &Fields<'_>) -> Self {
        let mut item = Self::new(TimelineItemKind::AssistantMessage, event);
        if let Some(id) = id(fields, "message_id") {
            item.id = id;
        }
        item.content = Some(text(fields, "content"));
        item
    }

    fn thought(event: &Event, fields: &Fields<'_>) -> Option<Self> {
        let mut item = Self::new(TimelineItemKind::Thought, event);
        item.content = Some(text(fields, "thought")).filter(|thought| !thought.trim().is_empty());
        item.content.is_some().then_some(item)
    }

    fn tool_call(event: &Event, fields: &Fields<'_>) -> Self {
        Self {
            tool_input: Some(json(fields, "tool_input").unwrap_or_default()),
            ..Self::of_tool(TimelineItemKind::ToolCall, event, fields)
        }
    }

    fn tool_result(event: &Event, fields: &Fields<'_>) -> Self {
        // The events of the first design named it `observation`.
        let output = json(fields, "result").or_else(|| json(fields, "observation"));
        Self {
            tool_output: Some(output.unwrap_or_default()),
            is_error: Some(fields.get("is_error").unwrap_or_default()),
            ..Self::of_tool(TimelineItemKind::ToolResult, event, fields)
        }
    }

    fn of_tool(kind: TimelineItemKind, event: &Event, fields: &Fields<'_>) -> Self {
        Self {
            tool_name: Some(text(fields, "tool_name")),
            execution_id: id(fields, "execution_id"),
            call_id: id(fields, "call_id"),
            ..Self::new(kind, event)
        }
    }

    /// Makes an item with what every item takes from its event.
    fn new(kind: TimelineItemKind, event: &Event) -> Self {
        let created_at = DateTime::parse_from_rfc3339(&event.created_at);
        Self {
            id: format!("{}-{}", event.event_type, event.sequence_number),
            kind,
            sequence_number: event.sequence_number,
            timestamp: created_at.map_or(0, |at| at.timestamp_millis()),
            content: None,
            attachments: None,
            tool_name: None,
            tool_input: None,
            tool_output: None,
            is_error: None,
            execution_id: None,
            call_id: None,
            agent_execution_id: None,
            parent_tool_call_id: None,
        }
    }
}

fn text(fields: &Fields<'_>, name: &str) -> String {
    fields.get(name).unwrap_or_default()
}

fn id(fields: &Fields<'_>, name: &str) -> Option<String> {
    fields.get(name).filter(|id: &String| !id.is_empty())
}

fn json(fields: &Fields<'_>, name: &str) -> Option<Json> {
    fields.raw(name).and_then(|raw| Json::parse(raw).ok())
}
