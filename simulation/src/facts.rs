//! What has really happened in a simulation, outside the product's own memory: calls that were paid, tools that ran, and
//! what a person was told. The oracles compare the product with these facts.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    engine::Attempt,
    promises::{Promises, StepOf},
};

/// The facts of a simulation.
#[derive(Debug, Default)]
pub struct Facts {
    /// The messages that were answered with 202.
    pub accepted: Vec<String>,
    /// The number of removals of the conversation.
    pub removals: u32,
    /// The messages of removed conversations.
    pub removed: BTreeSet<String>,
    /// The messages whose cancel was answered.
    pub cancelled: BTreeSet<String>,
    /// The model calls that were begun, by step.
    pub calls: BTreeMap<StepOf, u32>,
    /// The model calls whose reply was lost with their attempt, by step.
    pub cut: BTreeMap<StepOf, u32>,
    /// The attempts that have claimed a step, and have stored no reply yet.
    pub open: BTreeMap<Attempt, StepOf>,
    /// The attempts that the engine has given up. They may still run, and their replies are lost.
    pub given_up: BTreeSet<Attempt>,
    /// The runs of tools, by tool execution.
    pub tools: BTreeMap<String, u32>,
    /// The epoch of the newest run that has taken a turn over, by the turn's message.
    pub epochs: BTreeMap<String, u32>,
    /// What a client was promised.
    pub promises: Promises,
    /// What must never happen, and did.
    pub violations: Vec<String>,
}

impl Facts {
    /// Notes what must never happen.
    pub fn violation(&mut self, text: String) {
        self.violations.push(text);
    }

    /// Notes that the conversation was removed. The promises about its messages end.
    pub fn conversation_is_removed(&mut self) {
        self.removals += 1;
        self.removed.extend(self.accepted.drain(..));
        self.cancelled.clear();
        self.promises.conversation_is_removed();
    }

    /// Notes the claim of a model call for the turn of a message. The call follows at once.
    pub fn call_is_claimed(&mut self, message_id: &str, attempt: Attempt, step: &StepOf) {
        if self.cancelled.contains(message_id) {
            let text = format!("a model call of {message_id} begins after its cancel was answered");
            self.violations.push(text);
        }
        if self.removed.contains(message_id) {
            let text = format!("a model call of {message_id} begins after its removal");
            self.violations.push(text);
        }
        self.open.insert(attempt, step.clone());
        if self.given_up.contains(&attempt) {
            self.call_is_cut(attempt);
        }
    }

    /// Notes the begin of a model call, which is paid.
    pub fn call_begins(&mut self, step: &StepOf) {
        *self.calls.entry(step.clone()).or_default() += 1;
        let (calls, cut) = (self.calls.get(step), self.cut.get(step));
        let (calls, cut) = (calls.copied().unwrap_or(0), cut.copied().unwrap_or(0));
        if calls > 1 + cut {
            let text = format!("step {step:?} is paid {calls} times with {cut} lost replies");
            self.violations.push(text);
        }
    }

    /// Notes that the reply of an attempt is stored.
    pub fn call_ends(&mut self, attempt: Attempt) {
        self.open.remove(&attempt);
    }

    /// Notes that the engine has given an attempt up, or that the attempt has died. The reply of its model call is lost.
    pub fn call_is_cut(&mut self, attempt: Attempt) {
        self.given_up.insert(attempt);
        if let Some(step) = self.open.remove(&attempt) {
            *self.cut.entry(step).or_default() += 1;
        }
    }

    /// Notes that the engine has ended a run with these attempts.
    pub fn run_is_cut(&mut self, attempts: Vec<Attempt>) {
        for attempt in attempts {
            self.call_is_cut(attempt);
        }
    }

    /// Notes that a run of an epoch has taken a turn over.
    pub fn takes_over(&mut self, message_id: &str, epoch: u32) {
        let newest = self.epochs.entry(message_id.to_owned()).or_default();
        *newest = epoch.max(*newest);
    }

    /// Checks a change of the store by a run: a run that was replaced changes nothing.
    pub fn run_changes(&mut self, message_id: &str, epoch: Option<u32>, what: &str) {
        let newest = self.epochs.get(message_id).copied().unwrap_or(0);
        if epoch.is_some_and(|epoch| epoch < newest) {
            let text =
                format!("{what} of {message_id} in epoch {epoch:?} comes after epoch {newest}");
            self.violations.push(text);
        }
    }

    /// Notes a run of a `once` tool.
    pub fn tool_runs(&mut self, execution_id: &str) {
        let runs = self.tools.entry(execution_id.to_owned()).or_default();
        *runs += 1;
        if *runs > 1 {
            let text = format!("the tool execution {execution_id} runs {runs} times");
            self.violations.push(text);
        }
    }
}
