//! Everturn's adapters for the wires of providers: one request builder and one state machine for each wire.
//!
//! - [`call`]: one call, from the request to the reply
//! - [`body`], [`frames`], [`json`]: the lenient readers of bytes, for the Responses API too
//! - [`hearing`], [`think_tags`]: the texts of a reply
//! - [`calls`]: the tool calls of a reply
//! - [`citations`]: the sources of a reply
//! - [`finish`]: the ends of a reply
//! - [`received`]: the parts of a reply, and the trait of the state machines
//! - [`chat`], [`anthropic`], [`gemini`]: the wires
//!
//! Data flows one way: bytes → frames → JSON → a wire's state machine → [`received::Received`] → our reply. The state
//! machine of a wire knows the names of the wire's fields and nothing else: which piece belongs to which call, and
//! whether an end is an answer, is decided in [`calls`] and [`finish`].

mod anthropic;
mod body;
mod call;
mod calls;
mod chat;
mod citations;
mod finish;
mod frames;
mod gemini;
mod hearing;
#[cfg(test)]
mod hostile;
pub(crate) mod json;
mod received;
#[cfg(test)]
pub(crate) mod tests;
mod think_tags;

pub(crate) use body::{Body as AnswerBody, Broken, Refusal};
pub(crate) use call::{Exchange, run};
pub(crate) use calls::{Arguments, Calls, Piece};
pub(crate) use citations::Citations;
pub(crate) use finish::End;
pub(crate) use frames::Frame;
pub(crate) use hearing::{BREAK, Hearing, Texts, without_nul};
pub(crate) use received::{Received, count};

use reqwest::Url;
use serde::Serialize;
use serde_json::Value;

use crate::{port::ModelRequest, profile::Profile, provider::ProviderKind};
use received::ReplyReader;

/// The body of a request.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Body {
    /// A body without parts that a tree would change.
    Tree(Value),
    /// Anthropic's body.
    Anthropic(anthropic::request::Body),
}

impl Body {
    /// Returns the fields beside the messages.
    pub(crate) fn fields(&mut self) -> &mut Value {
        match self {
            Self::Tree(fields) => fields,
            Self::Anthropic(body) => &mut body.fields,
        }
    }
}

/// Returns the body of a request for a streamed reply.
pub(crate) fn body(request: &ModelRequest, profile: &Profile) -> Body {
    match profile.kind {
        ProviderKind::OpenAi | ProviderKind::Azure | ProviderKind::OpenAiResponses => {
            Body::Tree(chat::request::body(request, profile))
        }
        ProviderKind::Gemini => Body::Tree(gemini::request::body(request, profile)),
        ProviderKind::Anthropic => Body::Anthropic(anthropic::request::body(request, profile)),
    }
}

/// Returns the state machine for one reply of the wire.
pub(crate) fn reader(kind: ProviderKind) -> Box<dyn ReplyReader> {
    match kind {
        ProviderKind::OpenAi | ProviderKind::Azure | ProviderKind::OpenAiResponses => {
            Box::<chat::reply::Reader>::default()
        }
        ProviderKind::Gemini => Box::<gemini::reply::Reader>::default(),
        ProviderKind::Anthropic => Box::<anthropic::reply::Reader>::default(),
    }
}

/// Returns the URL of a streamed call. The query of the base URL stays, like Azure's `api-version`.
pub(crate) fn url(kind: ProviderKind, base: &Url, model: &str) -> Url {
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
    url
}
