//! Shows the progress of a running tool to the present readers.
//!
//! Must not be here: the progress in heartbeats (`attempt`).

use std::{convert::Infallible, time::Duration};

use everturn_proto::LogId;
use everturn_store::ToolKey;
use everturn_stream::{Notice, StreamWriter, ToolProgress};
use everturn_tools::{LogLine, Progress, ProgressStep};
use serde_json::Number;

use crate::readers;

/// The time between two notices of a call. A person reads no faster, and a tool may report a thousand steps a second.
const PAUSE: Duration = Duration::from_secs(1);
/// The largest amount that is written without a fraction: every whole number up to it is exact.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The call whose progress is shown.
pub(crate) struct Shown<'a> {
    pub(crate) stream: &'a dyn StreamWriter,
    pub(crate) log: &'a LogId,
    pub(crate) key: &'a ToolKey,
    pub(crate) tool_name: &'a str,
}

impl Shown<'_> {
    /// Runs the tool, and shows its progress meanwhile. A slow stream does not delay the tool.
    pub(crate) async fn meanwhile<T>(
        &self,
        progress: &Progress,
        tool: impl Future<Output = T>,
    ) -> T {
        tokio::select! {
            biased;
            done = tool => done,
            never = self.show(progress) => match never {},
        }
    }

    async fn show(&self, progress: &Progress) -> Infallible {
        let mut reports = progress.follow();
        let (mut step, mut line) = (None, None);
        loop {
            if reports.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let latest = reports.borrow_and_update().clone();
            if let Some(new) = changed(&mut step, latest.step) {
                self.notify(self.of_step(new)).await;
            }
            if let Some(new) = changed(&mut line, latest.line) {
                self.notify(self.of_line(new)).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn notify(&self, progress: ToolProgress) {
        readers::notify(self.stream, self.log, Notice::ToolWorks(progress)).await;
    }

    fn of_step(&self, step: ProgressStep) -> ToolProgress {
        ToolProgress {
            progress: step.done.and_then(number),
            total: step.total.and_then(number),
            ..self.of_words(step.message)
        }
    }

    fn of_line(&self, line: LogLine) -> ToolProgress {
        ToolProgress {
            level: Some(line.level),
            ..self.of_words(line.message)
        }
    }

    fn of_words(&self, message: String) -> ToolProgress {
        ToolProgress {
            message_id: self.key.message_id.clone(),
            agent_execution_id: self.key.agent_execution_id.clone(),
            execution_id: self.key.execution_id.clone(),
            tool_name: self.tool_name.to_owned(),
            progress: None,
            total: None,
            message,
            level: None,
        }
    }
}

/// Returns the report if it differs from the last shown report.
fn changed<T: Clone + PartialEq>(shown: &mut Option<T>, latest: Option<T>) -> Option<T> {
    if *shown == latest {
        return None;
    }
    shown.clone_from(&latest);
    latest
}

/// Returns an amount as a JSON number: a whole amount has no fraction.
fn number(amount: f64) -> Option<Number> {
    if amount.fract() == 0.0 && amount.abs() <= MAX_WHOLE {
        return format!("{amount:.0}").parse::<i64>().ok().map(Number::from);
    }
    Number::from_f64(amount)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use async_trait::async_trait;
    use everturn_stream::{Announcement, Piece, Published, StreamError};

    use super::*;

    /// Keeps the messages of the notices.
    #[derive(Default)]
    struct Kept(Mutex<Vec<(String, Option<String>)>>);

    #[async_trait]
    impl StreamWriter for Kept {
        async fn publish(&self, _: &LogId, _: Piece) -> Result<Published, StreamError> {
            Ok(Published::Accepted)
        }

        async fn announce(&self, _: &LogId, _: Announcement) -> Result<(), StreamError> {
            Ok(())
        }

        async fn notify(&self, _: &LogId, notice: Notice) -> Result<(), StreamError> {
            let Notice::ToolWorks(progress) = notice else {
                unreachable!()
            };
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push((progress.message, progress.level));
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_steps_a_second_are_one_notice_a_second() {
        let (kept, log) = (Kept::default(), LogId::from("log"));
        let key = ToolKey {
            conversation_id: "c".to_owned(),
            message_id: "m".to_owned(),
            agent_execution_id: "run".to_owned(),
            step: 0,
            execution_id: "exec".to_owned(),
            epoch: None,
        };
        let shown = Shown {
            stream: &kept,
            log: &log,
            key: &key,
            tool_name: "copy",
        };
        let progress = Progress::default();
        let tool = async {
            progress.line("info", "begins");
            for step in 0..3000 {
                progress.report(&step.to_string());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            "done"
        };
        assert_eq!(shown.meanwhile(&progress, tool).await, "done");
        let kept = kept.0.into_inner().unwrap();
        let steps = kept.iter().filter(|(_, level)| level.is_none()).count();
        assert!((3..=4).contains(&steps), "{kept:?}");
        let lines: Vec<_> = kept.iter().filter_map(|(_, level)| level.clone()).collect();
        assert_eq!(lines, ["info"]);
    }

    #[test]
    fn whole_amounts_have_no_fraction() {
        let written = |amount| number(amount).map(|it| it.to_string());
        assert_eq!(written(3.0).as_deref(), Some("3"));
        assert_eq!(written(0.5).as_deref(), Some("0.5"));
        assert_eq!(written(1e300).as_deref(), Some("1e+300"));
        assert_eq!(written(f64::NAN), None);
    }
}
