//! What a turn waits for from outside: a person's approval, or the result of a client tool. Pure data.
//!
//! A tool call is registered here before the batch that asks for it is saved: readers see the request as soon as it is
//! stored, and may answer before the engine has noted the save (invariant 3, idempotent saves). For the same reason an
//! answer to an unknown call is kept for a while: after a replay it may come before the call.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use everturn_proto::{
    turn::{PlannedCall, ResolveApproval},
    words::{ToolKind, refusal},
};

/// The most answers to unknown calls that are kept. It is more than the calls that a step can have.
const MAX_EARLY: usize = 64;

/// The calls of the running step that someone outside must answer.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    approvals: BTreeMap<String, Approval>,
    /// Client tools by their tool execution; true once the result is stored.
    results: BTreeMap<String, bool>,
    early_answers: VecDeque<ResolveApproval>,
    early_results: VecDeque<String>,
    /// Whether the search attribute TurnStatus says that a person is waited for.
    is_shown_waiting: bool,
}

#[derive(Debug)]
struct Approval {
    input_hash: String,
    answer: Option<ResolveApproval>,
    is_stored: bool,
}

/// The reason why an answer to an approval is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No such call waits now.
    Unknown,
    /// The call has an answer already.
    Answered,
    /// The call has an answer that is not stored yet.
    BeingStored,
    /// The answer was given for another input.
    OtherInput,
    /// The answer is not valid for any call.
    Invalid(&'static str),
}

impl fmt::Display for Refusal {
    /// Writes a code for the gateway, and a sentence for people.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, sentence) = match self {
            Self::Unknown => (refusal::UNKNOWN, "no such call waits for an approval now"),
            Self::Answered => (refusal::ANSWERED, "the call has been answered"),
            Self::BeingStored => (refusal::BEING_STORED, "an answer is being stored"),
            Self::OtherInput => (
                refusal::MISMATCH,
                "the approval is for another input than the call's",
            ),
            Self::Invalid(flaw) => (refusal::INVALID, *flaw),
        };
        write!(formatter, "{word}: {sentence}")
    }
}

impl Outside {
    /// Forgets the calls of the step before, and notes what the calls of this step wait for.
    pub(crate) fn begin_step(&mut self, calls: &[PlannedCall]) {
        self.approvals.clear();
        self.results.clear();
        for call in calls {
            if call.approval_timeout_s.is_some() {
                let (input_hash, answer) = (call.input_hash.clone(), None);
                let approval = Approval {
                    input_hash,
                    answer,
                    is_stored: false,
                };
                self.approvals.insert(call.execution_id.clone(), approval);
            }
            if call.kind() == ToolKind::Client {
                self.results.insert(call.execution_id.clone(), false);
            }
        }
        for answer in std::mem::take(&mut self.early_answers) {
            // One that does not fit is ignored: nobody waits for it any more.
            let _ = self.resolve(answer);
        }
        for execution_id in std::mem::take(&mut self.early_results) {
            self.result_stored(execution_id);
        }
    }

    /// Checks whether the answer would be taken, and takes nothing.
    pub(crate) fn check(&self, answer: &ResolveApproval) -> Result<(), Refusal> {
        if let Some(flaw) = answer.flaw() {
            return Err(Refusal::Invalid(flaw));
        }
        let known = self
            .approvals
            .get(&answer.execution_id)
            .ok_or(Refusal::Unknown)?;
        match known {
            Approval { answer: None, .. } => {}
            Approval {
                is_stored: true, ..
            } => return Err(Refusal::Answered),
            Approval { .. } => return Err(Refusal::BeingStored),
        }
        // An answer by hand may leave the hash out, or empty.
        let meant = answer.input_hash.as_deref().filter(|hash| !hash.is_empty());
        if meant.is_some_and(|hash| hash != known.input_hash) {
            return Err(Refusal::OtherInput);
        }
        Ok(())
    }

    /// Takes an answer. Only the first one for a call counts, and another one is refused.
    pub(crate) fn resolve(&mut self, answer: ResolveApproval) -> Result<(), Refusal> {
        match self.check(&answer) {
            Ok(()) => {
                if let Some(known) = self.approvals.get_mut(&answer.execution_id) {
                    known.answer = Some(answer);
                }
                Ok(())
            }
            Err(Refusal::Unknown) => {
                keep(&mut self.early_answers, answer);
                Ok(())
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Notes that the client has answered.
    pub(crate) fn result_stored(&mut self, execution_id: String) {
        match self.results.get_mut(&execution_id) {
            Some(is_stored) => *is_stored = true,
            None => keep(&mut self.early_results, execution_id),
        }
    }

    /// Notes that the store has the answer already, because the run was reset or resumed. The call does not wait for
    /// one.
    pub(crate) fn skip_approval(&mut self, execution_id: &str) {
        self.approvals.remove(execution_id);
    }

    /// True while the call has no answer.
    pub(crate) fn needs_approval(&self, execution_id: &str) -> bool {
        self.approvals.contains_key(execution_id)
    }

    /// Returns the answer, once there is one.
    pub(crate) fn answer(&self, execution_id: &str) -> Option<&ResolveApproval> {
        self.approvals
            .get(execution_id)
            .and_then(|known| known.answer.as_ref())
    }

    /// Notes that the answer is stored.
    pub(crate) fn answer_stored(&mut self, execution_id: &str) {
        if let Some(known) = self.approvals.get_mut(execution_id) {
            known.is_stored = true;
        }
    }

    /// True when the call's answer is stored, or the call waits for none any more: its turn ends.
    pub(crate) fn is_settled(&self, execution_id: &str) -> bool {
        self.approvals
            .get(execution_id)
            .is_none_or(|known| known.is_stored)
    }

    /// Notes that nobody answered in time. A later answer is refused.
    pub(crate) fn expire(&mut self, execution_id: &str) {
        let answer = ResolveApproval {
            execution_id: execution_id.to_owned(),
            ..ResolveApproval::default()
        };
        if let Some(known) = self.approvals.get_mut(execution_id) {
            known.answer.get_or_insert(answer);
        }
    }

    /// Forgets all calls, when the turn has no more tools to run.
    pub(crate) fn end_step(&mut self) {
        self.begin_step(&[]);
    }

    /// Returns what TurnStatus must be changed to: true when a person is waited for. `None` when it says the right
    /// thing already.
    pub(crate) fn status_change(&mut self) -> Option<bool> {
        let is_waiting = self.approvals.values().any(|known| known.answer.is_none());
        (std::mem::replace(&mut self.is_shown_waiting, is_waiting) != is_waiting)
            .then_some(is_waiting)
    }

    /// True once the client's result is stored.
    pub(crate) fn has_result(&self, execution_id: &str) -> bool {
        self.results
            .get(execution_id)
            .is_some_and(|is_stored| *is_stored)
    }

    /// Returns the calls that wait, for query `status`.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let approvals = self
            .approvals
            .iter()
            .filter(|(_, known)| known.answer.is_none())
            .map(|(id, _)| id);
        let results = self
            .results
            .iter()
            .filter(|(id, is_stored)| !**is_stored && !self.unanswered(id));
        approvals
            .chain(results.map(|(id, _)| id))
            .cloned()
            .collect()
    }

    fn unanswered(&self, execution_id: &str) -> bool {
        self.approvals
            .get(execution_id)
            .is_some_and(|known| known.answer.is_none())
    }
}

fn keep<T>(early: &mut VecDeque<T>, item: T) {
    if early.len() >= MAX_EARLY {
        early.pop_front();
    }
    early.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, kind: &ToolKind) -> PlannedCall {
        PlannedCall {
            execution_id: id.to_owned(),
            kind: kind.into(),
            approval_timeout_s: Some(60),
            input_hash: "hash".to_owned(),
            ..PlannedCall::default()
        }
    }

    fn answer(id: &str, decision: &str, hash: Option<&str>) -> ResolveApproval {
        ResolveApproval {
            execution_id: id.to_owned(),
            decision: decision.to_owned(),
            input_hash: hash.map(str::to_owned),
            ..ResolveApproval::default()
        }
    }

    #[test]
    fn the_first_fitting_answer_counts() {
        let mut outside = Outside::default();
        outside.begin_step(&[call("a", &ToolKind::Worker)]);
        assert_eq!(
            outside.check(&answer("b", "approve", None)),
            Err(Refusal::Unknown)
        );
        assert_eq!(
            outside.check(&answer("a", "approve", Some("other"))),
            Err(Refusal::OtherInput)
        );
        assert_eq!(
            outside.check(&answer("a", "maybe", Some("hash"))),
            Err(Refusal::Invalid("`decision` is `approve` or `deny`"))
        );
        assert_eq!(
            outside.resolve(answer("a", "approve", Some("other"))),
            Err(Refusal::OtherInput)
        );
        assert!(outside.answer("a").is_none());
        assert_eq!(outside.resolve(answer("a", "deny", Some("hash"))), Ok(()));
        let another = answer("a", "approve", Some("hash"));
        assert_eq!(outside.check(&another), Err(Refusal::BeingStored));
        assert!(!outside.is_settled("a"));
        outside.answer_stored("a");
        assert_eq!(outside.check(&another), Err(Refusal::Answered));
        assert!(outside.is_settled("a"));
        assert_eq!(
            outside.resolve(answer("a", "approve", Some("hash"))),
            Err(Refusal::Answered)
        );
        assert_eq!(outside.answer("a").unwrap().decision, "deny");
        assert!(outside.waiting().is_empty());
    }

    #[test]
    fn an_answer_may_come_before_its_call() {
        let mut outside = Outside::default();
        assert_eq!(outside.resolve(answer("a", "approve", None)), Ok(()));
        outside.result_stored("a".to_owned());
        outside.begin_step(&[call("a", &ToolKind::Client)]);
        assert!(outside.answer("a").is_some() && outside.has_result("a"));
    }

    #[test]
    fn what_is_kept_for_unknown_calls_is_bounded() {
        let mut outside = Outside::default();
        for number in 0..2 * MAX_EARLY {
            let early = answer(&number.to_string(), "approve", None);
            assert_eq!(outside.resolve(early), Ok(()));
            outside.result_stored(number.to_string());
        }
        assert_eq!(
            (outside.early_answers.len(), outside.early_results.len()),
            (MAX_EARLY, MAX_EARLY)
        );
    }

    #[test]
    fn a_change_of_the_status_is_told_once() {
        let mut outside = Outside::default();
        assert_eq!(outside.status_change(), None);
        outside.begin_step(&[call("a", &ToolKind::Worker), call("b", &ToolKind::Worker)]);
        assert_eq!(
            (outside.status_change(), outside.status_change()),
            (Some(true), None)
        );
        assert_eq!(outside.resolve(answer("a", "approve", None)), Ok(()));
        assert_eq!(outside.status_change(), None, "another one waits");
        outside.expire("b");
        assert_eq!(
            (outside.status_change(), outside.status_change()),
            (Some(false), None)
        );
    }

    #[test]
    fn too_late_is_answered() {
        let mut outside = Outside::default();
        outside.begin_step(&[call("a", &ToolKind::Client)]);
        assert_eq!(
            outside.waiting(),
            ["a"],
            "the approval; the client is not asked before it"
        );
        outside.expire("a");
        outside.answer_stored("a");
        assert_eq!(
            outside.check(&answer("a", "approve", Some("hash"))),
            Err(Refusal::Answered)
        );
    }
}
