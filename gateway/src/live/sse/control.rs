//! Frames about the stream itself: the beginning and the end.

use std::time::Duration;

use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use super::message::{StreamFrame, json, message};
use crate::schema::{Id, Sequence, one_of};

/// A comment as heartbeat. The comment keeps proxies from cutting an idle stream.
pub(crate) const HEARTBEAT: &str = ": still here\n\n";

/// Returns the `retry:` field: the time until the reader should connect again.
pub(crate) fn retry(after: Duration) -> String {
    format!("retry: {}\n\n", after.as_millis())
}

/// `data` of the first frame: the position where the connection begins.
#[derive(Serialize, ToSchema)]
#[schema(as = ReplayFrame)]
pub(crate) struct ReplayFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = replay_type)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    /// The sequence number of the first event in the stream, unless a frame `reset` follows.
    from_sequence: u32,
    /// The sequence number of the conversation's last event at the start of the stream.
    #[schema(value_type = Sequence)]
    last_sequence: u32,
}

fn replay_type() -> Object {
    one_of(&[StreamFrame::Replay.as_str()])
}

/// Returns the first frame: the sequence numbers of the first event to come and of the conversation's last event.
pub(crate) fn replay(conversation_id: &str, from_sequence: u32, last_sequence: u32) -> String {
    let body = ReplayFrame {
        kind: StreamFrame::Replay.as_str(),
        conversation_id,
        from_sequence,
        last_sequence,
    };
    message(None, body.kind, &json(&body))
}

/// `data` of the frame for a client whose cursor comes from another log. The database has lost its last commits, or the
/// conversation was removed and made anew. The client must discard events and texts from `from_sequence` on.
#[derive(Serialize, ToSchema)]
#[schema(as = ResetFrame)]
pub(crate) struct ResetFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = reset_type)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    /// The sequence number of the first event after the reset.
    #[schema(value_type = Sequence)]
    from_sequence: u32,
}

fn reset_type() -> Object {
    one_of(&[StreamFrame::Reset.as_str()])
}

/// Returns the frame that tells a reader to begin anew.
pub(super) fn reset(conversation_id: &str, from_sequence: u32) -> String {
    let body = ResetFrame {
        kind: StreamFrame::Reset.as_str(),
        conversation_id,
        from_sequence,
    };
    message(None, body.kind, &json(&body))
}

/// `data` of the last frame of a gateway that stops. The client should connect again after `delay_ms`.
#[derive(Serialize, ToSchema)]
#[schema(as = ReconnectFrame)]
pub(crate) struct ReconnectFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = reconnect_type)]
    kind: &'a str,
    /// The delay in milliseconds until the client should connect again. The delay differs per client.
    #[schema(value_type = u64)]
    delay_ms: u128,
}

fn reconnect_type() -> Object {
    one_of(&[StreamFrame::Reconnect.as_str()])
}

/// Returns the last frame of a gateway that stops. The reader should connect again after the delay.
pub(crate) fn reconnect(delay: Duration) -> String {
    let body = ReconnectFrame {
        kind: StreamFrame::Reconnect.as_str(),
        delay_ms: delay.as_millis(),
    };
    // The delay is also in the server-sent `retry:` field, for a client without support for `delay_ms`. The client's
    // library obeys the `retry:` field.
    format!(
        "retry: {}\n{}",
        delay.as_millis(),
        message(None, body.kind, &json(&body))
    )
}

/// The reason for the end of a stream that the client need not open again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = EndReason)]
#[serde(rename_all = "snake_case")]
pub enum StreamEnd {
    /// The requested turn has ended.
    TurnEnded,
    /// The conversation is gone.
    ConversationDeleted,
    /// The client's credential is no longer valid. With a new credential, the client may connect again.
    TokenExpired,
}

/// `data` of the last frame of a stream that the client need not open again.
#[derive(Serialize, ToSchema)]
#[schema(as = EndFrame)]
pub(crate) struct EndFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = end_type)]
    kind: &'a str,
    reason: StreamEnd,
    /// Always false.
    reconnect: bool,
}

fn end_type() -> Object {
    one_of(&[StreamFrame::End.as_str()])
}

/// Returns the last frame of a stream that the reader need not open again.
pub(crate) fn end(reason: StreamEnd) -> String {
    let body = EndFrame {
        kind: StreamFrame::End.as_str(),
        reason,
        reconnect: false,
    };
    message(None, body.kind, &json(&body))
}

/// Returns the second frame of a chat, after `replay`: the conversation and the message's id.
pub(crate) fn conversation(conversation_id: &str, message_id: &str) -> String {
    message(
        None,
        StreamFrame::Conversation.as_str(),
        &json(&ChatFrame {
            conversation_id,
            message_id,
        }),
    )
}

/// `data` of the second frame of a chat, after `replay`: the conversation and the id of the message.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChatFrame)]
pub(crate) struct ChatFrame<'a> {
    #[schema(value_type = Id)]
    conversation_id: &'a str,
    message_id: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

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
            end(StreamEnd::ConversationDeleted),
            "event: end\ndata: {\"type\":\"end\",\"reason\":\"conversation_deleted\",\"reconnect\":false}\n\n"
        );
    }
}
