//! How a gateway looks for stalled turns.

use std::{num::NonZeroU32, time::Duration};

/// The most calls to the engine per checked conversation, without signals: a query for the workflow, and a start.
const CALLS_A_CHECK: u32 = 2;

/// The settings of the search for stalled turns. The reconciler finds a stalled turn within the longer of `grace` and
/// `again`, plus `every`: 25 s by default. With more stalled turns than `calls_per_second` allows to check, the search
/// takes longer.
#[derive(Debug, Clone)]
pub struct ReconcilerConfig {
    /// The interval between two looks; only one gateway looks at a time. Default 5 s.
    pub every: Duration,
    /// How long a conversation must be silent before the reconciler checks it. Default 15 s: another worker replaces a
    /// dead worker within 10 s, and the turn then needs no help.
    pub grace: Duration,
    /// How long the reconciler leaves a conversation alone after a check. Default 20 s.
    pub again: Duration,
    /// The most calls to the engine per second, by every gateway together. Default 50: some percent of a small engine's
    /// capacity.
    pub calls_per_second: NonZeroU32,
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

    /// Returns the number of conversations in one look: as many as the calls of the time limit allow.
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
}
