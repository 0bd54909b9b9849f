//! Reports of events that readers received, for traces.

use everturn_proto::{event::Event, words::EventType};

use crate::fields::Fields;

/// Receives a report about the events in readers' queues.
pub trait Deliveries: Send + Sync {
    /// Called when the events of a conversation are in the queues of `readers` readers. Implementations must not block.
    fn delivered(&self, conversation_id: &str, events: Vec<DeliveredEvent>, readers: usize);
}

/// An event in the queue of at least one reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredEvent {
    /// The type of the event.
    pub event_type: EventType,
    /// The message of the event's turn.
    pub message_id: String,
    /// True when the event ends the turn.
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
