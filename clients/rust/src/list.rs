//! The list of conversations from the frames of its stream. No I/O. The rules are those of
//! `clients/transcripts/README.md`.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A conversation of the list, as sent by the gateway (`docs/api/conversations.md`).
#[derive(Debug, Clone, PartialEq)]
pub struct ListedConversation(Map<String, Value>);

impl ListedConversation {
    /// Returns the conversation's id.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Returns the title; empty before the first message.
    pub fn title(&self) -> &str {
        self.text("title")
    }

    /// Returns the conversation's state: `idle`, `queued`, `running`, `waiting_for_approval`,
    /// `waiting_for_client_tool`, or a newer word.
    pub fn state(&self) -> &str {
        self.text("state")
    }

    /// Returns the time of the last change (RFC 3339).
    pub fn updated_at(&self) -> &str {
        self.text("updated_at")
    }

    /// Returns the name of the conversation's agent.
    pub fn agent(&self) -> &str {
        self.text("agent")
    }

    /// Returns every field, as on the wire.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Reads a conversation; `None` for a value without an id.
    pub fn of(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        fields.get("id")?.as_str()?;
        Some(Self(fields.clone()))
    }
}

/// The conditions of a list of conversations. Without conditions, the list has every conversation of the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// The agent of the conversations.
    pub agent: Option<String>,
    /// The party that the conversations wait for: `approval` or `client_tool`.
    pub waiting_for: Option<String>,
    /// A text in the titles, at most 512 bytes.
    pub search: Option<String>,
}

/// The conversations of one caller, as known from the stream's frames.
#[derive(Debug, Default)]
pub struct ConversationList {
    by_id: HashMap<String, ListedConversation>,
}

impl ConversationList {
    /// Returns the conversations, with the last updated first.
    pub fn conversations(&self) -> Vec<ListedConversation> {
        let mut shown: Vec<_> = self.by_id.values().cloned().collect();
        shown.sort_by(|one, other| {
            let key = |it: &ListedConversation| (it.updated_at().to_owned(), it.id().to_owned());
            key(other).cmp(&key(one))
        });
        shown
    }

    /// Takes the data of the next frame. Returns true when the list may have changed.
    pub fn apply(&mut self, data: &Value) -> bool {
        match data["type"].as_str() {
            Some("list") => {
                self.by_id.clear();
                for row in data["conversations"].as_array().into_iter().flatten() {
                    self.put(row);
                }
                true
            }
            Some("conversation_changed") => self.put(&data["conversation"]),
            Some("conversation_removed") => {
                let id = data["conversation_id"].as_str().unwrap_or_default();
                self.by_id.remove(id).is_some()
            }
            _ => false,
        }
    }

    fn put(&mut self, row: &Value) -> bool {
        let Some(conversation) = ListedConversation::of(row) else {
            return false;
        };
        self.by_id
            .insert(conversation.id().to_owned(), conversation);
        true
    }
}
