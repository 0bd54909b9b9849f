//! The answers from outside for which a turn waits: a person's approval, or the result of a client tool. Pure data.
//!
//! A tool call is registered here before the save of its batch. Readers see the request as soon as it is stored, and
//! may answer before the engine has noted the save (invariant 3, idempotent saves). For the same reason, an answer to
//! an unknown call is kept for a while: after a replay the answer may come before the call.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use everturn_proto::{
    ids,
    turn::{PlannedCall, ResolveApproval, SavedApproval, WaitingApproval},
    words::{AnswersFrom, ApprovalRefusal, ApprovalState, ToolKind},
};

/// The most answers to unknown calls that are kept. The number is above the most calls of a step.
const MAX_EARLY: usize = 64;
/// The most refused answers that are kept, for waiting callers and for query `status`.
const MAX_REFUSED: usize = 16;
/// The sentence for the sender of an answer whose turn ended before the save.
pub(crate) const LOST_ANSWER: &str = "the turn was cancelled before the answer was stored";

/// The calls of the running step that wait for an answer from outside.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    approvals: BTreeMap<String, Approval>,
    /// Client tools by their tool execution; true after the result is stored.
    results: BTreeMap<String, bool>,
    early_answers: VecDeque<(ResolveApproval, Through)>,
    early_results: VecDeque<String>,
    refused: VecDeque<RefusedAnswer>,
    /// Number of received answers.
    answers: u64,
    /// True while the search attribute TurnStatus shows a wait for a person.
    is_shown_waiting: bool,
}

/// The channel of an answer: update or signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// An update: the way of the gateways.
    Update,
    /// A signal, sent by hand.
    Signal,
}

/// The number of an answer. It tells equal answers apart: the refusal of an answer does not refuse the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswerNumber(u64);

/// A refused answer.
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
    /// The call is not waiting now.
    Unknown,
    /// The call has an answer already.
    Answered,
    /// The call has an answer whose save is still running.
    BeingStored,
    /// The answer was given for another input, or for another definition of the tool.
    OtherInput,
    /// The answer lacks the hash of its request.
    NoHash,
    /// The answer came as a signal, and only the answers of gateways are taken.
    BySignal,
    /// The answer is not valid for any call.
    Invalid(&'static str),
}

const NOT_THROUGH_GATEWAY: &str =
    "answers are taken through a gateway only (`[approvals] allow_signal`)";

/// Returns the message of a refusal by the store.
fn refused_by_store(refusal: &ApprovalRefusal) -> String {
    refusal.message(match refusal {
        ApprovalRefusal::NeedsOther => {
            "a known person who has sent no message of the turn must approve"
        }
        ApprovalRefusal::NotThroughGateway => NOT_THROUGH_GATEWAY,
        _ => "the answer was not stored",
    })
}

impl fmt::Display for Refusal {
    /// Writes a code for the gateway, and a sentence for people.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, sentence) = match self {
            Self::Unknown => (
                ApprovalRefusal::NotWaiting,
                "the call does not wait for an approval now",
            ),
            Self::Answered => (ApprovalRefusal::Answered, "the call has been answered"),
            Self::BeingStored => (ApprovalRefusal::BeingStored, "an answer is being stored"),
            Self::OtherInput => (
                ApprovalRefusal::Mismatch,
                "the approval is for another input than the call's",
            ),
            Self::NoHash => (
                ApprovalRefusal::Mismatch,
                "an answer must name the `input_hash` of the approval's request",
            ),
            Self::BySignal => (ApprovalRefusal::NotThroughGateway, NOT_THROUGH_GATEWAY),
            Self::Invalid(flaw) => (ApprovalRefusal::Invalid, *flaw),
        };
        formatter.write_str(&word.message(sentence))
    }
}

impl Outside {
    /// Forgets the calls of the step before, and notes the approvals and results for which the calls of this step wait.
    pub(crate) fn begin_step(&mut self, calls: &[PlannedCall]) {
        self.refuse_unstored();
        self.results.clear();
        for call in calls {
            if call.approval_timeout_s.is_some() {
                let approval = Approval::of(call, call.input_hash.clone());
                self.approvals.insert(call.execution_id.clone(), approval);
            }
            if call.kind() == ToolKind::Client {
                self.results.insert(call.execution_id.clone(), false);
            }
        }
        self.take_early_answers();
        for execution_id in std::mem::take(&mut self.early_results) {
            self.result_stored(execution_id);
        }
    }

    /// Notes that the call waits for a person, with the hash of the request. The call has asked before this note: the
    /// request is stored. An earlier answer to the same request stays.
    pub(crate) fn await_person(&mut self, call: &PlannedCall, input_hash: String) {
        let id = &call.execution_id;
        let is_known = |known: &Approval| known.input_hash == input_hash;
        if self.approvals.get(id).is_some_and(is_known) {
            return;
        }
        self.approvals
            .insert(id.clone(), Approval::of(call, input_hash));
        self.take_early_answers();
    }

    fn take_early_answers(&mut self) {
        for (answer, through) in std::mem::take(&mut self.early_answers) {
            // An unfit early answer is ignored, because its sender no longer waits.
            let _ = self.resolve(answer, through);
        }
    }

    /// Forgets the approvals. The sender of an answer that nobody has stored gets a refusal, because the turn was cancelled
    /// before the save of the answer.
    fn refuse_unstored(&mut self) {
        for known in std::mem::take(&mut self.approvals).into_values() {
            let unstored = known.answer.filter(|_| !known.is_stored);
            if let Some(answer) = unstored.filter(has_sender) {
                let why = ApprovalRefusal::NotWaiting
                    .message("the turn ended before the answer was stored");
                self.note_refused(known.number, &answer, why);
            }
        }
    }

    /// Checks whether the answer would be taken, without taking it.
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
            // A running tool may have asked since.
            Approval {
                is_stored: true, ..
            } if !known.is_meant_by(answer) => return Err(Refusal::Unknown),
            Approval {
                is_stored: true, ..
            } => return Err(Refusal::Answered),
            Approval { .. } => return Err(Refusal::BeingStored),
        }
        let may_be_signal = match &known.answers_from {
            AnswersFrom::Engine => true,
            AnswersFrom::Gateway | AnswersFrom::Unknown(_) => false,
        };
        if through == Through::Signal && !may_be_signal {
            return Err(Refusal::BySignal);
        }
        if answer.input_hash().is_empty() {
            Err(Refusal::NoHash)
        } else if known.is_meant_by(answer) {
            Ok(())
        } else {
            Err(Refusal::OtherInput)
        }
    }

    /// Takes an answer. Only a call's first answer counts, and any later answer is refused.
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
                // The sender of an update gets the refusal as its result.
                if through == Through::Signal {
                    self.note_refused(number, &answer, refusal.to_string());
                }
                Err(refusal)
            }
        }
    }

    /// Notes that the store has refused the answer to a call. The call keeps waiting.
    pub(crate) fn refuse(&mut self, execution_id: &str, refusal: &ApprovalRefusal) {
        let Some(known) = self.approvals.get_mut(execution_id) else {
            return;
        };
        let number = known.number;
        if let Some(answer) = known.answer.take() {
            self.note_refused(number, &answer, refused_by_store(refusal));
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

    /// Returns the reason why a taken answer was refused later; `None` when it was not refused.
    pub(crate) fn refusal_of(&self, number: AnswerNumber) -> Option<&str> {
        let mut refused = self.refused.iter();
        let found = refused.find(|refused| refused.number == number);
        found.map(|refused| refused.why.as_str())
    }

    /// Returns the last refused answers, for query `status`.
    pub(crate) fn refused_answers(&self) -> Vec<String> {
        let refused = self.refused.iter();
        refused
            .map(|refused| format!("{}: {}", refused.execution_id, refused.why))
            .collect()
    }

    /// Notes that the client's result is stored.
    pub(crate) fn result_stored(&mut self, execution_id: String) {
        match self.results.get_mut(&execution_id) {
            Some(is_stored) => *is_stored = true,
            None => keep(&mut self.early_results, execution_id),
        }
    }

    /// Notes that the store has the answer already, because the run was reset or resumed. The call needs no further
    /// answer.
    pub(crate) fn skip_approval(&mut self, execution_id: &str) {
        self.approvals.remove(execution_id);
    }

    /// True when the call needs an approval, and the store had no answer at its registration in this run.
    pub(crate) fn needs_approval(&self, execution_id: &str) -> bool {
        self.approvals.contains_key(execution_id)
    }

    /// Returns the hash of the request for which the call waits; empty for an unknown call.
    pub(crate) fn awaited_hash(&self, execution_id: &str) -> String {
        let known = self.approvals.get(execution_id);
        known.map_or_else(String::new, |known| known.input_hash.clone())
    }

    /// Returns the answer, as soon as the call has an answer.
    pub(crate) fn answer(&self, execution_id: &str) -> Option<&ResolveApproval> {
        self.approvals
            .get(execution_id)
            .and_then(|known| known.answer.as_ref())
    }

    /// Notes the end of the save of the call's answer. The sender of the answer gets a refusal when the store has saved a newer
    /// answer of a person, and when the store has saved no answer because another run has ended the turn.
    pub(crate) fn answer_stored(&mut self, execution_id: &str, saved: Option<&SavedApproval>) {
        let Some(known) = self.approvals.get_mut(execution_id) else {
            return;
        };
        known.is_stored = true;
        let number = known.number;
        let Some(answer) = known.answer.clone().filter(has_sender) else {
            return;
        };
        let why = match saved {
            None => ApprovalRefusal::NotWaiting.message(LOST_ANSWER),
            Some(saved) if is_replaced(&answer, saved) => {
                ApprovalRefusal::Replaced.message("a newer answer to the call was stored")
            }
            Some(_) => return,
        };
        self.note_refused(number, &answer, why);
    }

    /// True when the call's answer is stored, or when the call no longer waits because its turn ends.
    pub(crate) fn is_settled(&self, execution_id: &str) -> bool {
        self.approvals
            .get(execution_id)
            .is_none_or(|known| known.is_stored)
    }

    /// Notes that the approval's time is over without an answer. A later answer is refused.
    pub(crate) fn expire(&mut self, execution_id: &str) {
        let answer = ResolveApproval {
            execution_id: execution_id.to_owned(),
            ..ResolveApproval::default()
        };
        if let Some(known) = self.approvals.get_mut(execution_id) {
            known.answer.get_or_insert(answer);
        }
    }

    /// Forgets every call, when the turn has no more tools to run.
    pub(crate) fn end_step(&mut self) {
        self.begin_step(&[]);
    }

    /// Returns the change of TurnStatus: true when the turn now waits for a person, false when it no longer waits,
    /// `None` without a change.
    pub(crate) fn status_change(&mut self) -> Option<bool> {
        let is_waiting = self.approvals.values().any(|known| known.answer.is_none());
        (std::mem::replace(&mut self.is_shown_waiting, is_waiting) != is_waiting)
            .then_some(is_waiting)
    }

    /// True after the client's result is stored.
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

    /// Returns the waiting calls, for query `status`.
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

impl Approval {
    /// Returns the wait of a call for a person, without an answer.
    fn of(call: &PlannedCall, input_hash: String) -> Self {
        Self {
            input_hash,
            answers_from: call.answers_from(),
            answer: None,
            number: AnswerNumber::default(),
            is_stored: false,
        }
    }

    /// True when the answer names the request of the call.
    fn is_meant_by(&self, answer: &ResolveApproval) -> bool {
        answer.input_hash() == self.input_hash
    }
}

/// True when somebody has sent the answer. An expiry has no decision and no sender.
fn has_sender(answer: &ResolveApproval) -> bool {
    !answer.decision.is_empty()
}

/// True when the stored answer is not the given answer of a sender.
fn is_replaced(answer: &ResolveApproval, saved: &SavedApproval) -> bool {
    match &saved.answer_id {
        Some(id) => *id != ids::answer_id(answer),
        None => match saved.decision() {
            // The answer to a question, which the person declined.
            ApprovalState::Declined => answer.outcome() != ApprovalState::Denied,
            decision => decision != answer.outcome(),
        },
    }
}

fn keep<T>(early: &mut VecDeque<T>, item: T) {
    if early.len() >= MAX_EARLY {
        early.pop_front();
    }
    early.push_back(item);
}
