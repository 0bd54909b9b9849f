//! A response that the provider makes in the background: its id is stored before any piece of the reply is read, and
//! the response is cancelled with its turn.

use std::time::Duration;

use async_trait::async_trait;
use everturn_models::{Admission, ModelClient, ModelError, ReplyListener};
use everturn_proto::{turn::AgentDefinition, words::FailureCode};
use everturn_store::{BackgroundResponse, ModelCalls};
use everturn_stream::{Part, TextWriter};
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;
use tokio::time::timeout;

use super::{claimed::Claimed, queue::Queue, reply::Failed};
use crate::{cancels, failure as fail};

/// The time limit for the engine and the provider at the end of a cancelled turn. A response that is not cancelled
/// within this time runs to its end, and is paid.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// Takes in a reply: sends its pieces to the readers, and the id of its response to the store.
pub(super) struct Listener<'a> {
    claimed: &'a Claimed<'a>,
    model_calls: &'a dyn ModelCalls,
    queue: Queue<'a>,
    pub(super) text: &'a TextWriter,
    provider: &'a str,
    model: &'a str,
    /// The response's id, after the provider has told it.
    response_id: Option<String>,
    /// The reason why the response could not be noted, or may not be made again now.
    refused: Option<ActivityError>,
    /// Holds the call's slot among the calls of the provider.
    pub(super) admission: Admission,
    /// The estimated tokens of the call.
    pub(super) tokens: u64,
}

impl<'a> Listener<'a> {
    /// Makes the listener. `earlier` is the response of an earlier attempt; readers see its text go on instead of
    /// starting anew.
    pub(super) fn new(
        queue: Queue<'a>,
        model_calls: &'a dyn ModelCalls,
        agent: &'a AgentDefinition,
        text: &'a TextWriter,
        earlier: Option<BackgroundResponse>,
    ) -> Self {
        let model = agent.model.as_deref().unwrap_or_default();
        let earlier = earlier.filter(|it| it.provider == agent.provider && it.model == model);
        text.set_continues(earlier.is_some());
        Self {
            claimed: queue.claimed,
            model_calls,
            queue,
            text,
            provider: &agent.provider,
            model,
            response_id: earlier.map(|response| response.id),
            refused: None,
            admission: Admission::default(),
            tokens: 0,
        }
    }

    /// Frees the call's slot at the provider, and reports the tokens that the call took, if known.
    pub(super) fn leave(&mut self, tokens: Option<u64>) {
        let admission = std::mem::take(&mut self.admission);
        if let Some(tokens) = tokens.filter(|tokens| *tokens > 0) {
            admission.settle(tokens);
        }
    }

    /// Returns the provider's id of the response, if any.
    pub(super) fn response_id(&self) -> Option<String> {
        self.response_id.clone()
    }

    /// Returns the response, if any.
    pub(super) fn response(&self) -> Option<BackgroundResponse> {
        self.response_id.clone().map(|id| self.response_of(id))
    }

    fn response_of(&self, id: String) -> BackgroundResponse {
        BackgroundResponse {
            provider: self.provider.to_owned(),
            model: self.model.to_owned(),
            id,
        }
    }

    /// Returns the reason of a failed call.
    pub(super) fn refused(&mut self, error: ModelError) -> Failed {
        let refused = self.refused.take();
        refused.map_or(Failed::Model(error), Failed::Other)
    }
}

#[async_trait]
impl ReplyListener for Listener<'_> {
    async fn accepted(&mut self, response_id: &str) -> Result<(), ModelError> {
        self.response_id = Some(response_id.to_owned());
        let response = self.response_of(response_id.to_owned());
        let (claimed, model_calls) = (self.claimed, self.model_calls);
        let noted = claimed
            .attempt
            .insist(|| model_calls.note_response(claimed.step, claimed.generation, &response))
            .await;
        let refused = match noted {
            Ok(true) => return Ok(()),
            Ok(false) => fail::superseded(),
            Err(error) => error,
        };
        self.refused = Some(refused);
        Err(ModelError::new(
            FailureCode::LlmUnavailable,
            "The response could not be noted.",
        ))
    }

    async fn made_again(&mut self) -> Result<(), ModelError> {
        // The call has skipped the limits of the provider because a response existed (`ProviderLimits::wait`).
        match self.queue.admit(self.provider, self.tokens).await {
            Ok(admission) => self.admission = admission,
            // The listener keeps the response, because the next attempt takes over the response's reservation.
            Err(later) => {
                self.refused = Some(self.queue.leave(self.provider, later).await);
                return Err(ModelError::new(
                    FailureCode::LlmRateLimited,
                    "The call waits for the limits of its provider.",
                ));
            }
        }
        self.response_id = None;
        self.text.set_continues(false);
        Ok(())
    }

    fn delta(&mut self, part: Part, piece: &str) {
        self.text.push(part, piece);
    }
}

/// Cancels a response at its provider, if the engine reports that the activity is cancelled. After a worker's shutdown
/// or a reset of the run, the response is left to the next attempt, which goes on with it.
pub(super) async fn cancel_if_cancelled(
    running: Option<BackgroundResponse>,
    ctx: &ActivityContext,
    model: &dyn ModelClient,
) {
    let Some(response) = running else { return };
    let asked = timeout(CANCEL_LIMIT, cancels::is_requested(ctx)).await;
    if asked.unwrap_or_default() {
        cancel(&response, model).await;
    }
}

/// Cancels a response without a reader at its provider.
pub(super) async fn cancel(response: &BackgroundResponse, model: &dyn ModelClient) {
    let BackgroundResponse { provider, id, .. } = response;
    let error = match timeout(CANCEL_LIMIT, model.cancel(provider, id)).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.message,
        Err(_) => "it took too long".to_owned(),
    };
    tracing::warn!(
        provider,
        response_id = id,
        error,
        "a response without a reader could not be cancelled; the response runs to the end and is paid"
    );
}
