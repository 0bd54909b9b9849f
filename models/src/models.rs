//! The clients of every provider, as one client.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::{
    client::StreamingClient,
    endpoint::ProviderError,
    error::ModelError,
    gate::{Admission, Arrival, Later},
    port::{ModelClient, ModelReply, ModelRequest, ReplyListener},
    provider::{Provider, ProviderKind, Providers},
    responses::ResponsesClient,
    tool_rules::ToolRules,
};

/// Calls every provider with the client for the provider's kind.
pub struct Models {
    streaming: StreamingClient,
    responses: ResponsesClient,
}

impl Models {
    /// Makes the clients of the providers.
    pub fn new(providers: Providers) -> Result<Self, ProviderError> {
        let is_of_responses = |provider: &Provider| provider.kind == ProviderKind::OpenAiResponses;
        let (responses, streaming): (BTreeMap<_, _>, BTreeMap<_, _>) = providers
            .into_iter()
            .partition(|(_, provider)| is_of_responses(provider));
        Ok(Self {
            streaming: StreamingClient::new(&streaming)?,
            responses: ResponsesClient::new(&responses)?,
        })
    }

    fn client_of(&self, provider: &str) -> &dyn ModelClient {
        if self.responses.has_provider(provider) {
            &self.responses
        } else {
            &self.streaming
        }
    }
}

#[async_trait]
impl ModelClient for Models {
    fn has_provider(&self, provider: &str) -> bool {
        self.client_of(provider).has_provider(provider)
    }

    fn tool_rules(&self, provider: &str, model: &str) -> ToolRules {
        self.client_of(provider).tool_rules(provider, model)
    }

    async fn admit(&self, provider: &str, arrival: &Arrival) -> Result<Admission, Later> {
        self.client_of(provider).admit(provider, arrival).await
    }

    async fn complete(
        &self,
        request: ModelRequest,
        listener: &mut dyn ReplyListener,
    ) -> Result<ModelReply, ModelError> {
        let estimate = request.estimate;
        let client = self.client_of(&request.provider);
        let mut reply = client.complete(request, listener).await?;
        let bytes = reply.bytes();
        estimate.complete(&mut reply.usage, bytes);
        Ok(reply)
    }

    async fn cancel(&self, provider: &str, response_id: &str) -> Result<(), ModelError> {
        self.client_of(provider).cancel(provider, response_id).await
    }
}
