//! Threads: the sequences of messages that are the contexts of agent executions.

use crate::ids;

/// The sequence of messages in the context of an agent execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Thread {
    /// The conversation's own thread. Every turn of the conversation uses it.
    Conversation,
    /// A sub-agent's own thread, hidden from other agent executions. The thread's id is the id of the sub-agent's agent
    /// execution.
    SubAgent(String),
}

impl Thread {
    /// Returns the thread of an agent execution in the turn of the message.
    pub fn of(conversation_id: &str, message_id: &str, agent_execution_id: &str) -> Self {
        if agent_execution_id == ids::root_agent_execution_id(conversation_id, message_id) {
            Self::Conversation
        } else {
            Self::SubAgent(agent_execution_id.to_owned())
        }
    }

    /// Returns the id of the sub-agent's agent execution for a sub-agent's thread; `None` for the conversation's own
    /// thread.
    pub fn sub_agent(&self) -> Option<&str> {
        match self {
            Self::Conversation => None,
            Self::SubAgent(agent_execution_id) => Some(agent_execution_id),
        }
    }

    /// True for a sub-agent's own thread.
    pub fn is_sub_agents(&self) -> bool {
        self.sub_agent().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_turns_own_agent_execution_has_the_conversations_thread() {
        let root = ids::root_agent_execution_id("c", "m");
        assert_eq!(Thread::of("c", "m", &root), Thread::Conversation);
        let sub_agent = Thread::of("c", "m", "run_x");
        assert_eq!(sub_agent.sub_agent(), Some("run_x"));
        assert!(Thread::of("c", "another", &root).is_sub_agents());
    }
}
