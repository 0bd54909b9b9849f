//! The adapter on genai: the wires of OpenAI, Azure, Anthropic and Gemini, streamed.
//!
//! - [`wire`]: where a request goes, and its headers
//! - [`chat`]: the request, from our context to genai's messages
//! - [`options`]: the parameters of a request
//! - [`gemini`]: what genai does not do for Gemini
//! - [`frames`]: what genai leaves out of a stream
//! - [`reply`]: the reply, from genai's events to ours
//! - [`failure`]: from an error of genai to one that says what to do
//! - [`said`]: what the body of a provider's error says
//!
//! genai guesses providers and settings from the names of models. Nothing of that is wanted here: provider, address and
//! key come from the configuration, and the provider gets the model's name as it is written there.

mod chat;
mod failure;
mod frames;
mod gemini;
mod options;
mod reply;
mod said;
#[cfg(test)]
mod tests;
mod wire;

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use everturn_proto::words::failure as code;
use everturn_stream::Part;
use futures::StreamExt;
use genai::{
    Client, Headers, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::ChatStreamEvent,
    resolver::{AuthData, Endpoint},
};
use reqwest::{Url, redirect, retry};
use url::Host;

use self::frames::Frames;
use super::{
    Admission, EmitDelta, ModelClient, ModelError, ModelReply, ModelRequest, Provider,
    ProviderKind, Providers, gate::Gate,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence on an open stream. A model may think for long, so there is no limit on the whole call here:
/// the activity has a deadline of its own.
const READ_TIMEOUT: Duration = Duration::from_mins(2);
/// Shorter keys are placeholders like `demo`, and ordinary words in a message.
const MIN_SECRET_BYTES: usize = 8;

/// Calls models through genai.
pub struct GenaiClient {
    targets: BTreeMap<String, Target>,
}

/// One provider, ready to be called.
struct Target {
    client: Client,
    kind: ProviderKind,
    base_url: Url,
    headers: Headers,
    /// The key and the values of the configured headers, which are cut out of messages.
    secrets: Vec<String>,
    gate: Option<Gate>,
}

/// A provider that cannot be called as configured.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Its address is no HTTP URL.
    #[error("base_url of provider `{provider}` cannot be used: {reason}")]
    InvalidBaseUrl {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It has no address, and none is known for its kind.
    #[error("provider `{provider}` needs a `base_url`")]
    NoBaseUrl {
        /// The provider.
        provider: String,
    },
    /// One of its headers cannot be sent.
    #[error(
        "header `{header}` of provider `{provider}` cannot be sent: its name or its value holds characters that no \
         header has"
    )]
    InvalidHeader {
        /// The provider.
        provider: String,
        /// The header.
        header: String,
    },
    /// Its key cannot be sent in a header.
    #[error(
        "the key of provider `{provider}` holds characters that no key has; is it complete and on one line?"
    )]
    InvalidKey {
        /// The provider.
        provider: String,
    },
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Http(#[from] reqwest::Error),
    /// genai cannot be set up.
    #[error("the model client cannot be set up")]
    Client(#[from] genai::Error),
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
        let http = || {
            reqwest::Client::builder()
                .connect_timeout(connect)
                .read_timeout(read)
                // The engine retries. A retry here would be paid, and nobody would see it (invariant 5, paid once).
                .retry(retry::never())
                // A redirect would take the key in `x-api-key` to wherever it points.
                .redirect(redirect::Policy::none())
        };
        let remote = Client::builder().with_reqwest(http().build()?).build()?;
        // A proxy from the environment is for requests that leave this machine. The demo model and other servers on
        // loopback are called without it.
        let local = Client::builder()
            .with_reqwest(http().no_proxy().build()?)
            .build()?;
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
        let url = provider.base_url.as_deref();
        let url = url.or(provider.kind.own_url()).map(wire::base_url);
        let base_url = match url {
            Some(Ok(url)) => url,
            Some(Err(reason)) => {
                return Err(ProviderError::InvalidBaseUrl {
                    provider: name.to_owned(),
                    reason,
                });
            }
            None => {
                return Err(ProviderError::NoBaseUrl {
                    provider: name.to_owned(),
                });
            }
        };
        let key = provider.api_key.as_deref().map(str::trim);
        let key = key.filter(|key| !key.is_empty());
        let values = provider.headers.values().map(|value| value.trim());
        Ok(Self {
            client: if is_loopback(&base_url) {
                local.clone()
            } else {
                remote.clone()
            },
            kind: provider.kind,
            base_url,
            headers: wire::headers(name, provider, key)?,
            gate: Gate::new(name, provider.limits),
            secrets: key
                .into_iter()
                .chain(values)
                .filter(|secret| secret.len() >= MIN_SECRET_BYTES)
                .map(str::to_owned)
                .collect(),
        })
    }

    /// Lets other calls wait, too, when the provider has said how long to wait for its limit.
    fn pause_after(&self, error: &ModelError) {
        if let (Some(gate), Some(wait)) = (&self.gate, error.retry_after)
            && error.code == code::LLM_RATE_LIMITED
        {
            gate.pause(wait);
        }
    }

    /// The message without the secrets: a provider may repeat one in its words, whatever the error. The message may have been
    /// shortened in the middle of one.
    fn without_secrets(&self, message: String) -> String {
        let without = |message: String, secret: &String| {
            let message = message.replace(secret, "***");
            let beginnings = (MIN_SECRET_BYTES..secret.len()).rev();
            let whole = beginnings
                .filter_map(|bytes| secret.get(..bytes))
                .find_map(|beginning| message.strip_suffix(beginning));
            whole.map_or_else(|| message.clone(), |whole| format!("{whole}***"))
        };
        self.secrets.iter().fold(message, without)
    }

    fn service(&self, model: &str) -> ServiceTarget {
        let adapter = match self.kind {
            ProviderKind::OpenAi | ProviderKind::Azure => AdapterKind::OpenAI,
            ProviderKind::Anthropic => AdapterKind::Anthropic,
            ProviderKind::Gemini => AdapterKind::Gemini,
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(String::from(self.base_url.clone())),
            auth: AuthData::RequestOverride {
                url: wire::url(self.kind, &self.base_url, model),
                headers: self.headers.clone(),
            },
            model: ModelIden::new(adapter, options::family(self.kind, model)),
        }
    }
}

#[async_trait]
impl ModelClient for GenaiClient {
    fn has_provider(&self, provider: &str) -> bool {
        self.targets.contains_key(provider)
    }

    async fn admit(&self, provider: &str) -> Admission {
        match self.targets.get(provider).and_then(|it| it.gate.as_ref()) {
            Some(gate) => gate.admit().await,
            None => Admission::default(),
        }
    }

    async fn complete(
        &self,
        request: ModelRequest,
        emit_delta: &mut EmitDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let Some(target) = self.targets.get(&request.provider) else {
            return Err(failure::unknown_provider(&request.provider));
        };
        let failed = |error: genai::Error| {
            let error = failure::from_genai(&request.provider, &request.model, &error);
            target.pause_after(&error);
            ModelError {
                message: target.without_secrets(error.message),
                ..error
            }
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
        let mut listener = reply::Listener::new(&request.provider, target.kind, emit_delta);
        while let Some(event) = stream.next().await {
            // The first error is the cause: genai's stream for OpenAI still has a normal end after it.
            let event = match (event, &frames) {
                (Err(error), Some(frames)) if gemini::is_without_candidates(&error) => {
                    match frames.blocked() {
                        Some(reason) => {
                            return Err(failure::content_policy(&request.provider, &reason));
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
        // A body that ends without the wire's end mark was cut. genai ends its stream then without an error.
        Err(failure::stream_cut(&request.provider))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
