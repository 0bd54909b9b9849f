//! `samples` of an agent: messages with which a person may begin. Clients offer the samples.

use crate::{
    checker::Checker,
    forms::{Form, Text, Written},
};

/// The most samples of an agent. A page has room for this number of buttons.
const MAX_SAMPLES: usize = 8;
/// The largest sample, in bytes. A button has room for this text.
const MAX_SAMPLE_BYTES: usize = 500;

/// A message of one person, short enough for a button.
pub(super) struct Sample;

impl Form for Sample {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        Text::within(MAX_SAMPLE_BYTES, text)
    }
}

/// Returns the samples of an agent.
pub(super) fn checked(check: &mut Checker<'_>, samples: &[Written<Sample>]) -> Vec<String> {
    if let Some(surplus) = samples.get(MAX_SAMPLES) {
        check.wrong(
            &surplus.at,
            format!("`samples` has at most {MAX_SAMPLES} messages; remove some"),
        );
    }
    check.values(samples)
}
