//! The agents that conversations may have.

use everturn_proto::turn::AgentDefinition;

/// An agent that the gateway offers to callers.
#[derive(Debug, Clone)]
pub struct OfferedAgent {
    /// The agent's definition. A gateway of its own, which knows no tools, has the tools' names as the file names them.
    pub definition: AgentDefinition,
    /// Messages with which a person may begin. The definition has no samples, because turns do not use them.
    pub samples: Vec<String>,
}

impl OfferedAgent {
    /// An agent of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            definition: AgentDefinition::only_a_name(name.to_owned()),
            samples: Vec::new(),
        }
    }
}
