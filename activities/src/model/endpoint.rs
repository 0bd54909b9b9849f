//! Where a provider is, what it is sent to say who asks, and the HTTP clients of all providers.

use std::time::Duration;

use reqwest::{ClientBuilder, Url, header::HeaderValue, redirect, retry};
use url::Host;

use super::Provider;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence on an open stream. A model may think for long, so there is no limit on the whole call here:
/// the activity has a deadline of its own.
pub(super) const READ_TIMEOUT: Duration = Duration::from_mins(2);
/// Shorter keys are placeholders like `demo`, and ordinary words in a message.
const MIN_SECRET_BYTES: usize = 8;

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

/// The address and the key of a provider, both checked.
pub(super) struct Endpoint {
    /// It ends in `/`.
    pub(super) url: Url,
    pub(super) key: Option<String>,
}

impl Endpoint {
    pub(super) fn new(name: &str, provider: &Provider) -> Result<Self, ProviderError> {
        let url = provider.base_url.as_deref();
        let url = base_url(url.unwrap_or(provider.kind.own_url()));
        let url = url.map_err(|reason| ProviderError::InvalidBaseUrl {
            provider: name.to_owned(),
            reason,
        })?;
        let key = provider.api_key.as_deref().map(str::trim);
        let key = key.filter(|key| !key.is_empty());
        if key.is_some_and(|key| HeaderValue::from_str(key).is_err()) {
            return Err(ProviderError::InvalidKey {
                provider: name.to_owned(),
            });
        }
        Ok(Self {
            url,
            key: key.map(str::to_owned),
        })
    }

    /// True when it is on this machine.
    pub(super) fn is_local(&self) -> bool {
        is_loopback(&self.url)
    }

    /// The message without the key: a provider may repeat it in its words, whatever the error.
    pub(super) fn without_key(&self, message: &str) -> String {
        match &self.key {
            Some(key) if key.len() >= MIN_SECRET_BYTES => message.replace(key, "***"),
            _ => message.to_owned(),
        }
    }
}

/// The HTTP clients that providers are called with. Clones of each share its connections.
pub(super) struct HttpClients {
    /// For providers elsewhere.
    pub(super) remote: reqwest::Client,
    /// For servers on this machine. A proxy from the environment is for requests that leave it, so the demo model and
    /// other servers on loopback are called without one.
    pub(super) local: reqwest::Client,
}

impl HttpClients {
    pub(super) fn new(connect: Duration, read: Duration) -> Result<Self, reqwest::Error> {
        Ok(Self {
            remote: builder(connect, read).build()?,
            local: builder(connect, read).no_proxy().build()?,
        })
    }
}

fn builder(connect: Duration, read: Duration) -> ClientBuilder {
    reqwest::Client::builder()
        .connect_timeout(connect)
        .read_timeout(read)
        // The engine retries. A retry here would be paid, and nobody would see it (invariant 5, paid once).
        .retry(retry::never())
        // A redirect would take the key in `x-api-key` to wherever it points.
        .redirect(redirect::Policy::none())
}

/// The URL with the `/` at its end that paths are joined to.
pub(super) fn base_url(text: &str) -> Result<Url, String> {
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

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
