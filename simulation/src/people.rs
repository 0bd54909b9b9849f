//! What turns have asked people and clients, and what people and clients were told. The oracles compare the store with these
//! facts.

use std::collections::BTreeMap;

/// A question of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A person must approve a call with this hash of its input.
    Approval(String),
    /// A client must run a call.
    ClientTool,
}

/// A question that may have answers.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The question.
    pub(crate) ask: Ask,
    /// The number of times that people will still turn to the question.
    pub(crate) sessions: usize,
    /// The position among all questions.
    number: usize,
}

/// A request of a person with a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    /// The state of the approval that the decision leads to.
    outcome: String,
    /// The times of the begin and of the end, on the clock of the requests. A request whose gateway died has no end.
    begun_at: u64,
    ended_at: Option<u64>,
    /// The request has ended without a decision, and no answer was stored by then.
    is_unanswered: bool,
}

/// The questions and the answers, by tool execution.
#[derive(Debug, Default)]
pub(crate) struct People {
    clock: u64,
    asked: BTreeMap<String, Asked>,
    /// The requests with decisions.
    requests: BTreeMap<String, Vec<Request>>,
    /// The answers that were told to be stored: a decision, or the result of a client tool.
    told: BTreeMap<String, String>,
}

impl People {
    /// Notes a question to which people turn a number of times.
    pub(crate) fn asks(&mut self, execution_id: &str, ask: Ask, sessions: usize) {
        let number = self.asked.len();
        let asked = Asked {
            ask,
            sessions,
            number,
        };
        self.asked.entry(execution_id.to_owned()).or_insert(asked);
    }

    /// Returns the tool executions to which people still turn, in the order of the questions. The ids have no order that a seed
    /// repeats.
    pub(crate) fn open(&self) -> Vec<String> {
        let open = self.asked.iter().filter(|(_, asked)| asked.sessions > 0);
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|(_, asked)| asked.number);
        open.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Begins a turn of people to a question.
    pub(crate) fn begin(&mut self, execution_id: &str) -> Option<Ask> {
        let asked = self.asked.get_mut(execution_id)?;
        asked.sessions = asked.sessions.checked_sub(1)?;
        Some(asked.ask.clone())
    }

    /// Notes the begin of a request with a decision. Returns the time of the begin.
    pub(crate) fn request_begins(&mut self, execution_id: &str, outcome: &str) -> u64 {
        self.clock += 1;
        let requests = self.requests.entry(execution_id.to_owned()).or_default();
        requests.push(Request {
            outcome: outcome.to_owned(),
            begun_at: self.clock,
            ended_at: None,
            is_unanswered: false,
        });
        self.clock
    }

    /// Notes the end of a request that began at this time. `is_unanswered` is true when the gateway has taken the decision,
    /// could not tell that the decision counts, and the call still waits.
    pub(crate) fn request_ends(&mut self, execution_id: &str, begun_at: u64, is_unanswered: bool) {
        self.clock += 1;
        let ended_at = Some(self.clock);
        let requests = self.requests.get_mut(execution_id).into_iter().flatten();
        for request in requests.filter(|request| request.begun_at == begun_at) {
            (request.ended_at, request.is_unanswered) = (ended_at, is_unanswered);
        }
    }

    /// Returns true when this decision of the call cannot count: the call still waited after a request with another decision,
    /// and every request with this decision had ended before that request.
    pub(crate) fn is_overruled(&self, execution_id: &str, outcome: &str) -> bool {
        let requests = || self.requests.get(execution_id).into_iter().flatten();
        let mut newer = requests().filter(|it| it.is_unanswered && it.outcome != outcome);
        let is_asked = requests().any(|it| it.outcome == outcome);
        is_asked
            && newer.any(|newer| {
                let mut same = requests().filter(|it| it.outcome == outcome);
                same.all(|it| {
                    it.ended_at
                        .is_some_and(|ended_at| ended_at < newer.begun_at)
                })
            })
    }

    /// Returns the tool executions with requests that have a decision.
    pub(crate) fn decided(&self) -> Vec<String> {
        self.requests.keys().cloned().collect()
    }

    /// Notes that an answer was told to be stored. Returns another answer that was told to be stored before.
    pub(crate) fn told(&mut self, execution_id: &str, answer: &str) -> Option<String> {
        let before = self.told.insert(execution_id.to_owned(), answer.to_owned());
        before.filter(|before| before != answer)
    }

    /// Forgets what people were told, because the conversation was removed.
    pub(crate) fn forget(&mut self) {
        self.asked.clear();
        self.requests.clear();
        self.told.clear();
    }

    /// Returns true when a person was told that the call is denied.
    pub(crate) fn has_denied(&self, execution_id: &str) -> bool {
        let told = self.told.get(execution_id);
        told.is_some_and(|answer| answer == "denied")
    }

    /// Returns the answers that were told to be stored.
    pub(crate) fn all_told(&self) -> Vec<(String, String)> {
        self.told.clone().into_iter().collect()
    }
}
