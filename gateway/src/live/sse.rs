//! Frames as server-sent events.
//!
//! Only persisted events carry an `id:`, their sequence number: what a browser sends back as `Last-Event-ID` is
//! always a cursor (invariant 8).

use std::{fmt::Write as _, time::Duration};

use axum::body::Bytes;
use everturn_proto::event::Event;
use everturn_stream::{Part, TextKey};
use serde::{Serialize, Serializer, ser::SerializeMap};
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    fields::Fields,
    live::tail::Frame,
    schema::{Id, Sequence, one_of},
};

/// A comment: keeps proxies from cutting an idle stream.
pub const HEARTBEAT: &str = ": still here\n\n";

/// A frame and its bytes, made once for all who read it.
#[derive(Debug)]
pub struct Rendered {
    /// What it says.
    pub frame: Frame,
    /// How it goes out.
    pub bytes: Bytes,
}

impl Rendered {
    /// Renders a frame of the conversation.
    pub fn new(conversation_id: &str, frame: Frame) -> Self {
        let bytes = Bytes::from(render(conversation_id, &frame));
        Self { frame, bytes }
    }
}

/// How long the reader should wait before it comes back.
pub fn retry(after: Duration) -> String {
    format!("retry: {}\n\n", after.as_millis())
}

/// `data` of the first frame: where this connection begins.
#[derive(Serialize, ToSchema)]
#[schema(as = ReplayFrame)]
pub(crate) struct Replay<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = replay_frame)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    /// The first event that will come.
    from_sequence: u32,
    /// The last one there is now.
    #[schema(value_type = Sequence)]
    last_sequence: u32,
}

fn replay_frame() -> Object {
    one_of(&["replay"])
}

/// Where the replay begins: the first event that will come, and the last one there is now.
pub fn replay(conversation_id: &str, from_sequence: u32, last_sequence: u32) -> String {
    let body = Replay {
        kind: "replay",
        conversation_id,
        from_sequence,
        last_sequence,
    };
    message(None, body.kind, &json(&body))
}

/// `data` of the last frame of a gateway that stops: come back, after a while.
#[derive(Serialize, ToSchema)]
#[schema(as = ReconnectFrame)]
pub(crate) struct Reconnect<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = reconnect_frame)]
    kind: &'a str,
    /// Another time for each reader.
    #[schema(value_type = u64)]
    delay_ms: u128,
}

fn reconnect_frame() -> Object {
    one_of(&["reconnect"])
}

/// This gateway stops: connect again, after a while.
pub fn reconnect(delay: Duration) -> String {
    let body = Reconnect {
        kind: "reconnect",
        delay_ms: delay.as_millis(),
    };
    // In the frame itself: a client that reads no `delay_ms` has the same from its library.
    format!(
        "retry: {}\n{}",
        delay.as_millis(),
        message(None, body.kind, &json(&body))
    )
}

/// Why there is nothing to come back for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The turn that was asked for has ended.
    TurnEnded,
    /// The conversation is gone.
    ConversationDeleted,
    /// The reader's credential is no longer valid; with another one it may come back.
    TokenExpired,
}

/// `data` of the last frame of a stream that its reader need not open again.
#[derive(Serialize, ToSchema)]
#[schema(as = EndFrame)]
pub(crate) struct End<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = end_frame)]
    kind: &'a str,
    reason: EndReason,
    /// Always false.
    reconnect: bool,
}

fn end_frame() -> Object {
    one_of(&["end"])
}

/// The last frame of a stream that its reader need not open again.
pub fn end(reason: EndReason) -> String {
    let body = End {
        kind: "end",
        reason,
        reconnect: false,
    };
    message(None, body.kind, &json(&body))
}

/// The first frame of a chat: where the message went.
pub fn conversation(conversation_id: &str, message_id: &str) -> String {
    message(
        None,
        "conversation",
        &json(&Started {
            conversation_id,
            message_id,
        }),
    )
}

/// `data` of the first frame of a chat: where the message went.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChatFrame)]
pub(crate) struct Started<'a> {
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    message_id: &'a str,
}

/// Any frame of a tail.
pub fn render(conversation_id: &str, frame: &Frame) -> String {
    match frame {
        Frame::Event(event) => message(
            Some(event.sequence_number),
            name(&event.event_type),
            &json(&Flat(event)),
        ),
        Frame::TextStart(text) => {
            let body = TextBody::new(
                "text_start",
                conversation_id,
                &text.message_id,
                &text.key,
                text.generation,
            );
            message(
                None,
                "text_start",
                &json(&TextBody {
                    text: Some(&text.text),
                    ..body
                }),
            )
        }
        Frame::TextDelta(piece) => {
            let body = TextBody::new(
                "text_delta",
                conversation_id,
                &piece.message_id,
                &piece.key,
                piece.generation,
            );
            let body = TextBody {
                offset: Some(piece.offset),
                text: Some(&piece.text),
                ..body
            };
            message(None, "text_delta", &json(&body))
        }
        Frame::TextEnd {
            message_id,
            key,
            generation,
        } => {
            let body = TextBody::new("text_end", conversation_id, message_id, key, *generation);
            message(None, "text_end", &json(&body))
        }
    }
}

/// What `event:` says. A browser's `EventSource` has events of its own, which those of a conversation must not be
/// taken for: an `error` there is a broken connection.
fn name(event_type: &str) -> &str {
    match event_type {
        "error" => "turn_error",
        "message" | "open" => "event",
        other => other,
    }
}

/// `data` of a text's frame: what the model is writing now. Its key is `agent_execution_id`, `step` and `part`.
#[derive(Serialize, ToSchema)]
#[schema(as = TextFrame)]
pub(crate) struct TextBody<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = text_frames)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    message_id: &'a str,
    agent_execution_id: &'a str,
    step: u32,
    #[schema(schema_with = parts)]
    part: Part,
    /// The try that wrote the text: with a larger one, the text begins anew.
    generation: u32,
    /// Bytes of UTF-8 before this piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<&'a str>,
}

fn text_frames() -> Object {
    one_of(&["text_start", "text_delta", "text_end"])
}

fn parts() -> Object {
    one_of(&["text", "reasoning"])
}

impl<'a> TextBody<'a> {
    fn new(
        kind: &'a str,
        conversation_id: &'a str,
        message_id: &'a str,
        key: &'a TextKey,
        generation: u32,
    ) -> Self {
        let (agent_execution_id, step, part) = (&key.agent_execution_id, key.step, key.part);
        Self {
            kind,
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
}

/// An event with the fields of its data beside its own, each kept to the letter.
///
/// `message_id` is the data's when it has one (as in `assistant_message`, whose own id it is), else the id of
/// the message whose turn it is.
struct Flat<'a>(&'a Event);

impl Serialize for Flat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(event) = self;
        let fields = event
            .event_data
            .as_ref()
            .map(Fields::of)
            .unwrap_or_default();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &event.event_type)?;
        map.serialize_entry("conversation_id", &event.conversation_id)?;
        if fields.raw("message_id").is_none() {
            map.serialize_entry("message_id", &event.message_id)?;
        }
        map.serialize_entry("sequence_number", &event.sequence_number)?;
        map.serialize_entry("created_at", &event.created_at)?;
        for (name, value) in fields.iter() {
            // The envelope is ours: data cannot pretend to be another event.
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

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "a frame has no JSON form");
        "{}".to_owned()
    })
}

/// One server-sent event.
fn message(id: Option<u32>, name: &str, data: &str) -> String {
    let mut frame = String::with_capacity(data.len() + 64);
    if let Some(id) = id {
        let _ = writeln!(frame, "id: {id}");
    }
    let _ = writeln!(frame, "event: {}", name.replace(['\r', '\n'], " "));
    // Raw JSON may hold line breaks between its tokens; the reader joins the lines again.
    for line in data.split(['\r', '\n']) {
        let _ = writeln!(frame, "data: {line}");
    }
    frame.push('\n');
    frame
}

#[cfg(test)]
mod tests {
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
        render("c", &Frame::Event(event))
    }

    const ENVELOPE: &str = r#""conversation_id":"c","message_id":"m","sequence_number":7,"created_at":"2026-01-02T03:04:05.678Z""#;

    #[test]
    fn event_data_stays_to_the_letter() {
        let data =
            r#"{"tool_input":{"z":9007199254740993,"a":1.10},"execution_id":"exec_1","later":[ ]}"#;
        let expected = format!(
            "id: 7\nevent: act\ndata: {{\"type\":\"act\",{ENVELOPE},{}\n\n",
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
            frame.contains(r#""type":"assistant_message""#)
                && frame.contains(r#""sequence_number":7"#)
        );
        assert!(frame.contains(r#""message_id":"msg_a""#) && !frame.contains(r#""m""#));
        assert_eq!(frame.matches("\"type\"").count(), 1);
    }

    #[test]
    fn odd_data_is_left_out() {
        for data in ["null", "[1,2]", "5"] {
            assert_eq!(
                rendered("x", data),
                format!("id: 7\nevent: x\ndata: {{\"type\":\"x\",{ENVELOPE}}}\n\n")
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
    fn frames_of_the_stream_itself_carry_no_id() {
        assert_eq!(
            replay("c", 5, 9),
            "event: replay\ndata: {\"type\":\"replay\",\"conversation_id\":\"c\",\"from_sequence\":5,\"last_sequence\":9}\n\n"
        );
        assert_eq!(
            reconnect(Duration::from_millis(1200)),
            "retry: 1200\nevent: reconnect\ndata: {\"type\":\"reconnect\",\"delay_ms\":1200}\n\n"
        );
        assert_eq!(
            end(EndReason::ConversationDeleted),
            "event: end\ndata: {\"type\":\"end\",\"reason\":\"conversation_deleted\",\"reconnect\":false}\n\n"
        );
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
        };
        let expected = concat!(
            "event: text_delta\n",
            r#"data: {"type":"text_delta","conversation_id":"c","message_id":"m","agent_execution_id":"run","#,
            r#""step":1,"part":"reasoning","generation":2,"offset":3,"text":"a\nb"}"#,
            "\n\n"
        );
        assert_eq!(render("c", &Frame::TextDelta(piece)), expected);
    }
}
