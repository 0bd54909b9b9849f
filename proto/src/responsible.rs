//! The persons who are responsible for an agent.

/// The team or person behind an agent, as the configuration names them. No part of the agent's definition, because
/// turns do not depend on persons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Responsible {
    /// The team or person that owns the agent.
    pub owner: Option<String>,
    /// The address at which the owner can be reached, like a channel or an e-mail address.
    pub contact: Option<String>,
}

impl Responsible {
    /// True without any name or address.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
