//! The adapter for genai: the APIs of OpenAI, Azure, Anthropic and Gemini, streamed.
//!
//! - [`wire`]: the URL of a request
//! - [`chat`]: the request, from our context to genai's messages
//! - [`options`]: the parameters of a request
//! - [`gemini`]: additions to genai for Gemini
//! - [`frames`]: data of a stream that genai drops
//! - [`reply`]: the reply, from genai's events to our type
//! - [`failure`]: errors of genai, as our errors with a code for the remedy
//!
//! genai guesses providers and settings from the names of models. The adapter prevents every guess: provider, address
//! and key come from the configuration, and the provider gets the model's name as configured.

pub(super) mod chat;
mod failure;
mod files;
mod frames;
mod gemini;
mod options;
mod reply;
#[cfg(test)]
pub(super) mod tests;
mod wire;

use std::time::Duration;

use async_trait::async_trait;
use everturn_stream::Part;
use futures::StreamExt;
use genai::{
    Client, Headers, ModelIden, ServiceTarget, adapter::AdapterKind, chat::ChatStreamEvent,
    resolver::AuthData,
};

use self::frames::Frames;
use crate::{
    endpoint::ProviderError,
    endpoint::{CONNECT_TIMEOUT, Endpoint, HttpClients, READ_TIMEOUT},
    error::ModelError,
    failure::{content_policy, stream_cut},
    gate::Admission,
    port::{ModelClient, ModelReply, ModelRequest, ReplyListener},
    provider::{ProviderKind, Providers},
    targets::Targets,
};

/// Calls models through genai.
pub struct GenaiClient {
    targets: Targets<Target>,
}

/// One provider, ready for calls.
struct Target {
    client: Client,
    kind: ProviderKind,
    endpoint: Endpoint,
}

impl GenaiClient {
    /// Makes a client of the providers.
    pub fn new(providers: &Providers) -> Result<Self, ProviderError> {
        Self::with_timeouts(providers, CONNECT_TIMEOUT, READ_TIMEOUT)
    }

    fn with_timeouts(
        providers: &Providers,
        connect: Duration,
        read: Duration,
    ) -> Result<Self, ProviderError> {
        let http = HttpClients::new(connect, read)?;
        let remote = Client::builder().with_reqwest(http.remote).build()?;
        let local = Client::builder().with_reqwest(http.local).build()?;
        let targets = Targets::new(providers, |provider, endpoint| {
            let client = if endpoint.is_local() { &local } else { &remote };
            Target {
                client: client.clone(),
                kind: provider.kind,
                endpoint,
            }
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
    fn service(&self, model: &str) -> ServiceTarget {
        let adapter = match self.kind {
            // The Responses API has a separate client, and providers of the kind never arrive here.
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => {
                AdapterKind::OpenAI
            }
            ProviderKind::Anthropic => AdapterKind::Anthropic,
            ProviderKind::Gemini => AdapterKind::Gemini,
        };
        let Endpoint { url, headers, .. } = &self.endpoint;
        ServiceTarget {
            endpoint: genai::resolver::Endpoint::from_owned(url.to_string()),
            auth: AuthData::RequestOverride {
                url: wire::url(self.kind, url, model),
                headers: Headers::from(headers.clone().into_iter().collect::<Vec<_>>()),
            },
            model: ModelIden::new(adapter, options::family(self.kind, model)),
        }
    }
}

#[async_trait]
impl ModelClient for GenaiClient {
    fn has_provider(&self, provider: &str) -> bool {
        self.targets.has(provider)
    }

    async fn admit(&self, provider: &str, tokens: u64) -> Admission {
        self.targets.admit(provider, tokens).await
    }

    async fn complete(
        &self,
        request: ModelRequest,
        listener: &mut dyn ReplyListener,
    ) -> Result<ModelReply, ModelError> {
        let target = self.targets.get(&request.provider)?;
        let failed = |error: genai::Error| {
            let error = failure::from_genai(&request.provider, &request.model, &error);
            target.endpoint.failed(error)
        };
        let service = target.service(&request.model);
        let chat = chat::request(&request, target.kind);
        let frames = Frames::of(target.kind);
        let options = options::of(&request, target.kind, frames.clone());
        let response = target
            .client
            .exec_chat_stream(service, chat, Some(&options))
            .await;
        let mut stream = response.map_err(failed)?.stream;
        let mut listener = reply::Listener::new(&request.provider, target.kind, listener);
        while let Some(event) = stream.next().await {
            // The first error is the cause: genai's stream for OpenAI still has a normal end after it.
            let event = match (event, &frames) {
                (Err(error), Some(frames)) if gemini::is_without_candidates(&error) => {
                    match frames.blocked() {
                        Some(reason) => {
                            return Err(content_policy(&request.provider, &reason));
                        }
                        None => continue,
                    }
                }
                (event, _) => event.map_err(failed)?,
            };
            match event {
                ChatStreamEvent::Chunk(chunk) => listener.hear(Part::Text, &chunk.content)?,
                ChatStreamEvent::ReasoningChunk(chunk) => {
                    listener.hear(Part::Reasoning, &chunk.content)?;
                }
                ChatStreamEvent::ToolCallChunk(chunk) => listener.hear_call(&chunk.tool_call)?,
                ChatStreamEvent::End(end) => {
                    return listener.end(end, frames.as_deref());
                }
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::Heartbeat => {}
            }
        }
        // A body without the API's end mark was cut. genai then ends its stream without an error.
        Err(stream_cut(&request.provider))
    }
}
