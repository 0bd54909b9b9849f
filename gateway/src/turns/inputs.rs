//! The payloads for the workflow of a conversation, and for the workflow of the hooks after a turn. Every port to an
//! engine sends the payloads for conversations.
//!
//! Must not be here: the calls to the engine (`temporal.rs`).

use everturn_proto::turn::{AfterTurnInput, Submit, TurnInput};
use everturn_store::{Conversation, DueHooks};

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

/// Makes the input of the workflow of the hooks after a turn, as the workflow of the conversation makes the input.
pub fn hooks_input(hooks: &DueHooks) -> AfterTurnInput {
    AfterTurnInput {
        conversation_id: hooks.conversation_id.clone(),
        message_id: hooks.message_id.clone(),
        agent_execution_id: hooks.agent_execution_id.clone(),
        agent_hash: hooks.agent_hash.clone(),
        last_step: hooks.steps.saturating_sub(1),
        tool_queue: hooks.tool_queue.clone(),
    }
}
