//! The queue of a provider whose configured limits let no call begin. A call that waits for too long gives its slot of the
//! worker and its claim back. The engine makes the next attempt, which goes on waiting at the call's old position.
//!
//! Must not be here: the order of the waiting calls (`everturn-models`).

use std::time::{Duration, SystemTime};

use everturn_models::{Admission, Arrival, Later, ModelClient, WaitLimits};
use everturn_proto::limits::PROVIDER_QUEUE_LIMIT_S;
use everturn_store::StepClaims;
use temporalio_common::ActivityError;

use super::claimed::Claimed;
use crate::{elsewhere::waited, failure as fail};

/// The longest wait of a call, over all attempts.
const LIMIT: Duration = Duration::from_secs(PROVIDER_QUEUE_LIMIT_S as u64);

/// The queue of a claimed call.
#[derive(Clone, Copy)]
pub(super) struct Queue<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) steps: &'a dyn StepClaims,
    pub(super) model: &'a dyn ModelClient,
    pub(super) limits: WaitLimits,
}

impl Queue<'_> {
    /// Waits until the provider's limits let a call with about `tokens` tokens begin. The position of the call is the
    /// time at which the run asked for the step, by the engine's clock. All attempts have the same time, on every worker.
    ///
    /// # Errors
    ///
    /// [`Later`] when the call must give its slot back.
    pub(super) async fn admit(&self, provider: &str, tokens: u64) -> Result<Admission, Later> {
        let asked_at = self.claimed.attempt.ctx.info().scheduled_time;
        let arrival = Arrival {
            tokens,
            asked_at: asked_at.unwrap_or_else(SystemTime::now),
            limits: self.limits,
        };
        self.model.admit(provider, &arrival).await
    }

    /// Gives the claim back, and makes the failure that ends the attempt. The next attempt comes at the time that `later`
    /// says; no attempt comes after the longest wait.
    pub(super) async fn leave(&self, provider: &str, later: Later) -> ActivityError {
        let Claimed {
            attempt,
            step,
            generation,
            ..
        } = *self.claimed;
        let released = attempt.insist(|| self.steps.release_step(step, generation));
        if let Err(error) = released.await {
            return error;
        }
        if waited(attempt.ctx) >= LIMIT {
            return fail::waited_in_vain(provider, LIMIT);
        }
        self.claimed.went_back.set();
        fail::waits_for_provider(provider, later.after)
    }

    /// Returns the pause of a call whose attempt ends before the wait.
    pub(super) fn pause(&self) -> Later {
        Later {
            after: self.limits.longest,
        }
    }
}
