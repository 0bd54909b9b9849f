//! The timeline item of one event.

use chrono::DateTime;
use everturn_proto::{
    Json,
    event::{Event, Usage},
    words::EventType,
};
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
    /// The message's id for a message; otherwise `<event type>-<sequence number>`.
    pub id: String,
    /// The type of the item: `user_message`, `thought`, `tool_call`, `tool_result`, `assistant_message`, or the type of
    /// the item's event. Clients must skip unknown types, because later versions add types.
    #[serde(rename = "type")]
    #[schema(schema_with = TimelineItemKind::schema)]
    pub kind: TimelineItemKind,
    /// The sequence number of the item's event.
    #[schema(value_type = Sequence)]
    pub sequence_number: u32,
    /// The time of the event, in milliseconds since 1970.
    pub timestamp: i64,
    /// The text of a message; the text of a thought, which is empty if the model only reasoned; the sentence of an
    /// `error`; the reason of a `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content: Option<String>,
    /// The model's reasoning, in a thought with a reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reasoning: Option<String>,
    /// The sources that the text of an answer or a thought cites: objects with `url`, `title` and `text` (the cited
    /// passage), without the fields that the provider did not send. Absent if the text cites nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<serde_json::Value>>, nullable = false)]
    pub citations: Option<Json>,
    /// The attached files of a user's message: `blob_id`, `media_type`, `file_name` and `bytes` per file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<serde_json::Value>>, nullable = false)]
    pub attachments: Option<Json>,
    /// In a retry: the id of the message whose failed turn was retried. A retry has an empty text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_of: Option<String>,
    /// The name of the tool, in a tool call or result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool_name: Option<String>,
    /// The title of a tool call for people, like `Search the web for cats`; absent if the tool has no template, or an input
    /// of the template is missing. Without a title, show the name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<String>,
    /// The input of a tool call, exactly as in the event. An input edited in an approval replaces the model's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub tool_input: Option<Json>,
    /// The output of a tool result, exactly as in the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub tool_output: Option<Json>,
    /// True for a tool result with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub is_error: Option<bool>,
    /// True for a result of an interrupted tool. The tool may or may not have had its effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub outcome_unknown: Option<bool>,
    /// The duration of the tool, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duration_ms: Option<u32>,
    /// The id of the tool execution. The tool call, its result and later items about the call have an equal id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub execution_id: Option<String>,
    /// The model's id of the tool call. The tool call, its result and later items about the call have an equal id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub call_id: Option<String>,
    /// The number of the LLM call within the agent execution, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub step: Option<u32>,
    /// True for an incomplete answer, because the turn was cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub partial: Option<bool>,
    /// The reason for the end of the answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "stop")]
    pub finish: Option<String>,
    /// The stable code of an `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "step_limit")]
    pub code: Option<String>,
    /// The tokens of the agent and its sub-agents at every level. The last item of a turn, or of a sub-agent's part,
    /// has the usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub usage: Option<ItemUsage>,
    /// The cost of the usage, in USD; absent if no model has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "0.0421")]
    pub cost_usd: Option<String>,
    /// The event's data. Present if the item's type equals the event's type, except in `error` and `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>, nullable = false)]
    pub data: Option<Json>,
    /// The id of the sub-agent's agent execution, in a sub-agent's item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_execution_id: Option<String>,
    /// The `callId` of the tool call that started the sub-agent, in a sub-agent's item. Show the item below the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

/// The tokens of LLM calls with stored answers.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
// The field names are the names on the wire.
#[allow(clippy::struct_field_names)]
pub struct ItemUsage {
    input_tokens: u32,
    output_tokens: u32,
    /// The input tokens that the provider read from its cache. Part of `inputTokens`.
    cached_tokens: u32,
    /// The input tokens that the provider wrote to its cache. Part of `inputTokens`.
    cache_write_tokens: u32,
    /// The output tokens of the reasoning. Part of `outputTokens`.
    reasoning_tokens: u32,
    /// True if a provider counted no tokens for a call, and the numbers include Everturn's estimate.
    estimated: bool,
}

impl From<Usage> for ItemUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            estimated: usage.estimated,
        }
    }
}

/// Makes the item kinds and their words.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $word:literal,)+) => {
        /// The kind of a timeline item.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        pub enum TimelineItemKind {
            $($(#[$doc])+ #[serde(rename = $word)] $kind,)+
        }

        impl TimelineItemKind {
            fn schema() -> Object {
                one_of(&[$($word),+])
            }
        }
    };
}

kinds! {
    /// A message of the user.
    UserMessage = "user_message",
    /// The model's text before its tool calls, and its reasoning.
    Thought = "thought",
    /// A tool call of the model.
    ToolCall = "tool_call",
    /// The result of a tool call.
    ToolResult = "tool_result",
    /// The answer of the agent.
    AssistantMessage = "assistant_message",
    /// The end of an agent without an answer.
    Error = "error",
    /// The cancellation of an agent.
    Cancelled = "cancelled",
    /// The current work plan of the agent.
    WorkPlan = "work_plan",
    /// The start of a plan step.
    PlanStepStart = "step_start",
    /// The end of a plan step.
    PlanStepEnd = "step_end",
    /// A tool call that a person must approve.
    ApprovalRequested = "approval_requested",
    /// The answer to an approval, or the end of an approval without an answer.
    ApprovalResolved = "approval_resolved",
    /// A tool call that the client must run.
    ClientToolRequested = "client_tool_requested",
    /// The start of a sub-agent.
    SubAgentStart = "sub_agent_start",
    /// A compaction: a summary replaces older messages.
    ContextCompacted = "context_compacted",
    /// A step's change to the next model of the chain.
    ModelFallback = "model_fallback",
    /// The answer of a probe about a call with an unknown outcome.
    OutcomeProbed = "outcome_probed",
    /// The outcome of a tool call, settled by a person.
    OutcomeSettled = "outcome_settled",
}

impl TimelineItem {
    /// Returns the approximate size of the item as JSON, in bytes.
    pub(super) fn bytes(&self) -> usize {
        const NAMES_AND_IDS: usize = 300;
        let json = |value: &Option<Json>| value.as_ref().map_or(0, |json| json.as_str().len());
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        NAMES_AND_IDS
            + text(&self.content)
            + text(&self.reasoning)
            + json(&self.citations)
            + json(&self.attachments)
            + json(&self.tool_input)
            + json(&self.tool_output)
            + json(&self.data)
    }

    /// Returns the item of an event; `None` for an event without an item. The end of a completed agent execution has no
    /// item, because the answer's item shows the end ([`TimelineItem::note_end`]).
    pub fn of(event: &Event) -> Option<Self> {
        let fields = Fields::of_event(event);
        let note = |kind| Some(Self::note(kind, event, &fields));
        let mut item = match event.event_type() {
            EventType::UserMessage => Some(Self::user_message(event, &fields)),
            EventType::Thought => Self::thought(event, &fields),
            EventType::Act => Some(Self::tool_call(event, &fields)),
            EventType::Observe => Some(Self::tool_result(event, &fields)),
            EventType::AssistantMessage => Some(Self::assistant_message(event, &fields)),
            EventType::Error => Some(Self::error(event, &fields)),
            EventType::Cancelled => Some(Self::cancelled(event, &fields)),
            EventType::WorkPlan => note(TimelineItemKind::WorkPlan),
            EventType::PlanStepStart => note(TimelineItemKind::PlanStepStart),
            EventType::PlanStepEnd => note(TimelineItemKind::PlanStepEnd),
            EventType::ApprovalRequested => note(TimelineItemKind::ApprovalRequested),
            EventType::ApprovalResolved => note(TimelineItemKind::ApprovalResolved),
            EventType::ClientToolRequested => note(TimelineItemKind::ClientToolRequested),
            EventType::SubAgentStart => note(TimelineItemKind::SubAgentStart),
            EventType::ContextCompacted => note(TimelineItemKind::ContextCompacted),
            EventType::ModelFallback => note(TimelineItemKind::ModelFallback),
            EventType::OutcomeProbed => note(TimelineItemKind::OutcomeProbed),
            EventType::OutcomeSettled => note(TimelineItemKind::OutcomeSettled),
            EventType::PatternMatch
            | EventType::SkillMatched
            | EventType::SkillExecutionStart
            | EventType::SkillExecutionComplete
            | EventType::Complete
            | EventType::Unknown(_) => None,
        }?;
        item.step = fields.get("step");
        Some(item)
    }

    /// Adds the usage and cost from the end of the item's agent execution.
    pub(super) fn note_end(&mut self, end: &Fields<'_>) {
        self.usage = end.get::<Usage>("usage").map(ItemUsage::from);
        self.cost_usd = end.get("cost_usd");
    }

    fn user_message(event: &Event, fields: &Fields<'_>) -> Self {
        let mut item = Self::new(TimelineItemKind::UserMessage, event);
        let of_turn = Some(event.message_id.clone()).filter(|id| !id.is_empty());
        if let Some(id) = id(fields, "message_id").or(of_turn) {
            item.id = id;
        }
        item.content = Some(text(fields, "content"));
        item.attachments = json(fields, "attachments");
        item.retry_of = id(fields, "retry_of");
        item
    }

    fn assistant_message(event: &Event, fields: &Fields<'_>) -> Self {
        let mut item = Self::new(TimelineItemKind::AssistantMessage, event);
        if let Some(id) = id(fields, "message_id") {
            item.id = id;
        }
        item.content = Some(text(fields, "content"));
        item.partial = fields.get("partial").filter(|partial| *partial);
        item.finish = fields.get("finish");
        item.citations = json(fields, "citations");
        item
    }

    fn error(event: &Event, fields: &Fields<'_>) -> Self {
        let mut item = Self::new(TimelineItemKind::Error, event);
        item.content = Some(text(fields, "message"));
        item.code = Some(text(fields, "code"));
        item.note_end(fields);
        item
    }

    fn cancelled(event: &Event, fields: &Fields<'_>) -> Self {
        let mut item = Self::new(TimelineItemKind::Cancelled, event);
        item.content = Some(text(fields, "reason"));
        item.note_end(fields);
        item
    }

    /// Makes an item with the event's unchanged data.
    fn note(kind: TimelineItemKind, event: &Event, fields: &Fields<'_>) -> Self {
        Self {
            execution_id: id(fields, "execution_id"),
            call_id: id(fields, "call_id"),
            data: Some(event.event_data.clone().unwrap_or_default()),
            ..Self::new(kind, event)
        }
    }

    fn thought(event: &Event, fields: &Fields<'_>) -> Option<Self> {
        let is_blank = |text: &String| text.trim().is_empty();
        let content = text(fields, "thought");
        let reasoning = Some(text(fields, "reasoning")).filter(|reasoning| !is_blank(reasoning));
        (!is_blank(&content) || reasoning.is_some()).then(|| Self {
            content: Some(content),
            reasoning,
            citations: json(fields, "citations"),
            ..Self::new(TimelineItemKind::Thought, event)
        })
    }

    fn tool_call(event: &Event, fields: &Fields<'_>) -> Self {
        Self {
            tool_input: Some(json(fields, "tool_input").unwrap_or_default()),
            title: id(fields, "title"),
            ..Self::of_tool(TimelineItemKind::ToolCall, event, fields)
        }
    }

    fn tool_result(event: &Event, fields: &Fields<'_>) -> Self {
        // The events of the first design have the name `observation` for the result.
        let output = json(fields, "result").or_else(|| json(fields, "observation"));
        Self {
            tool_output: Some(output.unwrap_or_default()),
            is_error: Some(fields.get("is_error").unwrap_or_default()),
            outcome_unknown: fields.get("outcome_unknown").filter(|unknown| *unknown),
            duration_ms: fields.get("duration_ms"),
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

    /// Makes an item with the fields common to all items.
    fn new(kind: TimelineItemKind, event: &Event) -> Self {
        let created_at = DateTime::parse_from_rfc3339(&event.created_at);
        Self {
            id: format!("{}-{}", event.event_type, event.sequence_number),
            kind,
            sequence_number: event.sequence_number,
            timestamp: created_at.map_or(0, |at| at.timestamp_millis()),
            content: None,
            reasoning: None,
            citations: None,
            attachments: None,
            retry_of: None,
            tool_name: None,
            title: None,
            tool_input: None,
            tool_output: None,
            is_error: None,
            outcome_unknown: None,
            duration_ms: None,
            execution_id: None,
            call_id: None,
            step: None,
            partial: None,
            finish: None,
            code: None,
            usage: None,
            cost_usd: None,
            data: None,
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
