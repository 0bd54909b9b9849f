//! How a gateway looks for stalled turns.

use std::{num::NonZeroU32, time::Duration};

/// The most calls to the engine per conversation with a look of its own, without signals: a query for the workflow, and a
/// start.
const CALLS_A_CHECK: u32 = 2;

/// The settings of the search for stalled turns. The reconciler finds a turn without a workflow within the longer of
/// `grace` and `again`, plus `every`: 25 s by default. Quiet turns with a workflow cost a share of a list. With more turns
/// without a workflow than `calls_per_second` allows to check, or with more quiet turns than the lists have room for, the
/// search takes longer.
#[derive(Debug, Clone)]
pub struct ReconcilerConfig {
    /// The interval between two looks; only one gateway looks at a time. Default 5 s.
    pub every: Duration,
    /// How long a conversation must be silent before the reconciler checks it. Default 15 s: another worker replaces a
    /// dead worker within 10 s, and the turn then needs no help.
    pub grace: Duration,
    /// How long the reconciler leaves a conversation alone after a check, and hooks after a start. Default 20 s.
    pub again: Duration,
    /// The most calls to the engine per second, by every gateway together. Default 50: some percent of a small engine's
    /// capacity.
    pub calls_per_second: NonZeroU32,
    /// The most conversations in one list of the engine's running workflows, and the most turns with waiting hooks in one
    /// look. Default 1,000: the engine's longest page.
    pub list_size: NonZeroU32,
    /// The most lists per second, by every gateway together. Default 10: the engine's own limit for a namespace
    /// (docs/engine.md, the list of workflows). Looks last for half of the time, so the lists answer for 100,000 quiet turns
    /// within `again`.
    pub lists_per_second: NonZeroU32,
    /// The attempt of a workflow task from which the workflow counts as stuck. Default 5: a deployment, or a worker that
    /// dies, costs a task one or two attempts.
    pub stuck_attempts: NonZeroU32,
    /// How long a conversation must be silent before its workflow can count as stuck. Default 60 s: a rollout of workers
    /// fails workflow tasks for seconds.
    pub stuck_after: Duration,
    /// The treatment of a turn without a workflow. Default: the gateway resumes the turn.
    pub lost_turns: LostTurns,
}

/// The treatment of a turn without a workflow: the workflow was terminated, timed out, or was lost by the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostTurns {
    /// The turn goes on from its last checkpoint, in a new workflow.
    Resume,
    /// The turn ends with the error `turn_lost`.
    End,
}

impl Default for ReconcilerConfig {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(5),
            grace: Duration::from_secs(15),
            again: Duration::from_secs(20),
            calls_per_second: NonZeroU32::new(50).unwrap_or(NonZeroU32::MIN),
            list_size: NonZeroU32::new(1000).unwrap_or(NonZeroU32::MIN),
            lists_per_second: NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN),
            stuck_attempts: NonZeroU32::new(5).unwrap_or(NonZeroU32::MIN),
            stuck_after: Duration::from_mins(1),
            lost_turns: LostTurns::Resume,
        }
    }
}

impl ReconcilerConfig {
    /// Returns the time limit of one look. The look must end before the next gateway's look may begin, because
    /// otherwise both gateways would call the engine.
    pub(crate) fn look_time(&self) -> Duration {
        self.every / 2
    }

    /// Returns the number of conversations with a look of their own in one look: as many as the calls of the time limit
    /// allow.
    pub(crate) fn checks_a_look(&self) -> u32 {
        let calls = self.look_time().as_secs_f64() * f64::from(self.calls_per_second.get());
        // A cast of a float stays within the bounds of the number.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let calls = calls as u32;
        (calls / CALLS_A_CHECK).max(1)
    }

    /// Returns the time between two calls to the engine.
    pub(crate) fn between_calls(&self) -> Duration {
        Duration::from_secs(1) / self.calls_per_second.get()
    }

    /// Returns the time between two lists of the engine's running workflows.
    pub(crate) fn between_lists(&self) -> Duration {
        Duration::from_secs(1) / self.lists_per_second.get()
    }
}
