//! Compares the signals in the histories of runs with the facts: a request that changes nothing adds nothing to a history.

use std::collections::BTreeMap;

use everturn_proto::turn::{Cancel, Submit};
use temporalio_common::protos::coresdk::workflow_activation::{
    SignalWorkflow, workflow_activation_job::Variant as Job,
};

use super::Promises;
use crate::{
    engine::{Engine, Run},
    payloads::value,
};

/// The most signals of a message in a run: one for a new message, one for its repetitions, one more with a cancel, which
/// starts a missing workflow, and one more from the run before a reset.
const MAX_SIGNALS: u32 = 4;

impl Promises {
    /// Checks the signals of every run.
    pub(crate) fn check_signals(&mut self, engine: &Engine) {
        for (number, run) in engine.runs() {
            let mut submits = BTreeMap::<String, u32>::new();
            for signal in signals_of(run) {
                let Some(input) = signal.input.first() else {
                    continue;
                };
                match signal.signal_name.as_str() {
                    "submit" => {
                        let id = value::<Submit>(input).ok().and_then(|it| it.message_id);
                        *submits.entry(id.unwrap_or_default()).or_default() += 1;
                    }
                    "cancel" => {
                        let id = value::<Cancel>(input).ok().and_then(|it| it.message_id);
                        self.check_cancel(number, &id.unwrap_or_default());
                    }
                    _ => {}
                }
            }
            for (id, times) in submits {
                if times > MAX_SIGNALS {
                    self.violation(format!("run {number} has {times} signals of {id}"));
                }
            }
        }
    }

    fn check_cancel(&mut self, number: usize, message_id: &str) {
        if self.cancels.get(message_id) == Some(&0) {
            self.violation(format!(
                "run {number} has a cancel of {message_id}, which had no unfinished turn"
            ));
        }
    }
}

fn signals_of(run: &Run) -> impl Iterator<Item = &SignalWorkflow> {
    let activations = run.history.iter().flat_map(|task| &task.activations);
    let jobs = activations.flat_map(|activation| &activation.jobs);
    jobs.filter_map(|job| match &job.variant {
        Some(Job::SignalWorkflow(signal)) => Some(signal),
        _ => None,
    })
}
