//! One provider with the Responses API, and its requests.

use std::{
    collections::BTreeSet,
    sync::{PoisonError, RwLock},
};

use reqwest::{Method, RequestBuilder, Url};
use serde_json::Value;

use crate::{endpoint::Endpoint, port::ModelRequest, profile::Profile, provider::ProviderKind};

/// One provider, ready for calls.
pub(super) struct Target {
    pub(super) http: reqwest::Client,
    pub(super) endpoint: Endpoint,
    pub(super) is_background: bool,
    /// The models without readable thoughts: they refused to send any. The agents' models are the upper limit.
    pub(super) without_thoughts: RwLock<BTreeSet<String>>,
}

impl AsRef<Endpoint> for Target {
    fn as_ref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Target {
    pub(super) fn get(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::GET, self.url(path))
    }

    /// Returns the request for a response's events after the event `after`, or for every event.
    pub(super) fn get_stream(&self, response_id: &str, after: Option<u64>) -> RequestBuilder {
        let mut url = self.url(&["responses", response_id]);
        url.query_pairs_mut().append_pair("stream", "true");
        if let Some(after) = after {
            let after = after.to_string();
            url.query_pairs_mut().append_pair("starting_after", &after);
        }
        self.request(Method::GET, url)
    }

    pub(super) fn post(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::POST, self.url(path))
    }

    /// Returns the request for a response: with its body, and with the facts about the caller.
    pub(super) fn call(
        &self,
        post: RequestBuilder,
        mut body: Value,
        request: &ModelRequest,
    ) -> RequestBuilder {
        let kind = ProviderKind::OpenAiResponses;
        let post = self.endpoint.tell(kind, &request.caller, &mut body, post);
        post.json(&body)
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.endpoint.request(&self.http, method, url)
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

    pub(super) fn profile(&self, model: &str) -> Profile {
        self.endpoint.profile(ProviderKind::OpenAiResponses, model)
    }

    /// True unless the model has refused to send thoughts.
    pub(super) fn has_thoughts(&self, model: &str) -> bool {
        let without = self.without_thoughts.read();
        !without
            .unwrap_or_else(PoisonError::into_inner)
            .contains(model)
    }

    pub(super) fn note_no_thoughts(&self, model: &str) {
        let without = self.without_thoughts.write();
        let mut without = without.unwrap_or_else(PoisonError::into_inner);
        without.insert(model.to_owned());
    }
}
