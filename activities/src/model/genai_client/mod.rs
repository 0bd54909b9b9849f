//! The adapter on genai: OpenAI's chat completions and Anthropic's messages, streamed.
//!
//! - [`chat`]: the request, from our context to genai's messages
//! - [`reply`]: the reply, from genai's events to ours
//! - [`failure`]: from an error of genai to one that says what to do
//!
//! genai guesses providers and settings from the names of models. Nothing of that is wanted here: provider, address and
//! key come from the configuration, and the provider gets the model's name as it is written there.

mod chat;
mod failure;
mod reply;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use everturn_stream::Part;
use futures::StreamExt;
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{ChatOptions, ChatStreamEvent, ReasoningEffort},
    resolver::{AuthData, Endpoint},
};
use reqwest::{Url, header::HeaderValue, redirect, retry};
use serde_json::json;
use url::Host;

use super::{
    EmitDelta, ModelClient, ModelError, ModelReply, ModelRequest, Provider, ProviderKind, Providers,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence on an open stream. A model may think for long, so there is no limit on the whole call here:
/// the activity has a deadline of its own.
const READ_TIMEOUT: Duration = Duration::from_mins(2);
/// Sent to servers that want no key; genai insists on one.
const NO_KEY: &str = "none";
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
    endpoint: Endpoint,
    key: Option<String>,
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
            let target = Target::new(&name, provider, &remote, &local)?;
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
        provider: Provider,
        remote: &Client,
        local: &Client,
    ) -> Result<Self, ProviderError> {
        let Provider {
            kind,
            base_url: url,
            api_key,
        } = provider;
        let url = url.as_deref().unwrap_or(kind.own_url());
        let url = base_url(url).map_err(|reason| ProviderError::InvalidBaseUrl {
            provider: name.to_owned(),
            reason,
        })?;
        let key = api_key.as_deref().map(str::trim);
        let key = key.filter(|key| !key.is_empty());
        if key.is_some_and(|key| HeaderValue::from_str(key).is_err()) {
            return Err(ProviderError::InvalidKey {
                provider: name.to_owned(),
            });
        }
        Ok(Self {
            client: if is_loopback(&url) {
                local.clone()
            } else {
                remote.clone()
            },
            kind,
            endpoint: Endpoint::from_owned(String::from(url)),
            key: key.map(str::to_owned),
        })
    }

    /// The message without the key: a provider may repeat it in its words, whatever the error.
    fn without_key(&self, message: &str) -> String {
        match &self.key {
            Some(key) if key.len() >= MIN_SECRET_BYTES => message.replace(key, "***"),
            _ => message.to_owned(),
        }
    }

    fn service(&self, model: &str) -> ServiceTarget {
        let adapter = match self.kind {
            ProviderKind::OpenAi => AdapterKind::OpenAI,
            ProviderKind::Anthropic => AdapterKind::Anthropic,
        };
        ServiceTarget {
            endpoint: self.endpoint.clone(),
            auth: AuthData::from_single(self.key.as_deref().unwrap_or(NO_KEY)),
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
        emit_delta: &mut EmitDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let Some(target) = self.targets.get(&request.provider) else {
            return Err(failure::unknown_provider(&request.provider));
        };
        let failed = |error: genai::Error| {
            let error = failure::from_genai(&request.provider, &request.model, &error);
            ModelError {
                message: target.without_key(&error.message),
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
        let mut listener = reply::Listener::new(emit_delta);
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
        Err(failure::stream_cut(&request.provider))
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

/// The URL with the `/` at its end that genai needs to join paths to it.
fn base_url(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("it must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not hold a user or a password".to_owned());
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
