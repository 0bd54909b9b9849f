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

/// The questions and the answers, by tool execution.
#[derive(Debug, Default)]
pub(crate) struct People {
    asked: BTreeMap<String, Asked>,
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

    /// Notes that an answer was told to be stored. Returns another answer that was told to be stored before.
    pub(crate) fn told(&mut self, execution_id: &str, answer: &str) -> Option<String> {
        let before = self.told.insert(execution_id.to_owned(), answer.to_owned());
        before.filter(|before| before != answer)
    }

    /// Forgets what people were told, because the conversation was removed.
    pub(crate) fn forget(&mut self) {
        self.asked.clear();
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
