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
    turn::{PlannedCall, ResolveApproval, WaitingApproval},
    words::{AnswersFrom, ToolKind, refusal},
};

/// The most answers to unknown calls that are kept. It is more than the calls that a step can have.
const MAX_EARLY: usize = 64;
/// The most refused answers that are kept, for those who wait for them and for query `status`.
const MAX_REFUSED: usize = 16;

/// The calls of the running step that someone outside must answer.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    approvals: BTreeMap<String, Approval>,
    /// Client tools by their tool execution; true once the result is stored.
    results: BTreeMap<String, bool>,
    early_answers: VecDeque<(ResolveApproval, Through)>,
    early_results: VecDeque<String>,
    refused: VecDeque<RefusedAnswer>,
    /// Number of answers that have come.
    answers: u64,
    /// Whether the search attribute TurnStatus says that a person is waited for.
    is_shown_waiting: bool,
}

/// How an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// As an update, which is how gateways send it.
    Update,
    /// As a signal, by hand.
    Signal,
}

/// Tells answers apart, also those that say the same: one that is refused says nothing about the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswerNumber(u64);

/// An answer that was not taken.
#[derive(Debug)]
struct RefusedAnswer {
    number: AnswerNumber,
    execution_id: String,
    /// A code and a sentence.
    why: String,
}

#[derive(Debug)]
struct Approval {
    input_hash: String,
    answers_from: AnswersFrom,
    answer: Option<ResolveApproval>,
    /// The number of `answer`.
    number: AnswerNumber,
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
    /// The answer was given for another input, or for another definition of the tool.
    OtherInput,
    /// The answer does not say what it is for.
    NoHash,
    /// The answer came as a signal, and only those of gateways are taken.
    BySignal,
    /// The answer is not valid for any call.
    Invalid(&'static str),
}

const NOT_THROUGH_GATEWAY: &str =
    "answers are taken through a gateway only (`[approvals] allow_signal`)";

/// Returns the code and the sentence of a refusal of the store.
fn refused_by_store(word: &str) -> String {
    let sentence = match word {
        refusal::NEEDS_OTHER => {
            "somebody has to approve who is known and has sent no message of the turn"
        }
        refusal::NOT_THROUGH_GATEWAY => NOT_THROUGH_GATEWAY,
        _ => "the answer was not stored",
    };
    format!("{word}: {sentence}")
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
            Self::NoHash => (
                refusal::MISMATCH,
                "an answer names the `input_hash` of the request that it is for",
            ),
            Self::BySignal => (refusal::NOT_THROUGH_GATEWAY, NOT_THROUGH_GATEWAY),
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
                    answers_from: call.answers_from(),
                    answer,
                    number: AnswerNumber::default(),
                    is_stored: false,
                };
                self.approvals.insert(call.execution_id.clone(), approval);
            }
            if call.kind() == ToolKind::Client {
                self.results.insert(call.execution_id.clone(), false);
            }
        }
        for (answer, through) in std::mem::take(&mut self.early_answers) {
            // One that does not fit is ignored: nobody waits for it any more.
            let _ = self.resolve(answer, through);
        }
        for execution_id in std::mem::take(&mut self.early_results) {
            self.result_stored(execution_id);
        }
    }

    /// Checks whether the answer would be taken, and takes nothing.
    pub(crate) fn check(&self, answer: &ResolveApproval, through: Through) -> Result<(), Refusal> {
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
        let may_be_signal = match &known.answers_from {
            AnswersFrom::Unbound | AnswersFrom::Engine => true,
            AnswersFrom::Gateway | AnswersFrom::Unknown(_) => false,
        };
        if through == Through::Signal && !may_be_signal {
            return Err(Refusal::BySignal);
        }
        let meant = answer.input_hash.as_deref().filter(|hash| !hash.is_empty());
        match meant {
            Some(hash) if hash == known.input_hash => Ok(()),
            Some(_) => Err(Refusal::OtherInput),
            None if known.answers_from == AnswersFrom::Unbound => Ok(()),
            None => Err(Refusal::NoHash),
        }
    }

    /// Takes an answer. Only the first one for a call counts, and another one is refused.
    pub(crate) fn resolve(
        &mut self,
        answer: ResolveApproval,
        through: Through,
    ) -> Result<AnswerNumber, Refusal> {
        self.answers += 1;
        let number = AnswerNumber(self.answers);
        match self.check(&answer, through) {
            Ok(()) => {
                if let Some(known) = self.approvals.get_mut(&answer.execution_id) {
                    known.answer = Some(answer);
                    known.number = number;
                }
                Ok(number)
            }
            Err(Refusal::Unknown) => {
                keep(&mut self.early_answers, (answer, through));
                Ok(number)
            }
            Err(refusal) => {
                // Whoever sent an update is told.
                if through == Through::Signal {
                    self.note_refused(number, &answer, refusal.to_string());
                }
                Err(refusal)
            }
        }
    }

    /// Notes that the store has refused the answer to a call, which waits on.
    pub(crate) fn refuse(&mut self, execution_id: &str, word: &str) {
        let Some(known) = self.approvals.get_mut(execution_id) else {
            return;
        };
        let number = known.number;
        if let Some(answer) = known.answer.take() {
            self.note_refused(number, &answer, refused_by_store(word));
        }
    }

    fn note_refused(&mut self, number: AnswerNumber, answer: &ResolveApproval, why: String) {
        if self.refused.len() >= MAX_REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back(RefusedAnswer {
            number,
            execution_id: answer.execution_id.clone(),
            why,
        });
    }

    /// Returns why an answer was refused after it had been taken; `None` when it was not.
    pub(crate) fn refusal_of(&self, number: AnswerNumber) -> Option<&str> {
        let mut refused = self.refused.iter();
        let found = refused.find(|refused| refused.number == number);
        found.map(|refused| refused.why.as_str())
    }

    /// Returns the answers that were refused last, for query `status`.
    pub(crate) fn refused_answers(&self) -> Vec<String> {
        let refused = self.refused.iter();
        refused
            .map(|refused| format!("{}: {}", refused.execution_id, refused.why))
            .collect()
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

    /// Returns the calls that wait for an approval, for query `status`.
    pub(crate) fn waiting_approvals(&self) -> Vec<WaitingApproval> {
        let waiting = self.approvals.iter();
        let waiting = waiting.filter(|(_, known)| known.answer.is_none());
        waiting
            .map(|(id, known)| WaitingApproval {
                execution_id: id.clone(),
                input_hash: known.input_hash.clone(),
            })
            .collect()
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
            outside.check(&answer("b", "approve", None), Through::Update),
            Err(Refusal::Unknown)
        );
        assert_eq!(
            outside.check(&answer("a", "approve", Some("other")), Through::Update),
            Err(Refusal::OtherInput)
        );
        assert_eq!(
            outside.check(&answer("a", "maybe", Some("hash")), Through::Update),
            Err(Refusal::Invalid("`decision` is `approve` or `deny`"))
        );
        assert_eq!(
            outside.resolve(answer("a", "approve", Some("other")), Through::Signal),
            Err(Refusal::OtherInput)
        );
        assert!(outside.answer("a").is_none());
        assert!(
            outside
                .resolve(answer("a", "deny", Some("hash")), Through::Signal)
                .is_ok()
        );
        let another = answer("a", "approve", Some("hash"));
        assert_eq!(
            outside.check(&another, Through::Update),
            Err(Refusal::BeingStored)
        );
        assert!(!outside.is_settled("a"));
        outside.answer_stored("a");
        assert_eq!(
            outside.check(&another, Through::Update),
            Err(Refusal::Answered)
        );
        assert!(outside.is_settled("a"));
        assert_eq!(
            outside.resolve(answer("a", "approve", Some("hash")), Through::Signal),
            Err(Refusal::Answered)
        );
        assert_eq!(outside.answer("a").unwrap().decision, "deny");
        assert!(outside.waiting().is_empty());
    }

    #[test]
    fn an_answer_may_come_before_its_call() {
        let mut outside = Outside::default();
        assert!(
            outside
                .resolve(answer("a", "approve", None), Through::Signal)
                .is_ok()
        );
        outside.result_stored("a".to_owned());
        outside.begin_step(&[call("a", &ToolKind::Client)]);
        assert!(outside.answer("a").is_some() && outside.has_result("a"));
    }

    #[test]
    fn what_is_kept_for_unknown_calls_is_bounded() {
        let mut outside = Outside::default();
        for number in 0..2 * MAX_EARLY {
            let early = answer(&number.to_string(), "approve", None);
            assert!(outside.resolve(early, Through::Signal).is_ok());
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
        assert!(
            outside
                .resolve(answer("a", "approve", None), Through::Signal)
                .is_ok()
        );
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
            outside.check(&answer("a", "approve", Some("hash")), Through::Update),
            Err(Refusal::Answered)
        );
    }

    fn bound(id: &str, answers_from: &AnswersFrom) -> PlannedCall {
        PlannedCall {
            answers_from: answers_from.into(),
            ..call(id, &ToolKind::Worker)
        }
    }

    #[test]
    fn an_answer_names_what_it_is_for() {
        let mut outside = Outside::default();
        outside.begin_step(&[bound("a", &AnswersFrom::Engine)]);
        for none in [None, Some("")] {
            for through in [Through::Update, Through::Signal] {
                let answer = answer("a", "approve", none);
                assert_eq!(outside.check(&answer, through), Err(Refusal::NoHash));
            }
        }
        let signal = answer("a", "approve", Some("hash"));
        assert!(outside.resolve(signal, Through::Signal).is_ok());
    }

    #[test]
    fn signals_can_be_switched_off() {
        let mut outside = Outside::default();
        let newer = AnswersFrom::Unknown("newer".to_owned());
        outside.begin_step(&[bound("a", &AnswersFrom::Gateway), bound("b", &newer)]);
        for id in ["a", "b"] {
            let signal = answer(id, "approve", Some("hash"));
            let refused = outside.resolve(signal.clone(), Through::Signal);
            assert_eq!(refused, Err(Refusal::BySignal));
            assert_eq!(outside.check(&signal, Through::Update), Ok(()));
        }
        let shown = outside.refused_answers();
        assert!(
            shown[0].starts_with("a: approval_not_through_gateway: "),
            "{shown:?}"
        );
    }

    #[test]
    fn a_call_whose_answer_the_store_refuses_waits_on() {
        let mut outside = Outside::default();
        outside.begin_step(&[bound("a", &AnswersFrom::Engine)]);
        let first = answer("a", "approve", Some("hash"));
        let number = outside.resolve(first.clone(), Through::Update).unwrap();
        outside.refuse("a", refusal::NEEDS_OTHER);
        assert_eq!(outside.waiting(), ["a"]);
        let why = outside.refusal_of(number).unwrap();
        assert!(why.starts_with("approval_needs_other: "), "{why}");
        let again = outside.resolve(first, Through::Update).unwrap();
        assert_eq!(
            outside.refusal_of(again),
            None,
            "the same answer, by somebody else"
        );
        for number in 0..2 * MAX_REFUSED {
            let wrong = answer("a", &number.to_string(), Some("hash"));
            assert!(outside.resolve(wrong, Through::Signal).is_err());
        }
        assert_eq!(outside.refused_answers().len(), MAX_REFUSED);
    }
}
