//! Everturn's own adapter for OpenAI's Responses API: genai does not know responses in the background.
//!
//! - [`call`]: one call, from the request to the end of the response
//! - [`request`]: the request, from our context
//! - [`reply`]: the reply, from the response and its events
//! - [`limited`]: the limits for reading
//!
//! With `background`, the provider makes a response even without a reader. The listener gets the response's id before
//! the first piece of the reply. With the id, any attempt can read the response from any event on, until some minutes
//! after its end, without a further cost (invariant 5, paid once).

mod call;
mod limited;
mod reply;
mod request;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use reqwest::{Method, RequestBuilder, Url, header::ACCEPT};

use self::call::{Call, Refusal, is_over};
use super::{
    Admission, ModelClient, ModelError, ModelReply, ModelRequest, ProviderError, Providers,
    ReplyListener,
    endpoint::{CONNECT_TIMEOUT, Endpoint, HttpClients, READ_TIMEOUT},
    failure,
    targets::Targets,
};

/// Calls models through the Responses API.
pub(super) struct ResponsesClient {
    targets: Targets<Target>,
}

/// One provider, ready for calls.
struct Target {
    http: reqwest::Client,
    endpoint: Endpoint,
    is_background: bool,
    /// The models without readable thoughts: they refused to send any. The agents' models are the upper limit.
    without_thoughts: RwLock<BTreeSet<String>>,
}

impl ResponsesClient {
    /// Makes a client of the providers.
    pub(super) fn new(providers: &Providers) -> Result<Self, ProviderError> {
        Self::with_timeouts(providers, CONNECT_TIMEOUT, READ_TIMEOUT)
    }

    fn with_timeouts(
        providers: &Providers,
        connect: Duration,
        read: Duration,
    ) -> Result<Self, ProviderError> {
        let http = HttpClients::new(connect, read)?;
        let targets = Targets::new(providers, |provider, endpoint| {
            let http = if endpoint.is_local() {
                &http.local
            } else {
                &http.remote
            };
            Target {
                http: http.clone(),
                endpoint,
                is_background: provider.background,
                without_thoughts: RwLock::default(),
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
    fn get(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::GET, self.url(path))
    }

    /// Returns the request for a response's events after the event `after`, or for every event.
    fn get_stream(&self, response_id: &str, after: Option<u64>) -> RequestBuilder {
        let mut url = self.url(&["responses", response_id]);
        url.query_pairs_mut().append_pair("stream", "true");
        if let Some(after) = after {
            let after = after.to_string();
            url.query_pairs_mut().append_pair("starting_after", &after);
        }
        self.request(Method::GET, url)
    }

    fn post(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::POST, self.url(path))
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let mut request = self.http.request(method, url);
        let headers = &self.endpoint.headers;
        if !headers.contains_key(ACCEPT.as_str()) {
            request = request.header(ACCEPT, "text/event-stream, application/json");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request
    }

    /// Returns the URL of a path. A response id with special characters cannot lead to another address.
    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.endpoint.url.clone();
        // Only URLs without a host have no segments, and our URL has a host.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// True unless the model has refused to send thoughts.
    fn has_thoughts(&self, model: &str) -> bool {
        let without = self.without_thoughts.read();
        !without
            .unwrap_or_else(PoisonError::into_inner)
            .contains(model)
    }

    fn note_no_thoughts(&self, model: &str) {
        let without = self.without_thoughts.write();
        let mut without = without.unwrap_or_else(PoisonError::into_inner);
        without.insert(model.to_owned());
    }
}

#[async_trait]
impl ModelClient for ResponsesClient {
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
        let reply = Call::new(target, &request, listener).run().await;
        reply.map_err(|error| target.endpoint.failed(error))
    }

    async fn cancel(&self, provider: &str, response_id: &str) -> Result<(), ModelError> {
        let target = self.targets.get(provider)?;
        let call = failure::Call {
            provider,
            model: "",
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
        let error = Refusal::read(answer).await.error(call);
        Err(target.endpoint.failed(error))
    }
}
