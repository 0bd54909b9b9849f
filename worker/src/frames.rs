//! What this release knows of the frames that a client gets.

use everturn_client::Frame;
use everturn_proto::{ids, words::EventType};

/// What this release knows of a frame. A client of another release has only its words.
pub trait KnownFrame {
    /// The type of a persisted event. Frames of texts and of the stream itself are `Unknown`.
    fn event_type(&self) -> EventType;

    /// True for the event that ends the turn of this message. It needs the id of the conversation, which clients know only in
    /// the default tenant, where it is the name.
    fn ends_turn(&self, conversation_id: &str, message_id: &str) -> bool;

    /// True for a frame of the turn's own agent, and false for one of a sub-agent. As [`KnownFrame::ends_turn`], it needs the
    /// id of the conversation.
    fn is_own(&self, conversation_id: &str, message_id: &str) -> bool;
}

impl KnownFrame for Frame {
    fn event_type(&self) -> EventType {
        EventType::from(self.event.as_str())
    }

    fn ends_turn(&self, conversation_id: &str, message_id: &str) -> bool {
        let agent_execution_id = self.data["agent_execution_id"].as_str();
        self.event_type()
            .ends_turn(conversation_id, message_id, agent_execution_id)
    }

    fn is_own(&self, conversation_id: &str, message_id: &str) -> bool {
        let agent_execution = self.data["agent_execution_id"].as_str();
        agent_execution
            .filter(|id| !id.is_empty())
            .is_none_or(|id| id == ids::root_execution_id(conversation_id, message_id))
    }
}
