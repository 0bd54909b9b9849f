//! The adapter for OpenAI's Responses API, with responses in the background.
//!
//! - [`call`]: one call, from the request to the end of the response
//! - [`request`]: the request, from our context
//! - [`reply`]: the reply, from the response and its events
//! - [`target`]: one provider
//!
//! With `background`, the provider makes a response even without a reader. The listener gets the response's id before
//! the first piece of the reply. With the id, any attempt can read the response from any event on, until some minutes
//! after its end, without a further cost (invariant 5, paid once).

mod call;
mod reply;
mod request;
mod target;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use self::request::{Mode, body};

use std::sync::RwLock;

use async_trait::async_trait;

use self::{
    call::{Call, is_over},
    target::Target,
};
use crate::{
    endpoint::{HttpClients, ProviderError},
    error::ModelError,
    failure,
    gate::{Admission, Arrival, Later},
    port::{ModelClient, ModelReply, ModelRequest, ReplyListener},
    provider::{ProviderKind, Providers},
    targets::Targets,
    tool_rules::ToolRules,
    tool_schema::Offer,
    wire::Refusal,
};

/// Calls models through the Responses API.
pub(super) struct ResponsesClient {
    targets: Targets<Target>,
}

impl ResponsesClient {
    /// Makes a client of the providers.
    pub(super) fn new(providers: &Providers) -> Result<Self, ProviderError> {
        let clients = HttpClients::new()?;
        let targets = Targets::new(providers, |provider, endpoint| Target {
            http: clients.of(&endpoint),
            endpoint,
            is_background: provider.background,
            without_thoughts: RwLock::default(),
        });
        Ok(Self { targets: targets? })
    }
}

#[async_trait]
impl ModelClient for ResponsesClient {
    fn has_provider(&self, provider: &str) -> bool {
        self.targets.has(provider)
    }

    fn tool_rules(&self, provider: &str, model: &str) -> ToolRules {
        let kind = |_: &Target| ProviderKind::OpenAiResponses;
        self.targets.tool_rules(kind, provider, model)
    }

    async fn admit(&self, provider: &str, arrival: &Arrival) -> Result<Admission, Later> {
        self.targets.admit(provider, arrival).await
    }

    async fn complete(
        &self,
        mut request: ModelRequest,
        listener: &mut dyn ReplyListener,
    ) -> Result<ModelReply, ModelError> {
        let target = self.targets.get(&request.provider)?;
        let profile = target.profile(&request.model);
        let offer = Offer::of(&mut request, &profile);
        let mut listener = offer.listener(listener);
        let reply = Call::new(target, &request, &mut listener).run().await;
        let reply = reply.map_err(|error| target.endpoint.failed(error))?;
        Ok(offer.restored(reply))
    }

    async fn cancel(&self, provider: &str, response_id: &str) -> Result<(), ModelError> {
        let target = self.targets.get(provider)?;
        let call = failure::Call {
            provider,
            model: "",
            advice: None,
        };
        let sent = target.post(&["responses", response_id, "cancel"]).send();
        let answer = sent.await.map_err(|error| {
            let error = failure::from_reqwest(call, &error);
            target.endpoint.failed(error)
        })?;
        let status = answer.status();
        if status.is_success() || is_over(status) {
            return Ok(());
        }
        let error = Refusal::read(call, None, answer).await.error(call);
        Err(target.endpoint.failed(error))
    }
}
