//! The list of conversations from the frames of its stream. No I/O. The rules are those of `clients/transcripts/README.md`.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A conversation of the list, as the gateway sent it (`docs/api/conversations.md`).
#[derive(Debug, Clone, PartialEq)]
pub struct ListedConversation(Map<String, Value>);

impl ListedConversation {
    /// Its id.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Its title; empty before the first message.
    pub fn title(&self) -> &str {
        self.text("title")
    }

    /// What goes on in it: `idle`, `queued`, `running`, `waiting_for_approval`, `waiting_for_client_tool`, or a word that is
    /// newer.
    pub fn state(&self) -> &str {
        self.text("state")
    }

    /// When something happened in it last (RFC 3339).
    pub fn updated_at(&self) -> &str {
        self.text("updated_at")
    }

    /// All fields, as on the wire.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Reads a conversation; `None` for what has no id.
    fn of(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        fields.get("id")?.as_str()?;
        Some(Self(fields.clone()))
    }
}

/// The conversations of one caller, as far as the frames of the stream have told.
#[derive(Debug, Default)]
pub struct ConversationList {
    by_id: HashMap<String, ListedConversation>,
}

impl ConversationList {
    /// The conversations, the one that was updated last first.
    pub fn conversations(&self) -> Vec<ListedConversation> {
        let mut shown: Vec<_> = self.by_id.values().cloned().collect();
        shown.sort_by(|one, other| {
            let place = |it: &ListedConversation| (it.updated_at().to_owned(), it.id().to_owned());
            place(other).cmp(&place(one))
        });
        shown
    }

    /// Takes the data of the next frame. True when the list may have changed.
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
