//! Compares the timers in the histories of runs with the times that turns and questions were given.
//!
//! The clock of the engine's model stands at the beginning of 1970, so the clock of each worker is wrong. A wait that a worker
//! computes from its own clock has no time left.

use std::time::Duration;

use temporalio_common::protos::coresdk::workflow_commands::{
    WorkflowCommand, workflow_command::Variant as Command,
};

use super::Promises;
use crate::{engine::Engine, payloads::value};

/// The time of a turn with a time limit, of an approval, and of a client's result, in seconds. The model of the engine has no
/// time, so each of the timers may fire at any moment.
pub(crate) const WAIT_S: u32 = 3600;
/// The least rest of a wait in a new run, in seconds. The store goes by the real clock, and a simulation takes seconds.
const LEAST_S: u32 = WAIT_S / 2;
/// The timers of waits, by the begin of their summaries.
const WAITS: [&str; 3] = ["approval of ", "result of ", "turn_timeout"];

impl Promises {
    /// Checks the timers of every run.
    pub(crate) fn check_waits(&mut self, engine: &Engine) {
        for (number, run) in engine.runs() {
            let commands = run.history.iter().flat_map(|task| &task.commands);
            for (summary, time) in commands.filter_map(timer) {
                let is_wait = WAITS.iter().any(|wait| summary.starts_with(wait));
                if is_wait && !(seconds(LEAST_S)..=seconds(WAIT_S)).contains(&time) {
                    self.violation(format!(
                        "the timer `{summary}` of run {number} has {time:?} of {WAIT_S} s"
                    ));
                }
            }
        }
    }
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

/// Returns the summary and the time of a timer.
fn timer(command: &WorkflowCommand) -> Option<(String, Duration)> {
    let Some(Command::StartTimer(timer)) = &command.variant else {
        return None;
    };
    let time = timer.start_to_fire_timeout?.try_into().ok()?;
    let summary = command.user_metadata.as_ref()?.summary.as_ref()?;
    Some((value(summary).ok()?, time))
}
