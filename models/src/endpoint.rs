//! The addresses of providers, the headers of their requests, the limits of their calls, and the shared HTTP clients.

use std::{collections::BTreeMap, time::Duration};

use everturn_proto::{is_loopback, words::FailureCode};
use everturn_untrusted::Secrets;
use reqwest::{
    ClientBuilder, Method, RequestBuilder, Url,
    header::{ACCEPT, HeaderName, HeaderValue},
    redirect, retry,
};
use serde_json::Value;

use crate::{
    caller::{Caller, CallerFields},
    error::ModelError,
    gate::{Admission, Arrival, Gate, Later},
    profile::{Profile, ProfileSettings},
    provider::{Provider, ProviderKind},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The version of Anthropic's API for which the adapter is written.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The name by which providers know the caller.
const USER_AGENT: &str = concat!("everturn/", env!("CARGO_PKG_VERSION"));

/// A provider with an unusable configuration.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The address is no HTTP URL.
    #[error("base_url of provider `{provider}` cannot be used: {reason}")]
    InvalidBaseUrl {
        /// The provider.
        provider: String,
        /// The problem of the address.
        reason: String,
    },
    /// The provider has no address, and its kind has no default.
    #[error("provider `{provider}` needs a `base_url`")]
    NoBaseUrl {
        /// The provider.
        provider: String,
    },
    /// A header cannot be sent.
    #[error(
        "header `{header}` of provider `{provider}` cannot be sent: the name or the value has characters that are not \
         allowed in a header"
    )]
    InvalidHeader {
        /// The provider.
        provider: String,
        /// The header.
        header: String,
    },
    /// The key cannot be sent in a header.
    #[error(
        "the key of provider `{provider}` has characters that are not allowed in a key; check whether the key is \
         complete and on a single line"
    )]
    InvalidKey {
        /// The provider.
        provider: String,
    },
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Http(#[from] reqwest::Error),
}

/// A checked provider, ready for requests.
pub(super) struct Endpoint {
    /// The base URL. Its path ends in `/`.
    pub(super) url: Url,
    /// The headers of each request: the key, and the configured headers.
    headers: BTreeMap<String, String>,
    /// The facts about callers in each call.
    caller: CallerFields,
    /// The key and the values of the configured headers, which are cut out of messages.
    secrets: Secrets,
    gate: Option<Gate>,
    profile: ProfileSettings,
    /// The sentence of [`Endpoint::advice`].
    advice: Option<String>,
}

impl Endpoint {
    pub(super) fn new(name: &str, provider: &Provider) -> Result<Self, ProviderError> {
        let url = provider.base_url.as_deref();
        let url = url.or(provider.kind.own_url()).map(base_url);
        let url = match url {
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
        let values = provider.headers.values().map(String::as_str);
        Ok(Self {
            advice: advice(provider.kind, &url),
            url,
            headers: headers(name, provider, key)?,
            caller: provider.caller.clone(),
            gate: Gate::new(name, provider.limits),
            profile: provider.profile,
            secrets: Secrets::of(key.into_iter().chain(values)),
        })
    }

    /// True when the provider is on this machine.
    pub(super) fn is_local(&self) -> bool {
        self.url.host_str().is_some_and(is_loopback)
    }

    /// Returns a sentence about an address that lacks the version of the API.
    pub(super) fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// Returns the profile of a model at the provider of this kind.
    pub(super) fn profile(&self, kind: ProviderKind, model: &str) -> Profile {
        let host = self.url.host_str().unwrap_or_default();
        Profile::of(kind, host, model, self.profile)
    }

    /// Returns a request with the provider's headers.
    pub(super) fn request(
        &self,
        http: &reqwest::Client,
        method: Method,
        url: Url,
    ) -> RequestBuilder {
        let mut request = http.request(method, url);
        if !self.headers.contains_key(ACCEPT.as_str()) {
            request = request.header(ACCEPT, "text/event-stream, application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
    }

    /// Adds the facts about the caller to the fields of a call's body, and to the call's headers.
    pub(super) fn tell(
        &self,
        kind: ProviderKind,
        caller: &Caller,
        fields: &mut Value,
        mut request: RequestBuilder,
    ) -> RequestBuilder {
        self.caller.add_to(fields, kind, caller);
        for (name, value) in self.caller.headers_of(caller) {
            request = request.header(name, value);
        }
        request
    }

    /// Waits until the provider's limits let one more call begin.
    pub(super) async fn admit(&self, arrival: &Arrival) -> Result<Admission, Later> {
        match &self.gate {
            Some(gate) => gate.admit(arrival).await,
            None => Ok(Admission::default()),
        }
    }

    /// Returns the error of a call, without the secrets. When the error tells a time to wait, other calls wait, too.
    pub(super) fn failed(&self, error: ModelError) -> ModelError {
        self.pause_after(&error);
        ModelError {
            message: self.without_secrets(error.message),
            ..error
        }
    }

    /// Makes other calls wait, too, when the provider has told how long to wait for its limit.
    fn pause_after(&self, error: &ModelError) {
        if let (Some(gate), Some(wait)) = (&self.gate, error.retry_after)
            && error.code == FailureCode::LlmRateLimited
        {
            gate.pause(wait);
        }
    }

    /// Returns the message without the secrets: a provider may repeat a secret in any error.
    pub(super) fn without_secrets(&self, message: String) -> String {
        self.secrets.cut(message)
    }
}

/// The HTTP clients for calls to providers. Clones of a client share its connections.
pub(super) struct HttpClients {
    /// The client for providers on remote machines.
    remote: reqwest::Client,
    /// The client for servers on this machine. The environment's proxy is for requests to other machines, so the demo
    /// model and other servers on loopback are called without a proxy.
    local: reqwest::Client,
}

impl HttpClients {
    /// Returns the client for an endpoint.
    pub(super) fn of(&self, endpoint: &Endpoint) -> reqwest::Client {
        let client = if endpoint.is_local() {
            &self.local
        } else {
            &self.remote
        };
        client.clone()
    }

    pub(super) fn new() -> Result<Self, reqwest::Error> {
        Ok(Self {
            remote: builder().build()?,
            local: builder().no_proxy().build()?,
        })
    }
}

/// Returns the settings of the clients. No time limit covers an answer: each call limits the provider's silence, and
/// the activity the whole call.
fn builder() -> ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        // The engine retries. A retry here would be paid, and nobody would see it (invariant 5, paid once).
        .retry(retry::never())
        // A redirect would carry the key in `x-api-key` to an unknown address.
        .redirect(redirect::Policy::none())
}

/// Returns the headers of each request to a provider: its key, and the configured headers.
fn headers(
    name: &str,
    provider: &Provider,
    key: Option<&str>,
) -> Result<BTreeMap<String, String>, ProviderError> {
    let mut headers = BTreeMap::new();
    if let Some(key) = key {
        if HeaderValue::from_str(key).is_err() {
            return Err(ProviderError::InvalidKey {
                provider: name.to_owned(),
            });
        }
        let (header, value) = match provider.kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => {
                ("authorization", format!("Bearer {key}"))
            }
            ProviderKind::Azure => ("api-key", key.to_owned()),
            ProviderKind::Anthropic => ("x-api-key", key.to_owned()),
            ProviderKind::Gemini => ("x-goog-api-key", key.to_owned()),
        };
        headers.insert(header.to_owned(), value);
    }
    if provider.kind == ProviderKind::Anthropic {
        headers.insert("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned());
    }
    for (header, value) in provider.fixed_headers.iter().chain(&provider.headers) {
        let invalid = || ProviderError::InvalidHeader {
            provider: name.to_owned(),
            header: header.clone(),
        };
        let header_name: HeaderName = header.parse().map_err(|_| invalid())?;
        let value = value.trim();
        HeaderValue::from_str(value).map_err(|_| invalid())?;
        headers.insert(header_name.as_str().to_owned(), value.to_owned());
    }
    Ok(headers)
}

/// Returns the advice to add the version of the API to an address without a version. Most servers answer 404 at such an
/// address.
fn advice(kind: ProviderKind, url: &Url) -> Option<String> {
    let has_version = match kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Anthropic => {
            url.path_segments().into_iter().flatten().any(is_version)
        }
        // The addresses of Azure have their version in the query, and Gemini has several versions.
        ProviderKind::Azure | ProviderKind::Gemini => true,
    };
    if has_version {
        return None;
    }
    let mut with_version = url.clone();
    with_version.set_path(&format!("{}v1/", url.path()));
    Some(format!(
        "The address has no version: try `base_url = \"{with_version}\"`."
    ))
}

/// True for a segment like `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v');
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns the URL with a `/` at the end of its path, because joining a path needs the `/`.
pub(super) fn base_url(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("the URL must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL must not have a user or a password".to_owned());
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_version_has_an_advice() {
        let advice = |kind, url: &str| advice(kind, &base_url(url).unwrap());
        let try_it = |url: &str| {
            Some(format!(
                "The address has no version: try `base_url = \"{url}\"`."
            ))
        };
        for (url, expected) in [
            ("http://localhost:8000", try_it("http://localhost:8000/v1/")),
            ("http://h/openai/", try_it("http://h/openai/v1/")),
            ("http://h/?a=1", try_it("http://h/v1/?a=1")),
            ("http://localhost:8000/v1", None),
            ("http://h/api/v4/x", None),
            ("http://h/v1beta/openai/", None),
        ] {
            assert_eq!(advice(ProviderKind::OpenAi, url), expected, "{url}");
        }
        assert_eq!(advice(ProviderKind::Azure, "http://h/"), None);
        assert!(advice(ProviderKind::Anthropic, "http://h/").is_some());
    }
}
