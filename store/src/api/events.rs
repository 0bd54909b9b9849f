//! The event log as readers see it, and where a conversation stands.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{LogId, event::Event};

use super::{Access, PageLimit, Result};

/// Reads the event log: all that a gateway in any process needs to replay a conversation and to follow it.
#[async_trait]
pub trait EventReader: Send + Sync {
    /// Returns events with `sequence_number >= from_sequence`, in order, up to `limit`. The page of a log
    /// that was removed is empty, also when there is another conversation with the same id now.
    async fn events(
        &self,
        access: &Access,
        log: &EventLog,
        from_sequence: u32,
        limit: PageLimit,
    ) -> Result<EventPage>;

    /// Returns the last event that a reader of this log and one of another version of it have in common: the last one
    /// before the event `before` that was saved no later than `saved_by`; 0 when there is none. A log has another
    /// version when the database lost its last commits, and what was lost was saved again, later.
    async fn last_common(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        saved_by: DateTime<Utc>,
    ) -> Result<u32>;

    /// Says where the conversation stands; `None` when there is no such conversation. The store alone answers, so no
    /// worker has to be alive.
    async fn conversation_status(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationStatus>>;

    /// Returns the log and the largest sequence number of each of these conversations, in no order. Those that do not
    /// exist are left out. A gateway finds out with it which announcements it missed.
    async fn last_sequences(&self, conversation_ids: &[String]) -> Result<Vec<(EventLog, u32)>>;
}

/// The event log of a conversation. When a conversation is removed and another one gets its id, that one has another
/// log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventLog {
    /// The conversation.
    pub conversation_id: String,
    /// Which conversation of this id.
    pub id: LogId,
}

/// A page of the event log.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, by rising sequence number.
    pub events: Vec<Event>,
    /// True exactly when at least one more event is stored behind this page.
    pub has_more: bool,
    /// The newest generation that was claimed for each agent execution that runs (invariant 7, fenced deltas), at the
    /// moment at which the page was read. A page without events has none.
    pub generations: BTreeMap<String, u32>,
}

/// Where a conversation stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationStatus {
    /// The log that the conversation of this id has now.
    pub log_id: LogId,
    /// True when a turn is running or a message waits for its turn.
    pub is_running: bool,
    /// The largest sequence number; 0 before the first event.
    pub last_sequence: u32,
    /// The message whose turn is running, else the one that waits longest.
    pub current_message_id: Option<String>,
}
