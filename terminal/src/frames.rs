//! Interprets the frames of a client's stream with this release's types.

use std::collections::HashSet;

use everturn_client::Frame;
use everturn_proto::words::EventType;

/// The turn of a message, for a client that follows the turn from its beginning. `FollowedTurn` recognizes sub-agents
/// by their start events, because a client cannot derive the ids of agent executions.
#[derive(Debug)]
pub struct FollowedTurn {
    message_id: String,
    sub_agents: HashSet<String>,
}

impl FollowedTurn {
    /// Returns the follower of the message's turn.
    pub fn of(message_id: &str) -> Self {
        Self {
            message_id: message_id.to_owned(),
            sub_agents: HashSet::new(),
        }
    }

    /// Takes the next frame. Returns true for the event that ends the turn, and false for the end of a sub-agent or of
    /// another turn.
    pub fn ends_with(&mut self, frame: &Frame) -> bool {
        let event_type = frame.event_type();
        let agent = frame.data["agent_execution_id"].as_str();
        let agent = agent.unwrap_or_default();
        if event_type == EventType::SubAgentStart {
            self.sub_agents.insert(agent.to_owned());
        }
        event_type.ends_agent_execution()
            && frame.data["message_id"] == self.message_id.as_str()
            && !self.sub_agents.contains(agent)
    }
}

/// This release's interpretation of a frame. A client of another release sees only the frame's words.
pub trait KnownFrame {
    /// Returns the type of a persisted event. Frames of live texts and of the stream itself are `Unknown`.
    fn event_type(&self) -> EventType;
}

impl KnownFrame for Frame {
    fn event_type(&self) -> EventType {
        EventType::from(self.event.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_turn_ends_with_its_own_end() {
        let frame = |event: &str, message_id: &str, agent: Value| Frame {
            id: None,
            cursor: None,
            event: event.to_owned(),
            data: json!({"message_id": message_id, "agent_execution_id": agent}),
        };
        let mut turn = FollowedTurn::of("m");
        for (event, message_id, agent) in [
            ("complete", "before", json!("run_0")),
            ("user_message", "m", json!("run_1")),
            ("sub_agent_start", "m", json!("run_2")),
            ("assistant_message", "m", json!("run_1")),
            ("complete", "m", json!("run_2")),
        ] {
            assert!(!turn.ends_with(&frame(event, message_id, agent)), "{event}");
        }
        assert!(turn.ends_with(&frame("complete", "m", json!("run_1"))));
        // Events from before there were sub-agents name no agent execution.
        assert!(FollowedTurn::of("m").ends_with(&frame("error", "m", Value::Null)));
    }
}
