//! One line for each thing that is waited for.

use std::{
    io::{IsTerminal, Write},
    time::Instant,
};

/// Something that is being waited for.
pub(crate) struct Progress {
    what: &'static str,
    started: Instant,
}

impl Progress {
    /// Shows, on a terminal, that it is being waited for.
    pub(crate) fn start(what: &'static str) -> Self {
        let mut out = std::io::stdout();
        if out.is_terminal() {
            // A terminal that was closed is no reason to stop.
            let _unseen = write!(out, "  … {what}").and_then(|()| out.flush());
        }
        Self {
            what,
            started: Instant::now(),
        }
    }

    /// Shows that the wait is over, and its time when it was long.
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
