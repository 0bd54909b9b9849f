//! The demand on the tool calls of a turn's first reply (`tool_choice` of the agent). No I/O is here.

use everturn_models::ToolChoice;
use everturn_proto::{turn::AgentDefinition, words::MessageRole};
use everturn_store::{ContextMessage, StepKey};

/// Returns the agent's demand, when the step makes the first reply of the agent execution. A later reply has no demand:
/// a model that must call a tool in every step never answers.
pub(super) fn tool_choice(
    agent: &AgentDefinition,
    messages: &[ContextMessage],
    step: &StepKey,
) -> Option<ToolChoice> {
    let choice = agent.tool_choice.as_deref()?;
    // Before the first reply stand the step of the hooks, and a compaction. A compaction in the middle of the turn may
    // hide earlier replies, but has a later step.
    let hooks = agent.hooks.as_ref();
    let has_hooks = hooks.is_some_and(|hooks| !hooks.before_turn.is_empty());
    let is_early = step.step <= 1 + u32::from(has_hooks);
    let has_replied = messages.iter().any(|message| {
        message.role == MessageRole::Assistant
            && message.agent_execution_id == step.agent_execution_id
    });
    (is_early && !has_replied).then(|| ToolChoice::read(choice))
}

#[cfg(test)]
mod tests {
    use everturn_proto::turn::{AgentHook, AgentHooks};

    use super::*;

    fn message(role: MessageRole, of: &str) -> ContextMessage {
        ContextMessage {
            agent_execution_id: of.into(),
            ..ContextMessage::text(role, "Hello.")
        }
    }

    #[test]
    fn only_the_first_reply_of_a_turn_has_a_demand() {
        let mut agent = AgentDefinition {
            tool_choice: Some("weather".into()),
            ..AgentDefinition::default()
        };
        let earlier = message(MessageRole::Assistant, "run_1");
        let task = message(MessageRole::User, "run_2");
        let reply = message(MessageRole::Assistant, "run_2");
        let first = [earlier.clone(), task.clone()];
        let second = [earlier, task, reply];
        let has = |agent: &AgentDefinition, messages: &[ContextMessage], number: u32| {
            let step = StepKey {
                conversation_id: "conversation".into(),
                message_id: "message".into(),
                agent_execution_id: "run_2".into(),
                step: number,
                epoch: None,
            };
            tool_choice(agent, messages, &step) == Some(ToolChoice::Tool("weather".into()))
        };
        assert!(has(&agent, &first, 0) && !has(&agent, &second, 1));
        // After a compaction: at the begin of the turn, and in the middle of the turn.
        assert!(has(&agent, &first, 1) && !has(&agent, &first, 2));
        agent.hooks = Some(AgentHooks {
            before_turn: vec![AgentHook::default()],
            ..AgentHooks::default()
        });
        assert!(has(&agent, &first, 2) && !has(&agent, &first, 3));
        agent.tool_choice = None;
        assert!(!has(&agent, &first, 0));
    }
}
