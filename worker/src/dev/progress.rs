//! A line of progress for each step that `everturn dev` waits for.

use std::{
    io::{IsTerminal, Write},
    time::Instant,
};

/// A step in progress.
pub(crate) struct Progress {
    what: &'static str,
    started: Instant,
}

impl Progress {
    /// Shows on a terminal that the step is in progress.
    pub(crate) fn start(what: &'static str) -> Self {
        let mut out = std::io::stdout();
        if out.is_terminal() {
            // A closed terminal is no reason to stop.
            let _unseen = write!(out, "  … {what}").and_then(|()| out.flush());
        }
        Self {
            what,
            started: Instant::now(),
        }
    }

    /// Shows the end of the step, with its duration if it was long.
    pub(crate) fn done(self, detail: &str) {
        let seconds = self.started.elapsed().as_secs_f32();
        let took = if seconds >= 0.5 {
            format!("  ({seconds:.1} s)")
        } else {
            String::new()
        };
        let start = if std::io::stdout().is_terminal() {
            "\r"
        } else {
            ""
        };
        println!("{start}  ✓ {:<24} {detail}{took}", self.what);
    }
}
