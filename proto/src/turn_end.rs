//! The rule for the end of a turn. A root agent execution and a sub-agent end with events of equal type, therefore the
//! type alone cannot tell the end of a turn. Only the functions in this file know the end of a turn.

use serde::Deserialize;

use crate::{event::Event, ids, words::EventType};

impl EventType {
    /// True when an event of this type, about this agent execution, ends the turn of the message. Events from before
    /// there were sub-agents name no agent execution (`None`, or an empty text on the wire): they are the turn's own.
    pub fn ends_turn(
        &self,
        conversation_id: &str,
        message_id: &str,
        agent_execution_id: Option<&str>,
    ) -> bool {
        self.ends_agent_execution()
            && agent_execution_id.is_none_or(|id| {
                id.is_empty() || id == ids::root_agent_execution_id(conversation_id, message_id)
            })
    }
}

impl Event {
    /// True when the event ends the turn of its message, and false for the end of a sub-agent in the turn.
    pub fn ends_turn(&self) -> bool {
        // Most events end no agent execution, so their data is not read.
        let event_type = self.event_type();
        event_type.ends_agent_execution()
            && event_type.ends_turn(
                &self.conversation_id,
                &self.message_id,
                self.agent_execution_id().as_deref(),
            )
    }

    /// Returns the agent execution named in the event's data. Old events name no agent execution.
    pub fn agent_execution_id(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct About {
            agent_execution_id: Option<String>,
        }
        let data = self.event_data.as_ref()?;
        let About { agent_execution_id } = data.decode().ok()?;
        agent_execution_id.filter(|id| !id.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Json, event::Event, ids};

    fn event(event_type: &str, data: &str) -> Event {
        Event {
            conversation_id: "c".to_owned(),
            message_id: "m".to_owned(),
            event_type: event_type.to_owned(),
            event_data: Json::parse(data).ok(),
            ..Event::default()
        }
    }

    #[test]
    fn only_the_end_of_the_turns_own_agent_ends_the_turn() {
        let of = |id: &str| format!(r#"{{"agent_execution_id":"{id}"}}"#);
        let own = of(&ids::root_agent_execution_id("c", "m"));
        for end in ["complete", "error", "cancelled"] {
            assert!(event(end, &own).ends_turn());
            assert!(!event(end, &of(&ids::sub_agent_execution_id("c", "exec_1"))).ends_turn());
            assert!(!event(end, &of(&ids::root_agent_execution_id("c", "other"))).ends_turn());
        }
        assert!(!event("assistant_message", &own).ends_turn());
    }

    #[test]
    fn old_events_that_name_no_agent_execution_end_their_turn() {
        for data in [
            "{}",
            "null",
            r#"{"agent_execution_id":""}"#,
            r#"{"agent_execution_id":5}"#,
        ] {
            assert!(event("complete", data).ends_turn(), "{data}");
        }
    }
}
