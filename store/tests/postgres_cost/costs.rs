//! The measure of round trips: the statements that cross a line, by call.

use std::future::Future;

use crate::support::line::Line;

pub(crate) struct Costs<'a> {
    pub(crate) line: &'a Line,
    pub(crate) measured: Vec<(&'static str, u64)>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(line: &'a Line) -> Self {
        Self {
            line,
            measured: Vec::new(),
        }
    }

    pub(crate) async fn of<T>(&mut self, name: &'static str, call: impl Future<Output = T>) -> T {
        self.line.round_trips();
        let done = call.await;
        self.measured.push((name, self.line.round_trips()));
        done
    }
}
