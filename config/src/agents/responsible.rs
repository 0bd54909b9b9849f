//! `owner` and `contact` of an agent: the persons whom an operator asks about the agent.

use everturn_proto::Responsible;

use super::AgentTable;
use crate::{
    checker::Checker,
    forms::{Form, Text},
};

/// The longest name and the longest address, in bytes. Both are labels of a metric, and stand in texts of alerts.
const MAX_BYTES: usize = 200;

/// A short text in a single line.
pub(super) struct Line;

impl Form for Line {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        let text = Text::read(text)?;
        if text.len() > MAX_BYTES {
            let bytes = text.len();
            return Err(format!(
                "has a text of {bytes} bytes, but the limit is {MAX_BYTES}"
            ));
        }
        if text.chars().any(char::is_control) {
            return Err("must be a single line".to_owned());
        }
        Ok(text)
    }
}

impl AgentTable {
    /// Returns the persons who are responsible for the agent.
    pub(super) fn responsible(&self, check: &mut Checker<'_>) -> Responsible {
        Responsible {
            owner: check.value(&self.owner),
            contact: check.value(&self.contact),
        }
    }
}
