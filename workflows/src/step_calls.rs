//! The calls of the running step: how many more may begin, and which calls only wait. Pure data.
//!
//! Must not be here: the answers for which a call waits (`outside.rs`), when the turn goes on in a new run
//! (`tools.rs`).

use std::collections::BTreeMap;

use everturn_proto::{
    limits::{REMOTE_RECORDS_AT_ONCE, REMOTE_RESULT_BYTES, REMOTE_SLOTS},
    turn::PlannedCall,
};

/// The reason why a call waits while no part of it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// A person's approval.
    Approval,
    /// The client's result.
    ClientResult,
    /// A free slot among the calls of the step.
    Slot,
}

impl Rest {
    /// Returns the name of the wait's timer in the Temporal UI.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::ClientResult => "result",
            Self::Slot => "slot",
        }
    }
}

/// The calls of the running step.
#[derive(Debug, Default)]
pub(crate) struct StepCalls {
    /// Number of calls without an end.
    open: usize,
    /// The waiting calls, by tool execution.
    at_rest: BTreeMap<String, Rest>,
    /// Number of further tools that may begin, by the agent's `max_parallel_tools`; `None`: any number.
    free: Option<u32>,
    /// Taken slots of remote tools.
    remote: u32,
    /// Results of remote tools that are being recorded.
    records: u32,
}

impl StepCalls {
    /// Begins a step with `open` calls.
    pub(crate) fn begin(open: usize, max_parallel: Option<u32>) -> Self {
        Self {
            open,
            free: max_parallel,
            ..Self::default()
        }
    }

    /// Notes the end of a call.
    pub(crate) fn end_one(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Marks a call as waiting.
    pub(crate) fn rest(&mut self, execution_id: &str, what: Rest) {
        self.at_rest.insert(execution_id.to_owned(), what);
    }

    /// Marks a call as no longer waiting.
    pub(crate) fn wake(&mut self, execution_id: &str) {
        self.at_rest.remove(execution_id);
    }

    /// Returns the waiting calls when every open call waits; `None` when a call runs, or when no call is open.
    pub(crate) fn all_at_rest(&self) -> Option<impl Iterator<Item = (&str, Rest)>> {
        let is_all = self.open > 0 && self.at_rest.len() == self.open;
        let calls = self.at_rest.iter();
        is_all.then(|| calls.map(|(id, what)| (id.as_str(), *what)))
    }

    /// True while the agent's limit lets one more tool begin.
    pub(crate) fn has_slot(&self) -> bool {
        self.free != Some(0)
    }

    /// True while a tool with this number of remote slots may begin.
    pub(crate) fn has_remote_slots(&self, slots: u32) -> bool {
        self.remote + slots <= REMOTE_SLOTS
    }

    /// Takes a slot, and the tool's remote slots.
    pub(crate) fn take_slot(&mut self, remote_slots: u32) {
        self.free = self.free.map(|free| free.saturating_sub(1));
        self.remote += remote_slots;
    }

    /// Gives the slots back.
    pub(crate) fn return_slot(&mut self, remote_slots: u32) {
        self.free = self.free.map(|free| free + 1);
        self.remote = self.remote.saturating_sub(remote_slots);
    }

    /// True while one more result may be recorded.
    pub(crate) fn may_record(&self) -> bool {
        self.records < REMOTE_RECORDS_AT_ONCE
    }

    /// Notes the start of a result's record.
    pub(crate) fn begin_record(&mut self) {
        self.records += 1;
    }

    /// Notes the end of a result's record.
    pub(crate) fn end_record(&mut self) {
        self.records = self.records.saturating_sub(1);
    }
}

/// Returns the number of remote slots that a call takes: 0 unless its tool is remote.
pub(crate) fn remote_slots(call: &PlannedCall) -> u32 {
    let Some(remote) = &call.remote else {
        return 0;
    };
    let of_input = if call.has_large_input { 2 } else { 1 };
    let result = remote.max_result_bytes.unwrap_or(REMOTE_RESULT_BYTES);
    let of_result = result.div_ceil(REMOTE_RESULT_BYTES);
    of_result.clamp(of_input, REMOTE_SLOTS)
}

#[cfg(test)]
mod tests {
    use everturn_proto::turn::RemoteTool;

    use super::*;

    #[test]
    fn a_step_rests_when_each_open_call_only_waits() {
        let mut calls = StepCalls::begin(3, None);
        calls.rest("a", Rest::Approval);
        calls.rest("b", Rest::Slot);
        assert!(calls.all_at_rest().is_none(), "one runs");
        calls.end_one();
        let resting: Vec<_> = calls.all_at_rest().unwrap().collect();
        assert_eq!(resting, [("a", Rest::Approval), ("b", Rest::Slot)]);
        calls.wake("b");
        assert!(calls.all_at_rest().is_none(), "it runs again");
        calls.end_one();
        calls.wake("a");
        calls.end_one();
        assert!(calls.all_at_rest().is_none(), "the step has ended");
    }

    #[test]
    fn slots_are_taken_and_returned() {
        let mut calls = StepCalls::begin(3, Some(1));
        calls.take_slot(REMOTE_SLOTS - 1);
        assert!(!calls.has_slot());
        assert!(calls.has_remote_slots(1) && !calls.has_remote_slots(2));
        calls.return_slot(REMOTE_SLOTS - 1);
        assert!(calls.has_slot() && calls.has_remote_slots(REMOTE_SLOTS));
    }

    #[test]
    fn large_inputs_and_results_take_more_slots() {
        let slots = |max_result_bytes, has_large_input| {
            let remote = RemoteTool {
                max_result_bytes,
                ..RemoteTool::default()
            };
            remote_slots(&PlannedCall {
                remote: Some(remote),
                has_large_input,
                ..PlannedCall::default()
            })
        };
        assert_eq!(remote_slots(&PlannedCall::default()), 0);
        assert_eq!((slots(None, false), slots(None, true)), (1, 2));
        assert_eq!(slots(Some(REMOTE_RESULT_BYTES), false), 1);
        assert_eq!(slots(Some(1024 * 1024), true), 8);
        assert_eq!(slots(Some(u32::MAX), false), REMOTE_SLOTS);
    }
}
