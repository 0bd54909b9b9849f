//! Where a request goes, and its headers.
//!
//! genai would make both by itself. It would take parts of a model's name for settings (docs/libraries.md, genai: guesses
//! from the model's name), want a key where none is needed, and know neither Azure's header nor those of a proxy.

use std::collections::BTreeMap;

use genai::Headers;
use reqwest::{
    Url,
    header::{HeaderName, HeaderValue},
};

use super::ProviderError;
use crate::model::{Provider, ProviderKind};

/// The version of Anthropic's wire that the adapter knows.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The URL with the `/` at its end that joining a path to it needs.
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

/// The URL of a streamed call. The query of the base URL stays, like Azure's `api-version`.
pub(super) fn url(kind: ProviderKind, base: &Url, model: &str) -> String {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        match kind {
            ProviderKind::OpenAi | ProviderKind::Azure => {
                path.extend(["chat", "completions"]);
            }
            ProviderKind::Anthropic => {
                path.push("messages");
            }
            // A name with a slash is a resource of another collection, like `tunedModels/mine`.
            ProviderKind::Gemini => {
                let model = format!("{model}:streamGenerateContent");
                if !model.contains('/') {
                    path.push("models");
                }
                path.extend(model.split('/'));
            }
        }
    }
    if kind == ProviderKind::Gemini {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    url.into()
}

/// The headers of each request to a provider: its key, then those of the configuration.
pub(super) fn headers(
    name: &str,
    provider: &Provider,
    key: Option<&str>,
) -> Result<Headers, ProviderError> {
    let mut headers = BTreeMap::new();
    if let Some(key) = key {
        if HeaderValue::from_str(key).is_err() {
            return Err(ProviderError::InvalidKey {
                provider: name.to_owned(),
            });
        }
        let (header, value) = match provider.kind {
            ProviderKind::OpenAi => ("authorization", format!("Bearer {key}")),
            ProviderKind::Azure => ("api-key", key.to_owned()),
            ProviderKind::Anthropic => ("x-api-key", key.to_owned()),
            ProviderKind::Gemini => ("x-goog-api-key", key.to_owned()),
        };
        headers.insert(header.to_owned(), value);
    }
    if provider.kind == ProviderKind::Anthropic {
        headers.insert("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned());
    }
    for (header, value) in &provider.headers {
        let invalid = || ProviderError::InvalidHeader {
            provider: name.to_owned(),
            header: header.clone(),
        };
        let header_name: HeaderName = header.parse().map_err(|_| invalid())?;
        let value = value.trim();
        HeaderValue::from_str(value).map_err(|_| invalid())?;
        headers.insert(header_name.as_str().to_owned(), value.to_owned());
    }
    Ok(Headers::from(headers.into_iter().collect::<Vec<_>>()))
}
