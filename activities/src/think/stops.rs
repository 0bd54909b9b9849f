//! The end of a call before its reply: the call became useless, or was stopped from outside.

use everturn_models::ModelClient;
use everturn_proto::{
    turn::LlmCompleteState,
    words::{FailureCode, FinishReason},
};
use everturn_store::{ModelCalls, StepClaims};
use everturn_stream::{Part, TextWriter};
use temporalio_common::ActivityError;

use super::{
    background::{Listener, cancel_if_cancelled},
    claimed::Claimed,
};
use crate::{failure as fail, storable::without_nul, store_call::counted};

/// Waits until this call is useless, because another call of the step has begun or the turn has ended. The stream
/// refuses the next piece. The stream may know less than the store, so the store decides.
pub(super) async fn superseded(claimed: &Claimed<'_>, steps: &dyn StepClaims, text: &TextWriter) {
    text.superseded().await;
    let holds_claim = counted(steps.holds_claim(claimed.step, claimed.generation)).await;
    if !matches!(holds_claim, Ok(false)) {
        // The store does not confirm that the call is useless, so the call goes on, although its text is no longer
        // shown live.
        std::future::pending::<()>().await;
    }
}

/// Ends a call that was stopped from outside.
pub(super) struct StoppedCall<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) model_calls: &'a dyn ModelCalls,
    pub(super) model: &'a dyn ModelClient,
}

impl StoppedCall<'_> {
    /// Stores the text so far. The engine does not tell the cause of the stop: a cancelled turn, a reset run, a shutdown
    /// of the worker, or several at once. Therefore the text is stored where only the end of a turn without an answer
    /// reads it. A response in the background is cancelled if the turn was cancelled.
    pub(super) async fn end(&self, listener: &Listener<'_>) -> ActivityError {
        let claimed = self.claimed;
        let saved = self.save(listener.text);
        let cancelled = cancel_if_cancelled(listener.response(), claimed.attempt.ctx, self.model);
        tokio::join!(saved, cancelled);
        if claimed.attempt.is_worker_stopping() {
            // After a cancel of the turn, the engine does not try again.
            return fail::transient(
                FailureCode::LlmUnavailable,
                "The worker shut down; the call is made again.",
            );
        }
        ActivityError::cancelled()
    }

    /// Stores the text of a call that has timed out. Only the workflow knows whether another call follows; the end of a
    /// turn that has timed out reads the newest text. A call without a text leaves the text of an earlier call.
    pub(super) async fn keep_text(&self, text: &TextWriter) {
        if !text.text_so_far(Part::Text).is_empty() {
            self.save(text).await;
        }
    }

    async fn save(&self, text: &TextWriter) {
        let claimed = self.claimed;
        let partial = LlmCompleteState {
            agent_hash: claimed.agent_hash.to_owned(),
            text: without_nul(text.text_so_far(Part::Text)),
            reasoning: without_nul(text.text_so_far(Part::Reasoning)),
            finish: FinishReason::Cancelled.into(),
            generation: claimed.generation,
            ..LlmCompleteState::default()
        };
        let saved = counted(self.model_calls.save_partial(claimed.step, partial)).await;
        if let Err(error) = saved {
            tracing::warn!(%error, "the partial text of a stopped call could not be stored");
        }
    }
}
