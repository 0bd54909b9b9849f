//! The adapter on genai: OpenAI's chat completions and Anthropic's messages, streamed.
//!
//! - [`chat`]: the request, from our context to genai's messages
//! - [`reply`]: the reply, from genai's events to ours
//! - [`failure`]: from an error of genai to one that says what to do
//!
//! genai guesses providers and settings from the names of models. Nothing of that is wanted here: provider, address and
//! key come from the configuration, and the provider gets the model's name as it is written there.

pub(super) mod chat;
mod failure;
mod reply;
#[cfg(test)]
pub(super) mod tests;

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use everturn_stream::Part;
use futures::StreamExt;
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{ChatOptions, ChatStreamEvent, ReasoningEffort},
    resolver::AuthData,
};
use serde_json::json;

use super::{
    ModelClient, ModelError, ModelReply, ModelRequest, Provider, ProviderKind, Providers,
    ReplyListener,
    endpoint::{CONNECT_TIMEOUT, Endpoint, HttpClients, ProviderError, READ_TIMEOUT},
    failure::{stream_cut, unknown_provider},
};

/// Sent to servers that want no key; genai insists on one.
const NO_KEY: &str = "none";

/// Calls models through genai.
pub struct GenaiClient {
    targets: BTreeMap<String, Target>,
}

/// One provider, ready to be called.
struct Target {
    client: Client,
    kind: ProviderKind,
    endpoint: Endpoint,
}

impl GenaiClient {
    /// A client of these providers.
    pub fn new(providers: Providers) -> Result<Self, ProviderError> {
        Self::with_timeouts(providers, CONNECT_TIMEOUT, READ_TIMEOUT)
    }

    fn with_timeouts(
        providers: Providers,
        connect: Duration,
        read: Duration,
    ) -> Result<Self, ProviderError> {
        let http = HttpClients::new(connect, read)?;
        let remote = Client::builder().with_reqwest(http.remote).build()?;
        let local = Client::builder().with_reqwest(http.local).build()?;
        let targets = providers.into_iter().map(|(name, provider)| {
            let target = Target::new(&name, &provider, &remote, &local)?;
            Ok::<_, ProviderError>((name, target))
        });
        Ok(Self {
            targets: targets.collect::<Result<_, _>>()?,
        })
    }
}

impl Target {
    fn new(
        name: &str,
        provider: &Provider,
        remote: &Client,
        local: &Client,
    ) -> Result<Self, ProviderError> {
        let endpoint = Endpoint::new(name, provider)?;
        let client = if endpoint.is_local() { local } else { remote };
        Ok(Self {
            client: client.clone(),
            kind: provider.kind,
            endpoint,
        })
    }

    fn service(&self, model: &str) -> ServiceTarget {
        let adapter = match self.kind {
            // The Responses API has a client of its own, which no provider of that kind gets past.
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => AdapterKind::OpenAI,
            ProviderKind::Anthropic => AdapterKind::Anthropic,
        };
        ServiceTarget {
            endpoint: genai::resolver::Endpoint::from_owned(self.endpoint.url.to_string()),
            auth: AuthData::from_single(self.endpoint.key.as_deref().unwrap_or(NO_KEY)),
            model: ModelIden::new(adapter, family(model)),
        }
    }
}

#[async_trait]
impl ModelClient for GenaiClient {
    fn has_provider(&self, provider: &str) -> bool {
        self.targets.contains_key(provider)
    }

    async fn complete(
        &self,
        request: ModelRequest,
        listener: &mut dyn ReplyListener,
    ) -> Result<ModelReply, ModelError> {
        let Some(target) = self.targets.get(&request.provider) else {
            return Err(unknown_provider(&request.provider));
        };
        let failed = |error: genai::Error| {
            let error = failure::from_genai(&request.provider, &request.model, &error);
            ModelError {
                message: target.endpoint.without_key(&error.message),
                ..error
            }
        };
        let service = target.service(&request.model);
        let chat = chat::request(&request, target.kind);
        let response = target
            .client
            .exec_chat_stream(service, chat, Some(&options(&request)))
            .await;
        let mut stream = response.map_err(failed)?.stream;
        let mut listener = reply::Listener::new(listener);
        while let Some(event) = stream.next().await {
            // The first error is the cause: genai's stream for OpenAI still has a normal end after it.
            match event.map_err(failed)? {
                ChatStreamEvent::Chunk(chunk) => listener.hear(Part::Text, &chunk.content)?,
                ChatStreamEvent::ReasoningChunk(chunk) => {
                    listener.hear(Part::Reasoning, &chunk.content)?;
                }
                ChatStreamEvent::ToolCallChunk(chunk) => listener.hear_call(&chunk.tool_call)?,
                ChatStreamEvent::End(end) => return listener.end(end),
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::Heartbeat => {}
            }
        }
        // A body that ends without the wire's end mark was cut. genai ends its stream then without an error.
        Err(stream_cut(&request.provider))
    }
}

fn options(request: &ModelRequest) -> ChatOptions {
    let options = ChatOptions::default()
        .with_capture_content(true)
        .with_capture_reasoning_content(true)
        .with_capture_tool_calls(true)
        .with_capture_usage(true)
        // This is merged last, so that the name is sent as it is, whatever genai made of it.
        .with_extra_body(json!({"model": request.model}));
    match request.max_output_tokens {
        None => options,
        Some(limit) => options.with_max_tokens(limit),
    }
}

/// The part of a model's name that genai may read. It knows from a name what a family of models needs (`gpt-5…` wants
/// `max_completion_tokens`, Anthropic wants a limit). A `namespace::` or an ending like `-high` is left out, because
/// genai would make settings of it that nobody asked for.
fn family(model: &str) -> &str {
    let mut name = model.rsplit("::").next().unwrap_or(model);
    while let (Some(_), shorter) = ReasoningEffort::from_model_name(name) {
        name = shorter;
    }
    if name.is_empty() { "model" } else { name }
}
