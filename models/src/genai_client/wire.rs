//! The URLs of requests.
//!
//! Without this module genai would make the URL and the headers. It would take parts of a model's name for settings
//! (docs/libraries.md, genai: guesses from the model's name), require a key from every provider, and know neither
//! Azure's header nor the headers of a proxy. `models/src/endpoint.rs` makes the headers.

use reqwest::Url;

use crate::provider::ProviderKind;

/// Returns the URL of a streamed call. The query of the base URL stays, like Azure's `api-version`.
pub(super) fn url(kind: ProviderKind, base: &Url, model: &str) -> String {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => {
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
