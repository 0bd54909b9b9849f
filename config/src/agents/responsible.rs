//! `owner` and `contact` of an agent: the persons whom an operator asks about the agent.

use everturn_proto::Responsible;

use crate::{
    checker::Checker,
    forms::{Form, Text, Written},
};

/// The longest name and the longest address, in bytes. Both are labels of a metric, and stand in texts of alerts.
const MAX_BYTES: usize = 200;

/// A short text in a single line.
pub(super) struct Line;

impl Form for Line {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        let text = Text::within(MAX_BYTES, text)?;
        if text.chars().any(char::is_control) {
            return Err("must be a single line".to_owned());
        }
        Ok(text)
    }
}

/// Returns the persons who are responsible for an agent.
pub(super) fn checked(
    check: &mut Checker<'_>,
    owner: Option<&Written<Line>>,
    contact: Option<&Written<Line>>,
) -> Responsible {
    Responsible {
        owner: check.value(owner),
        contact: check.value(contact),
    }
}
