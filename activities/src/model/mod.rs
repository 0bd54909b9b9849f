//! The port to language models. It takes one call, and returns a reply or an error that says what to do about it.
//!
//! A model client knows no storage and no stream; it passes the pieces of a reply on through `emit_delta`. It never
//! retries: the engine does (invariant 5, paid once).

mod error;
mod genai_client;

use std::collections::BTreeMap;

use async_trait::async_trait;
use everturn_proto::{Json, event};
use everturn_store::ContextMessage;
use everturn_stream::Part;

pub use error::ModelError;
pub use genai_client::{GenaiClient, ProviderError};

use crate::tools::ToolSpec;

/// Calls language models.
#[async_trait]
pub trait ModelClient: Send + Sync {
    /// True when there is a provider of this name in the configuration.
    fn has_provider(&self, provider: &str) -> bool;

    /// Makes one call. Pieces of the reply go to `emit_delta` as they arrive; the reply holds all of it.
    /// Dropping the future ends the call.
    async fn complete(
        &self,
        request: ModelRequest,
        emit_delta: &mut EmitDelta<'_>,
    ) -> Result<ModelReply, ModelError>;
}

/// Takes a piece of a reply as it arrives.
pub type EmitDelta<'a> = dyn FnMut(Part, &str) + Send + 'a;

/// One call.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Name of the provider in the configuration.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// System prompt, when there is one.
    pub instructions: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<ContextMessage>,
    /// Tools the model may ask for.
    pub tools: Vec<ToolSpec>,
    /// The most tokens of the reply; without one the provider decides.
    pub max_output_tokens: Option<u32>,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelReply {
    /// The answer, or what was said before asking for tools.
    pub text: String,
    /// What a reasoning model thought, where the provider shows it.
    pub reasoning: String,
    /// Tools it asks for, in its order.
    pub tool_calls: Vec<ModelToolCall>,
    /// True when the provider cut the reply at its limit of tokens.
    pub is_cut: bool,
    /// What it took.
    pub usage: Usage,
}

/// The tokens of a call, as the provider counts them. What a provider does not tell is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read, with the cached ones.
    pub input_tokens: u32,
    /// Tokens written, with those of the reasoning.
    pub output_tokens: u32,
    /// Of the tokens read: those that the provider had in its cache.
    pub cached_tokens: u32,
    /// Of the tokens read: those that the provider wrote to its cache.
    pub cache_write_tokens: u32,
    /// Of the tokens written: those of the reasoning.
    pub reasoning_tokens: u32,
}

impl From<Usage> for event::Usage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
        }
    }
}

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelToolCall {
    /// The model's id, when it gave one. It may have been used before.
    pub call_id: Option<String>,
    /// The tool, which may not exist.
    pub tool_name: String,
    /// Arguments, which may not fit the schema. Cut-off arguments arrive as a JSON string.
    pub arguments: Json,
    /// Opaque parts the provider wants back with the call.
    pub signatures: Vec<String>,
}

/// The address of a provider, and how requests to it are written.
#[derive(Clone)]
pub struct Provider {
    /// The form of its requests and replies.
    pub kind: ProviderKind,
    /// Base URL; `None` for the provider's own.
    pub base_url: Option<String>,
    /// Key sent to it, when it wants one.
    pub api_key: Option<String>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key stays out of logs.
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// The forms of requests and replies that the adapter knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI's chat completions, and every server compatible with it.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

impl ProviderKind {
    /// The word for it in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// The address that is used when the configuration has none.
    fn own_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
        }
    }

    /// True when a request may name an earlier tool call by this id, which perhaps another provider gave.
    fn takes_call_id(self, call_id: &str) -> bool {
        match self {
            Self::OpenAi => true,
            Self::Anthropic => call_id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')),
        }
    }
}

/// Providers by the name agents use.
pub type Providers = BTreeMap<String, Provider>;
