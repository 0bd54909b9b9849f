//! The call of the model for an answer: the cost is reserved, and the model is called.
//!
//! Must not be here: the call for a summary, which has no readers (`compaction`).

use everturn_models::{ModelClient, ModelReply, ModelRequest};
use everturn_store::StepClaims;

use super::{
    background::Listener, budget::Budget, claimed::Claimed, pick::Pick, reply::Failed,
    stops::superseded,
};
use crate::failure as fail;

/// The call of the model.
pub(super) struct Call<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) steps: &'a dyn StepClaims,
    pub(super) model: &'a dyn ModelClient,
    pub(super) budget: Budget<'a>,
}

impl Call<'_> {
    /// Reserves the cost of a request with about `tokens` input tokens, and calls the model. A refused call gives its
    /// reservation back.
    pub(super) async fn run(
        &self,
        pick: &Pick<'_>,
        request: ModelRequest,
        tokens: u64,
        listener: &mut Listener<'_>,
    ) -> Result<ModelReply, Failed> {
        // The reservation of the call that made the response is still valid.
        if request.attached.is_none() {
            self.budget.reserve(pick, tokens).await?;
        }
        let text = listener.text;
        let reply = tokio::select! {
            biased;
            reply = self.model.complete(request, listener) => reply,
            () = superseded(self.claimed, self.steps, text) => return Err(fail::superseded().into()),
        };
        // A response in the background keeps its reservation for the next attempt, which reads the response again.
        if let Err(error) = &reply
            && listener.response().is_none()
        {
            self.budget.give_back(error, Some(text)).await;
        }
        reply.map_err(Failed::Model)
    }
}
