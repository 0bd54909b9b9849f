//! The event log as readers see it, and where a conversation stands.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{Json, LogId, event::Event};

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

    /// Returns the last events with `sequence_number < before`, in order, up to `limit`; the last of the log when `before`
    /// is larger than all. [`EventPage::has_more`] then says whether there are events before them. The page has no
    /// generations.
    async fn events_before(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        limit: PageLimit,
    ) -> Result<EventPage>;

    /// Looks up what events say of others that may be far away in the log. What is not known is left out.
    async fn event_links(
        &self,
        access: &Access,
        log: &EventLog,
        wanted: &WantedLinks,
    ) -> Result<EventLinks>;

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
    async fn conversation_head(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationHead>>;

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
    /// True exactly when at least one more event is stored behind this page, in the direction in which it was read.
    pub has_more: bool,
    /// The newest generation that was claimed for each agent execution that runs (invariant 7, fenced deltas), at the
    /// moment at which the page was read. A page without events has none.
    pub generations: BTreeMap<String, u32>,
}

/// The things whose [`EventReader::event_links`] are wanted. Lists are as long as a page of events at the most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedLinks {
    /// Agent executions, which may be those of sub-agents.
    pub agent_executions: Vec<String>,
    /// Tool executions, which a person may have approved.
    pub tool_executions: Vec<String>,
}

impl WantedLinks {
    /// True when nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.agent_executions.is_empty() && self.tool_executions.is_empty()
    }
}

/// What events say of others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventLinks {
    /// The model's id of the call that started a sub-agent, by the sub-agent's agent execution.
    pub parent_calls: BTreeMap<String, String>,
    /// The input of each tool execution that a person has approved, as the tool got it.
    pub approved_inputs: BTreeMap<String, Json>,
}

/// Where a conversation stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationHead {
    /// The log that the conversation of this id has now.
    pub log_id: LogId,
    /// True when a turn is running or a message waits for its turn.
    pub is_running: bool,
    /// The largest sequence number; 0 before the first event.
    pub last_sequence: u32,
    /// The message whose turn is running, else the one that waits longest.
    pub current_message_id: Option<String>,
}
