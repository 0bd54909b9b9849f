//! The model that a message or a conversation chooses among the models of its agent.

use everturn_proto::turn::AgentDefinition;
use everturn_store::Conversation;

use crate::http::{
    problem::{Code, Problem},
    state::GatewayState,
};

/// Returns the chosen model if the agent has the model. Without a choice, returns `None`.
pub(super) fn checked(
    state: &GatewayState,
    agent: &str,
    chosen: Option<String>,
) -> Result<Option<String>, Problem> {
    let Some(chosen) = chosen else {
        return Ok(None);
    };
    let allowed = allowed(state, agent);
    if allowed.contains(&chosen) {
        return Ok(Some(chosen));
    }
    let detail = if allowed.is_empty() {
        format!("The models of the agent `{agent}` are not in the configuration of the gateway.")
    } else {
        format!(
            "The models of the agent `{agent}` are: {}.",
            allowed.join(", ")
        )
    };
    Err(Problem::new(Code::UnknownModel, detail))
}

/// Returns the model of the conversation for a new message. A model that the agent no longer has counts as no choice, so
/// that a changed configuration leaves no conversation without answers.
pub(super) fn of_conversation(state: &GatewayState, conversation: &Conversation) -> Option<String> {
    let model = conversation.model.clone()?;
    let allowed = allowed(state, &conversation.agent);
    Some(model).filter(|model| allowed.contains(model))
}

fn allowed(state: &GatewayState, agent: &str) -> Vec<String> {
    let agent = state.agents.with_name(agent);
    agent
        .as_ref()
        .map(AgentDefinition::allowed_models)
        .unwrap_or_default()
}
