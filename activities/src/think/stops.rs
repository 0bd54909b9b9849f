//! The end of a call before its reply: the call became useless, or was stopped from outside.

use everturn_proto::{
    turn::LlmCompleteState,
    words::{FailureCode, FinishReason},
};
use everturn_stream::{Part, TextWriter};
use temporalio_common::ActivityError;

use super::{background::Listener, call::ModelCall};
use crate::{failure as fail, storable::without_nul};

impl ModelCall<'_> {
    /// Waits until this call is useless, because another call of the step has begun or the turn has ended. The stream
    /// refuses the next piece. The stream may know less than the store, so the store decides.
    pub(super) async fn superseded(&self, text: &TextWriter) {
        text.superseded().await;
        let (turns, step) = (&self.thinker.turns, self.claimed.step);
        if !matches!(
            turns.holds_claim(step, self.claimed.generation).await,
            Ok(false)
        ) {
            // The store does not confirm that the call is useless, so the call goes on, although its text is no longer
            // shown live.
            std::future::pending::<()>().await;
        }
    }

    /// Stores the text so far of a call that was stopped from outside. The engine does not tell the cause: a cancelled
    /// turn, a reset run, a shutdown of the worker, or several at once. Therefore the text is stored where only the end
    /// of a cancelled turn reads it. A response in the background is cancelled if the turn was cancelled.
    pub(super) async fn stopped(&self, listener: &Listener<'_>) -> ActivityError {
        let text = listener.text;
        let partial = LlmCompleteState {
            agent_hash: self.claimed.agent_hash.to_owned(),
            text: without_nul(text.text_so_far(Part::Text)),
            reasoning: without_nul(text.text_so_far(Part::Reasoning)),
            finish: FinishReason::Cancelled.into(),
            generation: self.claimed.generation,
            ..LlmCompleteState::default()
        };
        let saved = self.thinker.turns.save_partial(self.claimed.step, partial);
        let (saved, ()) = tokio::join!(saved, self.cancel_if_cancelled(listener.response()));
        if let Err(error) = saved {
            tracing::warn!(%error, "the partial text of a stopped call could not be stored");
        }
        if self.claimed.attempt.is_worker_stopping() {
            // After a cancel of the turn, the engine does not try again.
            return fail::transient(
                FailureCode::LlmUnavailable,
                "The worker shut down; the call is made again.",
            );
        }
        ActivityError::cancelled()
    }
}
