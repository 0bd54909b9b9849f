//! Conversations as the API shows them: in its answers, and in the frames of a list's stream.

use chrono::{DateTime, SecondsFormat, Utc};
use everturn_proto::{ConversationName, words::ConversationStatus};
use everturn_store::{Conversation, ListCursor, ListedConversation};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::schema::{Id, Sequence, one_of};

/// A conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = Conversation)]
pub(crate) struct ConversationBody {
    #[schema(value_type = Id)]
    id: String,
    agent: String,
    title: String,
    /// The model of new messages, `provider/model`; null for the agent's own model.
    #[schema(required = true, example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// The number of messages: user messages taken by turns, and the agent's answers.
    message_count: u32,
    /// The number of the last event, 0 before the first.
    #[schema(value_type = Sequence)]
    last_sequence: u32,
    #[schema(format = DateTime)]
    created_at: String,
    /// The time of the last change in lists: the conversation was created, a turn began or ended, a message joined a turn,
    /// or a call began or ended to wait for a person or the client. Lists are in this order.
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<Conversation> for ConversationBody {
    fn from(conversation: Conversation) -> Self {
        Self {
            created_at: time(conversation.created_at),
            updated_at: time(conversation.active_at),
            id: conversation.name().to_owned(),
            agent: conversation.agent,
            title: conversation.title.unwrap_or_default(),
            model: conversation.model,
            message_count: conversation.message_count,
            last_sequence: conversation.last_sequence,
        }
    }
}

/// A conversation in a list, with its current activity.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedConversation)]
pub(crate) struct ListedConversationBody {
    #[serde(flatten)]
    conversation: ConversationBody,
    /// The state of the conversation. Ignore unknown words, because later versions add words.
    #[schema(schema_with = states)]
    state: String,
    /// The number of tool calls that wait for a person's approval.
    waiting_approvals: u32,
    /// The number of tool calls that wait for the client to run them.
    waiting_client_tools: u32,
}

fn states() -> Object {
    let states: Vec<_> = ConversationStatus::ALL
        .iter()
        .map(ConversationStatus::as_str)
        .collect();
    one_of(&states)
}

impl From<ListedConversation> for ListedConversationBody {
    fn from(listed: ListedConversation) -> Self {
        Self {
            state: listed.activity.status().into(),
            waiting_approvals: listed.activity.waiting_approvals,
            waiting_client_tools: listed.activity.waiting_client_tools,
            conversation: listed.conversation.into(),
        }
    }
}

/// Writes a time in the format of the API's answers.
pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Writes the cursor of a conversation in the list. The cursor has the conversation's name and not its id, because the
/// id may reveal another tenant.
pub(crate) fn list_cursor(cursor: &ListCursor) -> String {
    page_cursor(cursor.active_at, ConversationName::of_id(&cursor.id))
}

/// Writes the cursor of a row in a list. Clients send the cursor back for the next page and need not understand it.
pub(crate) fn page_cursor(at: DateTime<Utc>, id: &str) -> String {
    format!("{}~{id}", at.to_rfc3339_opts(SecondsFormat::Nanos, true))
}
