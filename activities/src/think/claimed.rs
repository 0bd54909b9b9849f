//! A claimed step: the inputs that most stages share. Plain data, beside the call that may be billed.
//!
//! Must not be here: the dependencies of the stages (`thinker`), and inputs that a single stage needs.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use everturn_proto::{LogId, Thread};
use everturn_store::{CutCall, StepKey};

use crate::attempt::Attempt;

/// A claimed step.
pub(super) struct Claimed<'a> {
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) step: &'a StepKey,
    /// The thread whose messages are the context.
    pub(super) thread: Thread,
    /// The hash of the turn's pinned agent.
    pub(super) agent_hash: &'a str,
    /// The log of the conversation.
    pub(super) log_id: &'a LogId,
    /// The generation that the claim gave. The store and the stream refuse older generations.
    pub(super) generation: u32,
    /// The time of the claim, by the worker's clock.
    pub(super) started_at: SystemTime,
    /// The call of the model that the provider may bill. `None` before the call, and after a refusal.
    pub(super) open_call: OpenCall,
    /// Set when the attempt ends without a call, because the call goes back to the queue of its provider.
    pub(super) went_back: WentBack,
}

/// The return of a call to the queue of its provider. The claim is given back, and the store needs no note of a try.
#[derive(Debug, Default)]
pub(super) struct WentBack(AtomicBool);

impl WentBack {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The call that may be billed, in a turn without a budget.
#[derive(Debug, Default)]
pub(super) struct OpenCall(Mutex<Option<CutCall>>);

impl OpenCall {
    pub(super) fn set(&self, call: Option<CutCall>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = call;
    }

    pub(super) fn take(&self) -> Option<CutCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
