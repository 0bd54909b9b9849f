//! Frames of the stream of a conversation list.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{ToSchema, openapi::schema::Object};

use super::message::{json, message};
use crate::{
    listed::ListedConversationBody,
    schema::{Id, one_of},
};

/// The names in `event:` of the list frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListStreamFrame {
    /// The newest conversations. The frame is the first frame for a reader, and replaces the reader's whole list.
    List,
    /// A conversation that is new in the list, or whose entry has changed.
    ConversationChanged,
    /// A conversation that is no longer in the list.
    ConversationRemoved,
}

impl ListStreamFrame {
    /// Returns the name on the wire.
    fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::ConversationChanged => "conversation_changed",
            Self::ConversationRemoved => "conversation_removed",
        }
    }
}

/// `data` of the frame with the newest conversations. The frame begins a list's stream, and later replaces the client's
/// whole list.
#[derive(Serialize, ToSchema)]
#[schema(as = ListFrame)]
pub(crate) struct ListFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = list_type)]
    kind: &'a str,
    /// The conversations, with the last updated conversation first.
    #[schema(value_type = Vec<ListedConversationBody>)]
    conversations: &'a [&'a RawValue],
    /// The value of `before` for the list page with older conversations; null without older conversations.
    #[schema(required = true)]
    next_before: Option<&'a str>,
}

fn list_type() -> Object {
    one_of(&[ListStreamFrame::List.as_str()])
}

/// Returns the frame with the whole list.
pub(crate) fn list(conversations: &[&RawValue], next_before: Option<&str>) -> String {
    let body = ListFrame {
        kind: ListStreamFrame::List.as_str(),
        conversations,
        next_before,
    };
    message(None, body.kind, &json(&body))
}

/// `data` of the frame of a conversation that is new in the list, or whose entry has changed.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationChangedFrame)]
pub(crate) struct ConversationChangedFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = changed_type)]
    kind: &'a str,
    /// The new entry of the conversation. The entry replaces the client's entry with the same id.
    #[schema(value_type = ListedConversationBody)]
    conversation: &'a RawValue,
}

fn changed_type() -> Object {
    one_of(&[ListStreamFrame::ConversationChanged.as_str()])
}

/// Returns the frame of a new or changed conversation.
pub(crate) fn conversation_changed(conversation: &RawValue) -> String {
    let body = ConversationChangedFrame {
        kind: ListStreamFrame::ConversationChanged.as_str(),
        conversation,
    };
    message(None, body.kind, &json(&body))
}

/// `data` of the frame of a conversation that is no longer in the list.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationRemovedFrame)]
pub(crate) struct ConversationRemovedFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = removed_type)]
    kind: &'a str,
    #[schema(value_type = Id)]
    conversation_id: &'a str,
}

fn removed_type() -> Object {
    one_of(&[ListStreamFrame::ConversationRemoved.as_str()])
}

/// Returns the frame of a removed conversation.
pub(crate) fn conversation_removed(conversation_id: &str) -> String {
    let body = ConversationRemovedFrame {
        kind: ListStreamFrame::ConversationRemoved.as_str(),
        conversation_id,
    };
    message(None, body.kind, &json(&body))
}
