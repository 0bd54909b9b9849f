//! The payloads for the workflow of a conversation. Every port to an engine sends these payloads.
//!
//! Must not be here: the calls to the engine (`temporal.rs`).

use everturn_proto::turn::{Submit, TurnInput};
use everturn_store::Conversation;

use super::port::StartMessages;

/// Makes the signal for a stored message. The row in `messages` has the content and the policy, and the history stays
/// small (invariant 4, linear history).
pub fn ring(message_id: &str) -> Submit {
    Submit {
        message_id: Some(message_id.to_owned()),
        ..Submit::default()
    }
}

/// Makes the input of a workflow with the conversation's agent. A signal brings the first message.
pub fn turn_input(conversation: &Conversation) -> TurnInput {
    TurnInput {
        conversation_id: conversation.id.clone(),
        tenant_id: Some(conversation.tenant_id.clone()),
        agent: Some(conversation.agent.clone()),
        ..TurnInput::default()
    }
}

/// Makes the input of a workflow that begins with a stored message.
pub fn start_input(conversation: &Conversation, messages: &StartMessages) -> TurnInput {
    TurnInput {
        message: Some(ring(&messages.first)),
        has_waiting: messages.has_waiting,
        from_step: messages.goes_on_at.unwrap_or(0),
        goes_on: messages.goes_on_at.is_some(),
        ..turn_input(conversation)
    }
}
