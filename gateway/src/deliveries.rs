//! What readers were shown, for traces.

use everturn_proto::{event::Event, words::EventType};

use crate::fields::Fields;

/// Is told of what the tails of a gateway have shown to their readers.
pub trait Deliveries: Send + Sync {
    /// Readers have these events of a conversation in their queues. It must not block.
    fn delivered(&self, conversation_id: &str, events: Vec<DeliveredEvent>, readers: usize);
}

/// An event that readers were shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredEvent {
    /// What happened.
    pub event_type: EventType,
    /// The message whose turn it belongs to.
    pub message_id: String,
    /// It is the end of this turn.
    pub ends_turn: bool,
}

impl DeliveredEvent {
    pub(crate) fn of(event: &Event) -> Self {
        let event_type = event.event_type();
        let (conversation, message) = (&event.conversation_id, &event.message_id);
        let agent_execution = Fields::of_event(event).get::<String>("agent_execution_id");
        Self {
            ends_turn: event_type.ends_turn(conversation, message, agent_execution.as_deref()),
            message_id: event.message_id.clone(),
            event_type,
        }
    }
}
