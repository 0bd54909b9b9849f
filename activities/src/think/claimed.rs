//! A claimed step: the inputs that most stages share. Plain data.
//!
//! Must not be here: the dependencies of the stages (`thinker`), and inputs that a single stage needs.

use everturn_proto::{LogId, Thread};
use everturn_store::StepKey;

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
}
