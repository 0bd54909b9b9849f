//! The promises to a client that need more than one fact: the order of messages, interrupts, withdrawn messages, replies, ends
//! of tools, signals, and waits. The actors note facts, and `log` compares the facts with the log of events at the end.
//!
//! Must not be here: calls of the store or of the engine.

mod log;
mod signals;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::waits::WAIT_S;

/// A step of an agent execution.
pub(crate) type StepOf = (String, u32);

/// A message of the client, by the client's id.
#[derive(Debug, Default)]
struct Sent {
    /// The behaviours while a turn runs. A repeated request may name another behaviour.
    on_busy: BTreeSet<String>,
    /// The times of the first and of the last request, on the clock of the notes.
    first_at: u64,
    last_at: u64,
    /// The gateway's id and the time of the first answer.
    accepted: Option<(String, u64)>,
}

impl Sent {
    /// The behaviour that every request has named.
    fn only_on_busy(&self) -> Option<&str> {
        let mut words = self.on_busy.iter();
        let only = words.next().filter(|_| words.next().is_none());
        only.map(String::as_str)
    }
}

/// The facts.
#[derive(Debug, Default)]
pub struct Promises {
    clock: u64,
    sent: BTreeMap<String, Sent>,
    /// The messages that a turn has taken.
    begun: BTreeSet<String>,
    /// The requests to cancel a message, without the requests that were answered as needless.
    cancels: BTreeMap<String, u32>,
    /// The messages whose cancel was answered before a turn took the message, and the messages whose turn ended as cancelled
    /// at its begin. Their texts belong to no context.
    withdrawn: BTreeSet<String>,
    /// The accepted messages that interrupt and have not begun, with the steps that other turns have claimed since.
    interrupts: BTreeMap<String, BTreeSet<StepOf>>,
    /// Such messages whose signal was lost with a workflow, until a resume.
    lost_signals: BTreeSet<String>,
    /// The time of the last workflow that an operator terminated.
    terminated_at: u64,
    /// The newest generation of each step.
    generations: BTreeMap<StepOf, u32>,
    /// The claims without a reply, by agent execution.
    open_claims: BTreeMap<String, u32>,
    /// The claims that were given back, by agent execution.
    given_back: BTreeMap<String, u32>,
    /// The agent execution that began a sub-agent, by the sub-agent's agent execution.
    parents: BTreeMap<String, String>,
    /// The first end of each tool execution.
    tool_ends: BTreeMap<String, String>,
    /// Whether a turn has hooks, by agent execution.
    hooks: BTreeMap<String, bool>,
    /// The agent executions whose hooks have begun.
    begun_hooks: BTreeSet<String>,
    /// Somebody has ended a workflow from outside.
    is_disturbed: bool,
    /// What must never happen, and did.
    pub violations: Vec<String>,
}

impl Promises {
    fn violation(&mut self, text: String) {
        if !self.violations.contains(&text) {
            self.violations.push(text);
        }
    }

    /// Notes a request of the client with a message.
    pub fn is_sent(&mut self, key: &str, on_busy: &str) {
        self.clock += 1;
        let sent = self.sent.entry(key.to_owned()).or_insert_with(|| Sent {
            first_at: self.clock,
            ..Sent::default()
        });
        sent.on_busy.insert(on_busy.to_owned());
        if on_busy == "interrupt" {
            // A newer message that interrupts withdraws the older messages that interrupt.
            self.interrupts.clear();
            self.lost_signals.clear();
        }
        sent.last_at = self.clock;
    }

    /// Notes the answer 202 to a message.
    pub fn is_accepted(&mut self, key: &str, message_id: &str) {
        self.clock += 1;
        let Some(sent) = self.sent.get_mut(key) else {
            return;
        };
        if sent.accepted.is_none() {
            sent.accepted = Some((message_id.to_owned(), self.clock));
        }
        let last_at = sent.last_at;
        let interrupts = sent.only_on_busy() == Some("interrupt");
        let interrupts = interrupts && self.is_last_interrupt(key);
        if interrupts && !self.begun.contains(message_id) && !self.cancels.contains_key(message_id)
        {
            if last_at < self.terminated_at {
                self.lost_signals.insert(message_id.to_owned());
            } else {
                let waiting = self.interrupts.entry(message_id.to_owned());
                waiting.or_default();
            }
        }
    }

    /// True when no other message that interrupts was sent later, or at the same time. The store may have such a message later,
    /// and the later message withdraws the older message.
    fn is_last_interrupt(&self, key: &str) -> bool {
        let sent_at = self.sent.get(key).map_or(0, |sent| sent.first_at);
        self.sent.iter().all(|(other, sent)| {
            let is_before = sent.accepted.as_ref().is_some_and(|(_, at)| *at < sent_at);
            other == key || is_before || !sent.on_busy.contains("interrupt")
        })
    }

    /// Notes that a turn has taken a message, perhaps only to end as cancelled.
    pub fn begins(&mut self, message_id: &str, is_cancelled: bool) {
        if self.begun.insert(message_id.to_owned()) && is_cancelled {
            self.withdrawn.insert(message_id.to_owned());
        }
        self.interrupts.remove(message_id);
        self.lost_signals.remove(message_id);
    }

    /// Notes that a client asks for a cancel.
    pub fn cancel_is_asked(&mut self, message_id: &str) {
        *self.cancels.entry(message_id.to_owned()).or_default() += 1;
        self.interrupts.remove(message_id);
        self.lost_signals.remove(message_id);
    }

    /// Notes the answer to a cancel: the turn of the message will end.
    pub fn cancel_is_accepted(&mut self, message_id: &str) {
        if !self.begun.contains(message_id) {
            self.withdrawn.insert(message_id.to_owned());
        }
    }

    /// Notes the answer to a cancel: the message has no unfinished turn.
    pub fn cancel_is_needless(&mut self, message_id: &str) {
        if let Some(cancels) = self.cancels.get_mut(message_id) {
            *cancels = cancels.saturating_sub(1);
        }
    }

    /// Notes that an operator has asked a workflow to end.
    pub fn is_disturbed(&mut self) {
        self.is_disturbed = true;
    }

    /// Notes that an operator has terminated a workflow. The signals of the workflow are lost.
    pub fn is_terminated(&mut self) {
        self.is_disturbed();
        self.clock += 1;
        self.terminated_at = self.clock;
        let lost = std::mem::take(&mut self.interrupts);
        self.lost_signals.extend(lost.into_keys());
    }

    /// Notes that the conversation was removed, with the promises about its messages.
    pub fn conversation_is_removed(&mut self) {
        self.sent.clear();
        self.interrupts.clear();
        self.lost_signals.clear();
    }

    /// Notes a new workflow that looks for waiting messages at its start.
    pub fn is_resumed(&mut self) {
        for message_id in std::mem::take(&mut self.lost_signals) {
            self.interrupts.insert(message_id, BTreeSet::new());
        }
    }

    /// Notes the begin of a sub-agent.
    pub fn delegates(&mut self, parent: &str, sub_agent: String) {
        self.parents.insert(sub_agent, parent.to_owned());
    }

    /// Notes the claim of a model call. After the answer to a message that interrupts, the other turn may claim one more
    /// step: the engine may have asked for the call before the signal. A sub-agent hears of the interrupt from its parent,
    /// and may go on until then.
    pub fn is_claimed(&mut self, step: &StepOf, generation: u32) {
        self.generations.insert(step.clone(), generation);
        *self.open_claims.entry(step.0.clone()).or_default() += 1;
        if self.parents.contains_key(&step.0) {
            return;
        }
        let mut late = Vec::new();
        for (message_id, steps) in &mut self.interrupts {
            steps.insert(step.clone());
            if steps.len() > 1 {
                late.push(format!(
                    "another turn goes on to {step:?} after the interrupt {message_id} was accepted"
                ));
            }
        }
        for text in late {
            self.violation(text);
        }
    }

    /// Notes that a claim was given back, because no call was made. A claim behind a newer claim counts as a call.
    pub fn is_given_back(&mut self, step: &StepOf, generation: u32) {
        if self.generations.get(step) == Some(&generation)
            && let Some(open) = self.open_claims.get_mut(&step.0)
        {
            *open = open.saturating_sub(1);
            *self.given_back.entry(step.0.clone()).or_default() += 1;
        }
    }

    /// Notes that the reply of a call is stored.
    pub fn is_replied(&mut self, step: &StepOf, generation: u32) {
        let newest = self.generations.get(step).copied().unwrap_or(0);
        if generation < newest {
            let text = format!(
                "the reply of call {generation} of {step:?} is stored after the claim of call {newest}"
            );
            self.violation(text);
        }
        if let Some(open) = self.open_claims.get_mut(&step.0) {
            *open = open.saturating_sub(1);
        }
    }

    /// Notes a message that a model gets.
    pub fn model_reads(&mut self, message_id: &str) {
        if self.withdrawn.contains(message_id) {
            self.violation(format!("a model reads the withdrawn {message_id}"));
        }
    }

    /// Notes the end of a tool execution, as the store has answered.
    pub fn tool_ends(&mut self, execution_id: &str, end: &str) {
        let first = self.tool_ends.entry(execution_id.to_owned());
        let first = first.or_insert_with(|| end.to_owned()).clone();
        if first != end {
            let text = format!("the tool execution {execution_id} ends as {first}, then as {end}");
            self.violation(text);
        }
    }

    /// Returns whether a turn has hooks, as the first caller has said. Each run of a turn has the same agent.
    pub fn has_hooks(&mut self, agent_execution_id: &str, chosen: bool) -> bool {
        let known = self.hooks.entry(agent_execution_id.to_owned());
        *known.or_insert(chosen)
    }

    /// Notes that the hooks after a turn have begun, or are left out.
    pub fn hooks_begin(&mut self, agent_execution_id: &str) {
        self.begun_hooks.insert(agent_execution_id.to_owned());
    }

    /// Notes a run that waits for a timer although every message has ended. After a reset, a sub-agent of the run before may
    /// wait for a person until the end of its time.
    pub fn stays_open(&mut self, run: usize) {
        if !self.is_disturbed {
            self.violation(format!("run {run} stays open after its last turn"));
        }
    }

    /// Checks a moment without any event to come: the accepted messages have ended, unless an operator has ended a
    /// workflow.
    pub fn is_quiet<'a>(&mut self, unfinished: impl Iterator<Item = &'a str>) {
        if self.is_disturbed {
            return;
        }
        for message_id in unfinished {
            let mut accepted = self.sent.values().filter_map(|it| it.accepted.as_ref());
            if accepted.any(|(id, _)| id == message_id) {
                self.violation(format!(
                    "no workflow runs the accepted message {message_id}"
                ));
            }
        }
    }
}
