//! The wait for the limits of a provider before a call.

use std::time::{Duration, Instant};

use everturn_proto::turn::AgentDefinition;
use everturn_tools::Progress;
use temporalio_common::ActivityError;

use super::{background::Listener, claimed::Claimed, queue::Queue, stops::StoppedCall};
use crate::{attempt::Ended, failure as fail, store_call::counted};

/// The longest wait for a provider's limits before a call without a second look at the claim. After a longer wait the
/// claim is checked again, because the engine may have counted the attempt as dead.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// The wait for the limits of a provider.
pub(super) struct ProviderLimits<'a> {
    pub(super) queue: Queue<'a>,
    pub(super) stopped: StoppedCall<'a>,
    /// The time limit of the call.
    pub(super) limit: Duration,
}

impl ProviderLimits<'_> {
    /// Waits for the limits of the provider. The wait does not count as time of the call. After the longest wait of the
    /// worker, or when the rest of the attempt is too short for the call's time limit, the call goes back to the queue. A
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
        let (queue, provider, begun) = (&self.queue, &agent.provider, Instant::now());
        let Claimed {
            attempt,
            step,
            generation,
            ..
        } = *queue.claimed;
        let may_wait = attempt.time_left().saturating_sub(self.limit);
        let admitted = queue.admit(provider, listener.tokens);
        let nothing = Progress::default();
        match attempt.run(&nothing, may_wait, admitted).await {
            Ended::Done(Err(later)) => Err(queue.leave(provider, later).await),
            // Another attempt may have begun during the wait. The provider would bill two attempts.
            Ended::Done(Ok(_))
                if begun.elapsed() > LONG_WAIT
                    && matches!(
                        counted(queue.steps.holds_claim(step, generation)).await,
                        Ok(false)
                    ) =>
            {
                Err(fail::superseded())
            }
            Ended::Done(Ok(admission)) => {
                listener.admission = admission;
                Ok(())
            }
            Ended::Stopped => Err(self.stopped.end(listener).await),
            Ended::OutOfTime => Err(queue.leave(provider, queue.pause()).await),
        }
    }
}
