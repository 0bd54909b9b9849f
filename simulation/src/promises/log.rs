//! Compares the log of events with the facts.

use std::collections::BTreeMap;

use everturn_proto::{Json, event::Event};
use serde_json::Value;

use super::Promises;

/// An event with readable data.
struct Read<'a> {
    event: &'a Event,
    data: Value,
}

impl Read<'_> {
    fn is(&self, event_type: &str) -> bool {
        self.event.event_type == event_type
    }

    fn text(&self, key: &str) -> &str {
        self.data[key].as_str().unwrap_or_default()
    }
}

impl Promises {
    /// Checks the events of the conversation.
    pub fn check_log(&mut self, events: &[Event]) {
        let read = |event| Read {
            event,
            data: event
                .event_data
                .as_ref()
                .map(Json::to_value)
                .unwrap_or_default(),
        };
        let events: Vec<_> = events.iter().map(read).collect();
        self.check_numbers(&events);
        self.check_repetitions(&events);
        self.check_order(&events);
        self.check_cut_calls(&events);
        self.check_errors(&events);
        self.check_hooks(&events);
    }

    /// The hooks after a completed turn begin, also when the workflow of the conversation was lost before their start.
    fn check_hooks(&mut self, events: &[Read]) {
        for read in events.iter().filter(|read| read.is("complete")) {
            let id = read.text("agent_execution_id");
            if self.hooks.get(id) == Some(&true) && !self.begun_hooks.contains(id) {
                self.violation(format!("the hooks after {id} do not begin"));
            }
        }
    }

    /// No turn fails because of Everturn itself.
    fn check_errors(&mut self, events: &[Read]) {
        for read in events.iter().filter(|read| read.is("error")) {
            if read.text("code") == "internal" {
                self.violation(format!("a turn fails: {}", read.text("message")));
            }
        }
    }

    /// Invariant 2, one order: the numbers begin with 1 and have no gap.
    fn check_numbers(&mut self, events: &[Read]) {
        for (expected, read) in (1..).zip(events) {
            let number = read.event.sequence_number;
            if number != expected {
                self.violation(format!(
                    "event {expected} of the log has the number {number}"
                ));
                return;
            }
        }
    }

    /// Invariants 3, idempotent saves, and 6, done once: the log has each fact once, and an observe for each act.
    fn check_repetitions(&mut self, events: &[Read]) {
        let mut times = BTreeMap::<String, u32>::new();
        for read in events {
            let what = match read.event.event_type.as_str() {
                "user_message" => format!("user_message {}", read.text("message_id")),
                "thought" => {
                    let of = read.text("agent_execution_id");
                    format!("thought {of} {}", read.data["step"])
                }
                word @ ("act" | "observe") => format!("{word} {}", read.text("execution_id")),
                _ => continue,
            };
            *times.entry(what).or_default() += 1;
        }
        for (what, times) in &times {
            if *times > 1 {
                self.violation(format!("the log has {what} {times} times"));
            }
        }
        for act in events.iter().filter(|read| read.is("act")) {
            let id = act.text("execution_id");
            if !times.contains_key(&format!("observe {id}")) {
                self.violation(format!("act {id} has no observe"));
            }
        }
    }

    /// Of two messages with one behaviour, the message that was accepted before the other message was sent comes first, also
    /// after an operator has terminated the workflow with the signals. A message with `reject` is not among the waiting
    /// messages, so other messages overtake the message when its workflow was terminated before its turn. `oracles` checks
    /// the order of messages that interrupt.
    fn check_order(&mut self, events: &[Read]) {
        let taken = events.iter().filter(|read| read.is("user_message"));
        let positions: BTreeMap<_, _> = taken
            .enumerate()
            .map(|(position, read)| (read.text("message_id"), position))
            .collect();
        let mut wrong = Vec::new();
        for first in self.sent.values() {
            let Some((first_id, accepted_at)) = &first.accepted else {
                continue;
            };
            for second in self.sent.values() {
                let Some((second_id, _)) = &second.accepted else {
                    continue;
                };
                let is_like = first.only_on_busy().is_some_and(|it| it != "interrupt")
                    && first.only_on_busy() == second.only_on_busy()
                    && !self.cancels.contains_key(first_id)
                    && !self.cancels.contains_key(second_id);
                let position = |id: &String| positions.get(id.as_str());
                let is_swapped = position(first_id)
                    .zip(position(second_id))
                    .is_some_and(|(first, second)| first > second);
                let waits = first.only_on_busy() != Some("reject");
                let is_ordered = waits || self.terminated_at < first.first_at;
                if is_like && is_ordered && is_swapped && *accepted_at < second.first_at {
                    wrong.push(format!("{second_id} comes before the older {first_id}"));
                }
            }
        }
        for text in wrong {
            self.violation(text);
        }
    }

    /// Returns the calls of an agent execution and its sub-agents.
    fn with_sub_agents(&self, calls: &BTreeMap<String, u32>, agent_execution_id: &str) -> u32 {
        let own = calls.get(agent_execution_id);
        let sub_agents = self.parents.iter();
        let sub_agents = sub_agents.filter(|(_, parent)| *parent == agent_execution_id);
        let below = sub_agents.map(|(sub_agent, _)| self.with_sub_agents(calls, sub_agent));
        own.copied().unwrap_or(0) + below.sum::<u32>()
    }

    /// Invariant 5, paid once: the end of a turn counts every claimed call without a stored reply. The end may also count a
    /// call that is given back after the end.
    fn check_cut_calls(&mut self, events: &[Read]) {
        for read in events {
            if !(read.is("complete") || read.is("cancelled") || read.is("error")) {
                continue;
            }
            let id = read.text("agent_execution_id");
            let counted = read.data["cut_calls"].as_u64().unwrap_or(0);
            let cut = self.with_sub_agents(&self.open_claims, id);
            let most = cut + self.with_sub_agents(&self.given_back, id);
            if counted < u64::from(cut) || counted > u64::from(most) {
                self.violation(format!(
                    "the end of {id} counts {counted} calls without a reply, and {cut} were claimed"
                ));
            }
        }
    }
}
