//! The requests that providers refuse: a validator for each wire.
//!
//! A refused message makes every later turn of its conversation fail. Therefore the tests run a validator over every
//! request.
//!
//! - [`problems`]: the reasons for which a provider would refuse a request
//! - `chat`, `anthropic`, `gemini`, `responses`: the demands on each wire
//! - [`SchemaReader`]: the demands on the schemas of tools
//! - `found`, `rules`: code that the validators share
//!
//! Must not be here: the making of requests. A validator reads nothing but JSON, so an error in the making of a request
//! cannot hide in the validator.

mod anthropic;
mod chat;
mod found;
mod gemini;
mod responses;
mod rules;
mod schemas;
#[cfg(test)]
mod tests;

pub use schemas::SchemaReader;
use serde_json::Value;

/// A provider with demands on requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The chat completions of OpenAI and Azure.
    OpenAi,
    /// A server of chat completions that puts the messages into the chat template of a model.
    Template,
    /// Mistral.
    Mistral,
    /// A model of Mistral at another server.
    MistralModel,
    /// DeepSeek and Moonshot.
    DeepSeek,
    /// Anthropic.
    Anthropic,
    /// Gemini before version 3.
    Gemini,
    /// Gemini from version 3 on, which needs the signatures of calls.
    Gemini3,
    /// OpenAI's Responses API.
    Responses,
}

impl Who {
    /// Every provider.
    pub const ALL: [Self; 9] = [
        Self::OpenAi,
        Self::Template,
        Self::Mistral,
        Self::MistralModel,
        Self::DeepSeek,
        Self::Anthropic,
        Self::Gemini,
        Self::Gemini3,
        Self::Responses,
    ];
}

/// Returns the reasons for which the provider would refuse a request with this body, each with its address in the body.
/// Empty: the provider takes the request.
pub fn problems(who: Who, body: &Value) -> Vec<String> {
    match who {
        Who::OpenAi => chat::problems(&chat::OPENAI, body),
        Who::Template => chat::problems(&chat::TEMPLATE, body),
        Who::Mistral => chat::problems(&chat::MISTRAL, body),
        Who::MistralModel => chat::problems(&chat::MISTRAL_MODEL, body),
        Who::DeepSeek => chat::problems(&chat::DEEPSEEK, body),
        Who::Anthropic => anthropic::problems(body),
        Who::Gemini => gemini::problems(body, false),
        Who::Gemini3 => gemini::problems(body, true),
        Who::Responses => responses::problems(body),
    }
}
