//! Events and texts for a conversation's readers, as server-sent events.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::body::Bytes;
use everturn_proto::event::Event;
use everturn_stream::{ModelWait, Notice, OpenText, Part, Piece, TextKey, ToolProgress};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Number;
use utoipa::{ToSchema, openapi::schema::Object};

use super::{
    control::reset,
    message::{StreamFrame, json, message},
};
use crate::{
    fields::Fields,
    limits::memory::{Account, Held},
    live::{cursor::Cursor, frame::LiveFrame},
    schema::{Id, one_of},
};

/// A frame and its bytes, rendered once for all readers.
#[derive(Debug)]
pub struct RenderedFrame {
    /// The frame itself.
    pub frame: LiveFrame,
    /// The frame's bytes on the wire. The bytes count to the tenant until the last reader drops them.
    pub bytes: Bytes,
    /// The cursor after the frame's event; `None` for a frame without an event.
    pub(in crate::live) cursor: Option<Cursor>,
    /// The memory of the frame itself, which is about the size of the frame's bytes.
    _held: Held,
}

impl RenderedFrame {
    /// Renders a frame of the conversation with the name `conversation`, and counts the frame to the account.
    pub(in crate::live) fn new(
        conversation: &str,
        frame: LiveFrame,
        account: &Arc<Account>,
    ) -> Self {
        let cursor = match &frame {
            LiveFrame::Event(event) => Some(Cursor::behind(event)),
            _ => None,
        };
        let text = render(conversation, &frame, cursor);
        let bytes = account.counted(text.into_bytes().into_boxed_slice());
        Self {
            frame,
            cursor,
            _held: account.hold(bytes.len()),
            bytes,
        }
    }
}

/// Returns a frame as text. `conversation_id` is the conversation's name, which is the id for readers.
fn render(conversation_id: &str, frame: &LiveFrame, cursor: Option<Cursor>) -> String {
    match frame {
        LiveFrame::Reset { from_sequence } => reset(conversation_id, *from_sequence),
        LiveFrame::Event(event) => message(
            cursor,
            event_name(&event.event_type),
            &json(&FlatEvent(conversation_id, event)),
        ),
        LiveFrame::TextStart(OpenText {
            message_id,
            key,
            generation,
            text,
            ..
        }) => TextFrame {
            text: Some(text),
            ..TextFrame::new(
                StreamFrame::TextStart,
                conversation_id,
                message_id,
                key,
                *generation,
            )
        }
        .message(),
        LiveFrame::TextDelta(Piece {
            message_id,
            key,
            generation,
            offset,
            text,
            ..
        }) => TextFrame {
            offset: Some(*offset),
            text: Some(text),
            ..TextFrame::new(
                StreamFrame::TextDelta,
                conversation_id,
                message_id,
                key,
                *generation,
            )
        }
        .message(),
        LiveFrame::TextEnd {
            message_id,
            key,
            generation,
        } => TextFrame::new(
            StreamFrame::TextEnd,
            conversation_id,
            message_id,
            key,
            *generation,
        )
        .message(),
        LiveFrame::Notice(Notice::ModelWaits(wait)) => {
            let frame = ModelWaitingFrame::new(conversation_id, wait);
            message(None, frame.kind, &json(&frame))
        }
        LiveFrame::Notice(Notice::ToolWorks(progress)) => {
            let frame = ToolProgressFrame::new(conversation_id, progress);
            message(None, frame.kind, &json(&frame))
        }
    }
}

/// Returns the `event:` of an event type. A browser's `EventSource` has its own events (for example, its `error` is a
/// broken connection), and a client must be able to distinguish a conversation's events from the browser's events.
pub fn event_name(event_type: &str) -> &str {
    match event_type {
        "error" => "turn_error",
        "message" | "open" => "event",
        other => other,
    }
}

/// `data` of a text frame: the text that the model is writing. The key of the text is `agent_execution_id`, `step` and
/// `part`.
#[derive(Serialize, ToSchema)]
#[schema(as = TextFrame)]
pub(crate) struct TextFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = text_frames)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    message_id: &'a str,
    agent_execution_id: &'a str,
    step: u32,
    /// `text`, `reasoning`, or `call_` with the number of a tool call of the step. The text of a call is a line with the name
    /// of the tool, and then the arguments as the model writes them.
    #[schema(schema_with = parts)]
    part: Part,
    /// The number of the attempt that wrote the text. With a larger number, the text begins anew.
    generation: u32,
    /// The number of UTF-8 bytes of the text before the piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<&'a str>,
}

fn text_frames() -> Object {
    one_of(
        &[
            StreamFrame::TextStart,
            StreamFrame::TextDelta,
            StreamFrame::TextEnd,
        ]
        .map(StreamFrame::as_str),
    )
}

fn parts() -> Object {
    let words: Vec<String> = Part::all().map(String::from).collect();
    one_of(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

impl<'a> TextFrame<'a> {
    fn new(
        kind: StreamFrame,
        conversation_id: &'a str,
        message_id: &'a str,
        key: &'a TextKey,
        generation: u32,
    ) -> Self {
        let (agent_execution_id, step, part) = (&key.agent_execution_id, key.step, key.part);
        Self {
            kind: kind.as_str(),
            conversation_id,
            message_id,
            agent_execution_id,
            step,
            part,
            generation,
            offset: None,
            text: None,
        }
    }

    fn message(&self) -> String {
        message(None, self.kind, &json(self))
    }
}

/// `data` of a frame about a call of the model that the provider has refused, and that is made again later. The provider
/// does not bill the call.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelWaitingFrame)]
pub(crate) struct ModelWaitingFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = waiting_type)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    message_id: &'a str,
    agent_execution_id: &'a str,
    step: u32,
    /// The code of the refusal: `llm_rate_limited`, `llm_overloaded` or `llm_unavailable`.
    code: &'a str,
    /// The refusal in a sentence.
    message: &'a str,
    /// The number of the step's next call, refused calls included.
    attempt: u32,
    /// Milliseconds until the next call.
    retry_after_ms: u64,
}

fn waiting_type() -> Object {
    one_of(&[StreamFrame::ModelWaiting.as_str()])
}

impl<'a> ModelWaitingFrame<'a> {
    fn new(conversation_id: &'a str, wait: &'a ModelWait) -> Self {
        Self {
            kind: StreamFrame::ModelWaiting.as_str(),
            conversation_id,
            message_id: &wait.message_id,
            agent_execution_id: &wait.agent_execution_id,
            step: wait.step,
            code: &wait.code,
            message: &wait.message,
            attempt: wait.attempt,
            retry_after_ms: wait.retry_after_ms,
        }
    }
}

/// `data` of a frame about a tool that works on: the progress of the tool, or a line of its log. At most one frame of each
/// kind comes a second from a call, and a frame may be missing.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolProgressFrame)]
pub(crate) struct ToolProgressFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = progress_type)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    message_id: &'a str,
    agent_execution_id: &'a str,
    execution_id: &'a str,
    tool_name: &'a str,
    /// The amount of work that is done, in the tool's own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = f64)]
    progress: Option<&'a Number>,
    /// The whole amount of work, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = f64)]
    total: Option<&'a Number>,
    /// The tool's words; empty without words.
    message: &'a str,
    /// The level of a line of the tool's log, like `info`. A frame about progress has no level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    level: Option<&'a str>,
}

fn progress_type() -> Object {
    one_of(&[StreamFrame::ToolProgress.as_str()])
}

impl<'a> ToolProgressFrame<'a> {
    fn new(conversation_id: &'a str, progress: &'a ToolProgress) -> Self {
        Self {
            kind: StreamFrame::ToolProgress.as_str(),
            conversation_id,
            message_id: &progress.message_id,
            agent_execution_id: &progress.agent_execution_id,
            execution_id: &progress.execution_id,
            tool_name: &progress.tool_name,
            progress: progress.progress.as_ref(),
            total: progress.total.as_ref(),
            message: &progress.message,
            level: progress.level.as_deref(),
        }
    }
}

/// An event as one flat JSON object: the event's own fields, and the unchanged fields of the event's data.
///
/// `message_id` is the data's `message_id` if present (in `assistant_message`, the id of the answer itself). Otherwise
/// `message_id` is the id of the turn's message.
struct FlatEvent<'a>(&'a str, &'a Event);

impl Serialize for FlatEvent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(conversation_id, event) = self;
        let fields = Fields::of_event(event);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &event.event_type)?;
        map.serialize_entry("conversation_id", conversation_id)?;
        if fields.raw("message_id").is_none() {
            map.serialize_entry("message_id", &event.message_id)?;
        }
        map.serialize_entry("sequence_number", &event.sequence_number)?;
        map.serialize_entry("created_at", &event.created_at)?;
        for (name, value) in fields.iter() {
            // The envelope fields belong to Everturn: data must not be able to imitate another event.
            if !matches!(
                name,
                "type" | "conversation_id" | "sequence_number" | "created_at"
            ) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}
