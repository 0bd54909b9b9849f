//! The wait for the limits of a provider before a call.

use std::time::{Duration, Instant};

use everturn_models::ModelClient;
use everturn_proto::turn::AgentDefinition;
use everturn_store::StepClaims;
use everturn_tools::Progress;
use temporalio_common::ActivityError;

use super::{background::Listener, claimed::Claimed, stops::StoppedCall};
use crate::{attempt::Ended, failure as fail, store_call::counted};

/// The longest wait for a provider's limits before a call without a second look at the claim. After a longer wait the
/// claim is checked again, because the engine may have counted the attempt as dead.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// The wait for the limits of a provider.
pub(super) struct ProviderLimits<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) steps: &'a dyn StepClaims,
    pub(super) model: &'a dyn ModelClient,
    pub(super) stopped: StoppedCall<'a>,
    /// The time limit of the call.
    pub(super) limit: Duration,
}

impl ProviderLimits<'_> {
    /// Waits for the limits of the provider. The wait does not count as time of the call. When the rest of the attempt
    /// is too short for the call's time limit, the claim is given back, and the next attempt goes on waiting. A
    /// response in the background is read at once: it has passed the limits before, and the provider keeps it only for
    /// a short time. If the response gives no reply, the listener waits for the limits.
    pub(super) async fn wait(
        &self,
        agent: &AgentDefinition,
        listener: &mut Listener<'_>,
    ) -> Result<(), ActivityError> {
        if listener.response_id().is_some() {
            return Ok(());
        }
        let (steps, begun) = (self.steps, Instant::now());
        let Claimed {
            attempt,
            step,
            generation,
            ..
        } = *self.claimed;
        let may_wait = attempt.time_left().saturating_sub(self.limit);
        let admission = self.model.admit(&agent.provider, listener.tokens);
        let nothing = Progress::default();
        match attempt.run(&nothing, may_wait, admission).await {
            // Another attempt may have begun during the wait. The provider would bill two attempts.
            Ended::Done(_)
                if begun.elapsed() > LONG_WAIT
                    && matches!(
                        counted(steps.holds_claim(step, generation)).await,
                        Ok(false)
                    ) =>
            {
                Err(fail::superseded())
            }
            Ended::Done(admission) => {
                listener.admission = admission;
                Ok(())
            }
            Ended::Stopped => Err(self.stopped.end(listener).await),
            Ended::OutOfTime => {
                attempt
                    .insist(|| steps.release_step(step, generation))
                    .await?;
                Err(fail::waited_for_provider(&agent.provider))
            }
        }
    }
}
