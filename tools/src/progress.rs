//! The progress of a call. The attempt's heartbeats send it to the engine, and `temporal workflow describe` shows it. The
//! present readers of the conversation get it, too.

use everturn_untrusted::cut;
use tokio::sync::watch;

/// The longest words of a report, in characters, because the engine stores every heartbeat.
const MAX_CHARS: usize = 200;

/// A step of a call's progress.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgressStep {
    /// The amount of work that is done, in the tool's own unit.
    pub done: Option<f64>,
    /// The whole amount of work, in the same unit.
    pub total: Option<f64>,
    /// The step in a few words; empty without words.
    pub message: String,
}

impl ProgressStep {
    /// Returns the step in a few words, like `3/10 copying`.
    pub fn in_words(&self) -> String {
        let done = self.done.map(|done| match self.total {
            Some(total) => format!("{done}/{total}"),
            None => done.to_string(),
        });
        let message = Some(self.message.clone()).filter(|message| !message.is_empty());
        let words: Vec<_> = done.into_iter().chain(message).collect();
        words.join(" ")
    }
}

/// A line of a tool's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The level, like `info`.
    pub level: String,
    /// The text.
    pub message: String,
}

/// The latest reports of a tool. An older report that nobody has read is dropped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reports {
    /// The latest step.
    pub step: Option<ProgressStep>,
    /// The latest line of the log.
    pub line: Option<LogLine>,
}

/// The progress of a call. Clones share the progress.
#[derive(Debug, Clone)]
pub struct Progress(watch::Sender<Reports>);

impl Default for Progress {
    fn default() -> Self {
        Self(watch::channel(Reports::default()).0)
    }
}

impl Progress {
    /// Reports the progress of the call in a few words, like `copying`. Longer texts are cut.
    pub fn report(&self, words: &str) {
        self.step(ProgressStep {
            message: words.to_owned(),
            ..ProgressStep::default()
        });
    }

    /// Reports a step of the call. Long words are cut, and amounts that are no numbers are left out.
    pub fn step(&self, mut step: ProgressStep) {
        step.done = step.done.filter(|done| done.is_finite());
        step.total = step.total.filter(|total| total.is_finite());
        step.message = cut(&step.message, MAX_CHARS);
        self.0.send_modify(|reports| reports.step = Some(step));
    }

    /// Reports a line of the tool's log. Long lines are cut.
    pub fn line(&self, level: &str, message: &str) {
        let line = LogLine {
            level: level.to_owned(),
            message: cut(message, MAX_CHARS),
        };
        self.0.send_modify(|reports| reports.line = Some(line));
    }

    /// Returns the latest step in a few words.
    pub fn latest(&self) -> Option<String> {
        let step = self.0.borrow().step.as_ref().map(ProgressStep::in_words);
        step.map(|words| cut(&words, MAX_CHARS))
    }

    /// Follows the reports from now on.
    pub fn follow(&self) -> watch::Receiver<Reports> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_word_is_kept_and_bounded() {
        let progress = Progress::default();
        assert_eq!(progress.latest(), None);
        let reports = progress.follow();
        progress.clone().step(ProgressStep {
            done: Some(3.0),
            total: Some(f64::NAN),
            message: "copying".to_owned(),
        });
        assert_eq!(progress.latest().as_deref(), Some("3 copying"));
        progress.line("info", &"x".repeat(10_000));
        assert_eq!(progress.latest().as_deref(), Some("3 copying"));
        let line = reports.borrow().line.clone().unwrap();
        assert_eq!(line.message.chars().count(), MAX_CHARS + 1);
        progress.report(&"x".repeat(10_000));
        assert_eq!(progress.latest().unwrap().chars().count(), MAX_CHARS + 1);
    }
}
