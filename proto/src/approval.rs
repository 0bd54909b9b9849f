//! The checks of an answer to an approval, for answers through the gateway and through the command line.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

use crate::{
    Json,
    limits::{MAX_APPROVAL_REASON_BYTES, MAX_APPROVED_INPUT_BYTES},
    turn::ResolveApproval,
    words::{ApprovalState, Decision},
};

impl ResolveApproval {
    /// Returns the state of the approval after the answer. Only an approval lets the call run.
    pub fn outcome(&self) -> ApprovalState {
        match self.decision() {
            Decision::Approve => ApprovalState::Approved,
            Decision::Deny | Decision::Unknown(_) => ApprovalState::Denied,
        }
    }

    /// Returns the flaw of the answer itself, independent of the call; `None` for an answer without a flaw.
    pub fn flaw(&self) -> Option<&'static str> {
        let is_approved = match self.decision() {
            Decision::Approve => true,
            Decision::Deny => false,
            Decision::Unknown(_) => return Some("`decision` is `approve` or `deny`"),
        };
        if !is_approved && (self.tool_input.is_some() || self.answer.is_some() || self.remember) {
            return Some("`tool_input`, `answer` and `remember` go with the decision `approve`");
        }
        if self.answer.is_some() && (self.tool_input.is_some() || self.remember) {
            return Some("`tool_input` and `remember` do not go with the `answer` to a question");
        }
        let mut objects = self.tool_input.iter().chain(&self.answer);
        if objects.any(|object| !is_usable(object)) {
            return Some(
                "`tool_input` and `answer` are objects of at most 64 KiB (numbers written out) and 100 levels, with each \
                 key once, without NUL, and without a number of more than 500 digits",
            );
        }
        if !is_short(self.reason()) {
            return Some("`reason` has at most 4 KiB, without NUL");
        }
        if !is_short(self.resolved_by()) {
            return Some("`resolved_by` has at most 4 KiB, without NUL");
        }
        None
    }
}

/// True for a text within the size limit and without a NUL, which the store cannot hold.
fn is_short(text: &str) -> bool {
    text.len() <= MAX_APPROVAL_REASON_BYTES && !text.contains('\0')
}

/// True for an input in the form that tools take (an object), within the engine's size limit, unchanged by the store,
/// and equal for every reader. The tool must run with exactly the approved input.
fn is_usable(input: &Json) -> bool {
    input.stored_len() <= MAX_APPROVED_INPUT_BYTES
        && !input.is_too_deep()
        && input.repeated_key().is_none()
        && input.made_storable().is_none()
        && input.decode::<BTreeMap<String, Box<RawValue>>>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_JSON_LEVELS;

    #[test]
    fn only_what_can_be_stored_and_run_is_taken() {
        let answer = |decision: &str| ResolveApproval {
            decision: decision.to_owned(),
            ..ResolveApproval::default()
        };
        let with = |input: &str| ResolveApproval {
            tool_input: Json::parse(input).ok(),
            ..answer("approve")
        };
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_APPROVED_INPUT_BYTES));
        let many_digits = format!(r#"{{"a":[{}0]}}"#, "1e300,".repeat(300));
        let said = |decision: &str, reason: &str| ResolveApproval {
            reason: Some(reason.to_owned()),
            ..answer(decision)
        };
        let remembered = |decision: &str| ResolveApproval {
            remember: true,
            ..answer(decision)
        };
        let by = |who: String| ResolveApproval {
            resolved_by: Some(who),
            ..answer("deny")
        };
        let too_long = "x".repeat(MAX_APPROVAL_REASON_BYTES + 1);
        for (answer, is_fine) in [
            (answer("approve"), true),
            (answer("deny"), true),
            (answer("maybe"), false),
            (with(r#"{"a":{"b":[1]}}"#), true),
            (with("[1]"), false),
            (with("null"), false),
            (with(r#"{"a":1,"b":{"c":1,"\u0063":2}}"#), false),
            (with(r#"{"a":"\u0000"}"#), false),
            (with(r#"{"a":1e300}"#), true),
            (with(r#"{"a":1e131071}"#), false),
            (with(&many_digits), false),
            (with(&large), false),
            (remembered("approve"), true),
            (remembered("deny"), false),
            (said("deny", "because"), true),
            (said("deny", "a\0b"), false),
            (said("deny", &too_long), false),
            (by(too_long.clone()), false),
        ] {
            assert_eq!(answer.flaw().is_none(), is_fine, "{:?}", answer.flaw());
        }
    }

    #[test]
    fn the_answer_to_a_question_is_an_object_that_comes_alone() {
        let with = |decision: &str, fields: &str| ResolveApproval {
            decision: decision.to_owned(),
            answer: Json::parse(fields).ok(),
            ..ResolveApproval::default()
        };
        let edited = ResolveApproval {
            tool_input: Json::parse("{}").ok(),
            ..with("approve", "{}")
        };
        let remembered = ResolveApproval {
            remember: true,
            ..with("approve", "{}")
        };
        for (answer, is_fine) in [
            (with("approve", r#"{"a":1}"#), true),
            (with("approve", "[1]"), false),
            (with("approve", r#"{"a":1,"a":2}"#), false),
            (with("deny", "{}"), false),
            (edited, false),
            (remembered, false),
        ] {
            assert_eq!(answer.flaw().is_none(), is_fine, "{:?}", answer.flaw());
        }
    }

    /// An input travels through the engine. A workflow whose worker cannot read it would stand still.
    #[test]
    fn an_input_that_is_too_deep_is_not_taken() {
        for (levels, is_fine) in [(MAX_JSON_LEVELS, true), (MAX_JSON_LEVELS + 1, false)] {
            let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
            let answer = ResolveApproval {
                decision: "approve".to_owned(),
                tool_input: Json::parse(format!(r#"{{"a":{open}{close}}}"#)).ok(),
                ..ResolveApproval::default()
            };
            assert_eq!(answer.flaw().is_none(), is_fine, "{levels}");
        }
    }
}
