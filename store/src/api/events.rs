//! Reading the event log, and the state of a conversation.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{Json, LogId, event::Event};

use super::{Access, PageLimit, Result};

/// Reads the event log. With these calls, a gateway in any process can replay and follow a conversation.
#[async_trait]
pub trait EventReader: Send + Sync {
    /// Returns events with `sequence_number >= from_sequence`, in order, up to `limit`. The page of a removed log is
    /// empty, even if a new conversation has the id now.
    async fn events(
        &self,
        access: &Access,
        log: &EventLog,
        from_sequence: u32,
        limit: PageLimit,
    ) -> Result<EventPage>;

    /// Returns the last events with `sequence_number < before`, in order, up to `limit`. A `before` past the end of the
    /// log returns the log's last events. [`EventPage::has_more`] says whether older events exist. The page has no
    /// generations.
    async fn events_before(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        limit: PageLimit,
    ) -> Result<EventPage>;

    /// Looks up links from events to events elsewhere in the log. Unknown links are left out.
    async fn event_links(
        &self,
        access: &Access,
        log: &EventLog,
        wanted: &WantedLinks,
    ) -> Result<EventLinks>;

    /// Returns the last event common to this log and a reader's older copy of the log: the last event before the event
    /// `before` that was saved at `saved_by` or earlier; 0 without a common event. A copy differs after the database
    /// has lost its last commits, and workers have saved the lost events again, later.
    async fn last_common(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        saved_by: DateTime<Utc>,
    ) -> Result<u32>;

    /// Returns the conversation's state; `None` for a missing conversation. The answer comes from the store alone,
    /// without a live worker.
    async fn conversation_head(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationHead>>;

    /// Returns the log and the largest sequence number of every listed conversation, in no order. Missing conversations
    /// are left out. A gateway finds missed announcements with these numbers.
    async fn last_sequences(&self, conversation_ids: &[String]) -> Result<Vec<(EventLog, u32)>>;

    /// Fails when the store does not answer, or when its disk has refused the last write.
    async fn check(&self) -> Result<()>;
}

/// The event log of a conversation. If a conversation is removed and a new conversation gets the id, the new
/// conversation has a new log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventLog {
    /// The conversation.
    pub conversation_id: String,
    /// The id of the log: tells apart conversations with a reused id.
    pub id: LogId,
}

/// A page of the event log.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, by rising sequence number.
    pub events: Vec<Event>,
    /// True exactly if at least one more event is stored behind the page, in the direction of reading.
    pub has_more: bool,
    /// The newest claimed generation of every running agent execution (invariant 7, fenced deltas), at the moment of
    /// reading. A page without events has no generations.
    pub generations: BTreeMap<String, u32>,
}

/// A request for [`EventReader::event_links`]. The lists are at most as long as a page of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedLinks {
    /// Agent executions, possibly of sub-agents.
    pub agent_executions: Vec<String>,
    /// Tool executions, possibly approved by a person.
    pub tool_executions: Vec<String>,
}

impl WantedLinks {
    /// Returns true for an empty request.
    pub fn is_empty(&self) -> bool {
        self.agent_executions.is_empty() && self.tool_executions.is_empty()
    }
}

/// Links from events to other events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventLinks {
    /// The model's id of the call that started a sub-agent, keyed by the sub-agent's agent execution.
    pub parent_calls: BTreeMap<String, String>,
    /// Every tool execution with a person's approval.
    pub approved_calls: BTreeMap<String, ApprovedCall>,
}

/// A tool execution with a person's approval.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovedCall {
    /// The approved input, as the tool got the input.
    pub tool_input: Json,
    /// The title with the values of the approved input.
    pub title: Option<String>,
}

/// The state of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationHead {
    /// The present log of the conversation.
    pub log_id: LogId,
    /// True if a turn is running or a message waits for its turn.
    pub is_running: bool,
    /// The largest sequence number; 0 before the first event.
    pub last_sequence: u32,
    /// The message of the running turn. Without a running turn: the message with the longest wait.
    pub current_message_id: Option<String>,
    /// The chosen model of the running turn; `None`: no turn is running, or the agent's own model answers.
    pub model: Option<String>,
}
