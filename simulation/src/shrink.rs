//! Makes a failing schedule shorter: another list of choices, with the same violation and fewer steps.
//!
//! A list without some of its choices is another order of events, and a choice of 0 is an ordinary event instead of a fault.
//! Behind the end of a list come first choices. Therefore every list is a schedule, and a shorter list is often a shorter
//! story.
//!
//! Must not be here: the meaning of a choice.

use crate::{Outcome, Promise, run_choices};

/// The most schedules to try.
const MAX_TRIES: usize = 2000;

/// Returns the shortest schedule found with the first violation of the outcome. Without a violation, or when no shorter
/// schedule has the violation, the outcome stays as it is.
pub fn shrink(outcome: Outcome, promise: Option<Promise>) -> Outcome {
    let Some(violation) = outcome.violations.first().map(|text| kind_of(text)) else {
        return outcome;
    };
    let mut search = Search {
        violation,
        promise,
        tries: 0,
        best: outcome,
    };
    while search.pass() {}
    search.best
}

/// The search for a shorter schedule.
struct Search {
    violation: String,
    promise: Option<Promise>,
    tries: usize,
    best: Outcome,
}

impl Search {
    /// Tries to leave out, and to replace by 0, each part of the list: first halves, at last single choices. Returns true when
    /// a schedule became shorter.
    fn pass(&mut self) -> bool {
        let before = rank(&self.best);
        let mut size = self.best.choices.len().div_ceil(2);
        while size > 0 {
            self.leave_out(size);
            self.make_ordinary(size);
            size /= 2;
        }
        rank(&self.best) < before && self.tries < MAX_TRIES
    }

    /// Tries to leave out each part of a size. The last parts come first, because the begin of a story decides the rest.
    fn leave_out(&mut self, size: usize) {
        let mut end = self.best.choices.len();
        while end > 0 {
            let begin = end.saturating_sub(size);
            let mut shorter = self.best.choices.clone();
            shorter.drain(begin..end);
            self.try_list(shorter);
            end = begin.min(self.best.choices.len());
        }
    }

    /// Tries to replace each part of a size by first choices.
    fn make_ordinary(&mut self, size: usize) {
        let mut end = self.best.choices.len();
        while end > 0 {
            let begin = end.saturating_sub(size);
            let mut ordinary = self.best.choices.clone();
            for choice in ordinary.iter_mut().take(end).skip(begin) {
                *choice = 0;
            }
            if ordinary != self.best.choices {
                self.try_list(ordinary);
            }
            end = begin.min(self.best.choices.len());
        }
    }

    /// Runs a list, and keeps its outcome if the violation is the same and the schedule is shorter.
    fn try_list(&mut self, list: Vec<u32>) {
        if self.tries == MAX_TRIES {
            return;
        }
        self.tries += 1;
        // A list that cannot run is no shorter schedule.
        let Ok(mut tried) = run_choices(list, self.promise) else {
            return;
        };
        let mut violations = tried.violations.iter();
        let is_same = violations.any(|text| kind_of(text) == self.violation);
        // First choices follow every list.
        let used = tried.choices.iter().rposition(|choice| *choice != 0);
        tried.choices.truncate(used.map_or(0, |last| last + 1));
        if is_same && rank(&tried) < rank(&self.best) {
            self.best = tried;
        }
    }
}

/// Returns the size of a schedule: its steps, then its choices, then the choices of another than the first event.
fn rank(outcome: &Outcome) -> (usize, usize, usize) {
    let choices = &outcome.choices;
    let others = choices.iter().filter(|choice| **choice != 0).count();
    (outcome.steps, choices.len(), others)
}

/// Returns the text of a violation without ids and numbers, which differ between two schedules.
fn kind_of(violation: &str) -> String {
    let words = violation.split_whitespace();
    let words = words.map(|word| {
        let is_name = word.contains(|letter: char| letter.is_ascii_digit());
        if is_name { "#" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}
