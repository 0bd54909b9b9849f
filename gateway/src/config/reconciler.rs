//! How a gateway looks for turns that have stalled.

use std::{num::NonZeroU32, time::Duration};

/// The calls that one look at a conversation makes at the most, but for signals: is there a workflow, and a start.
const CALLS_A_CHECK: u32 = 2;

/// How a gateway looks for turns that have stalled. What has stalled is found within the longer of `grace` and `again`,
/// and `every`: 25 s by default, unless more has stalled than `calls_per_second` lets it look at.
#[derive(Debug, Clone)]
pub struct ReconcilerConfig {
    /// How often one of the gateways looks. Default 5 s.
    pub every: Duration,
    /// How long nothing has happened in a conversation before it is looked at. Default 15 s: a worker that died is
    /// replaced by another one within 10 s, and that needs no help.
    pub grace: Duration,
    /// How long a conversation that was looked at is left alone. Default 20 s.
    pub again: Duration,
    /// Calls to the engine in a second at the most, by all gateways together. Default 50: some percent of what a small
    /// engine can do.
    pub calls_per_second: NonZeroU32,
    /// What becomes of a turn whose workflow is gone. Default: it is resumed.
    pub lost_turns: LostTurns,
}

/// What becomes of a turn whose workflow is gone: it was terminated, it timed out, or the engine lost it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostTurns {
    /// It goes on from its last checkpoint, in a new workflow.
    Resume,
    /// It ends with the error `turn_lost`.
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
    /// How long one look may take. Then another gateway may have the turn to look, so this one is over by then: else both
    /// would call the engine.
    pub(crate) fn look_time(&self) -> Duration {
        self.every / 2
    }

    /// The conversations of one look: as many as the calls of its time allow.
    pub(crate) fn checks_a_look(&self) -> u32 {
        let calls = self.look_time().as_secs_f64() * f64::from(self.calls_per_second.get());
        // A cast of a float stays within the bounds of the number.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let calls = calls as u32;
        (calls / CALLS_A_CHECK).max(1)
    }

    /// The time between two calls to the engine.
    pub(crate) fn between_calls(&self) -> Duration {
        Duration::from_secs(1) / self.calls_per_second.get()
    }
}
