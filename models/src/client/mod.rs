//! The client of providers with streamed replies: chat completions, Anthropic's messages, and Gemini.

#[cfg(test)]
pub(super) mod tests;

use async_trait::async_trait;
use reqwest::{Method, RequestBuilder};

use crate::{
    endpoint::{Endpoint, HttpClients, ProviderError},
    error::ModelError,
    gate::{Admission, Arrival, Later},
    port::{ModelClient, ModelReply, ModelRequest, ReplyListener},
    profile::Profile,
    provider::{ProviderKind, Providers},
    targets::Targets,
    tool_rules::ToolRules,
    tool_schema::Offer,
    wire,
};

/// Calls models whose replies are streamed.
pub struct StreamingClient {
    targets: Targets<Target>,
}

/// One provider, ready for calls.
struct Target {
    http: reqwest::Client,
    kind: ProviderKind,
    endpoint: Endpoint,
}

impl StreamingClient {
    /// Makes a client of the providers.
    pub fn new(providers: &Providers) -> Result<Self, ProviderError> {
        let clients = HttpClients::new()?;
        let targets = Targets::new(providers, |provider, endpoint| Target {
            http: clients.of(&endpoint),
            kind: provider.kind,
            endpoint,
        });
        Ok(Self { targets: targets? })
    }
}

impl AsRef<Endpoint> for Target {
    fn as_ref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Target {
    fn post(&self, request: &ModelRequest, profile: &Profile) -> RequestBuilder {
        let url = wire::url(self.kind, &self.endpoint.url, &request.model);
        let post = self.endpoint.request(&self.http, Method::POST, url);
        let mut body = wire::body(request, profile);
        let fields = body.fields();
        let post = self.endpoint.tell(self.kind, &request.caller, fields, post);
        post.json(&body)
    }
}

#[async_trait]
impl ModelClient for StreamingClient {
    fn has_provider(&self, provider: &str) -> bool {
        self.targets.has(provider)
    }

    fn tool_rules(&self, provider: &str, model: &str) -> ToolRules {
        self.targets
            .tool_rules(|target| target.kind, provider, model)
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
        let profile = target.endpoint.profile(target.kind, &request.model);
        let offer = Offer::of(&mut request, &profile);
        let exchange = wire::Exchange {
            request: &request,
            reader: wire::reader(target.kind),
            has_tags: profile.think_tags,
            advice: target.endpoint.advice(),
        };
        let mut listener = offer.listener(listener);
        let reply = wire::run(exchange, target.post(&request, &profile), &mut listener).await;
        let reply = reply.map_err(|error| target.endpoint.failed(error))?;
        Ok(offer.restored(reply))
    }
}
