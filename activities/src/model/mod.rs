//! The port to language models. It takes one call, and returns a reply or an error that says what to do about it.
//!
//! A model client knows no storage and no stream; it tells a [`ReplyListener`] what happens. It makes no call twice: the
//! engine does (invariant 5, paid once). A response that the provider makes in the background is read again, and not
//! made again.
//!
//! - [`Models`]: the clients of all providers
//! - `genai_client`, `responses`: the adapters
//! - [`SentFiles`]: the files of a request
//! - `targets`, `endpoint`, `failure`, `said`, `limits`: what they share
//! - `output`: what an agent's answers have to be
//! - `gate`: calls that wait for the limits of a provider

mod endpoint;
mod error;
mod failure;
mod files;
mod gate;
mod genai_client;
mod limits;
mod models;
mod output;
mod parameters;
mod provider;
mod responses;
mod said;
mod targets;

use async_trait::async_trait;
use everturn_proto::Json;
use everturn_store::ContextMessage;
use everturn_stream::Part;

/// The tokens of a call, as the provider counts them. What a provider does not tell is 0.
pub use everturn_proto::event::Usage;

pub use endpoint::ProviderError;
pub use error::ModelError;
pub use files::{SentFile, SentFiles, told};
pub use gate::{Admission, CallLimits};
pub use genai_client::GenaiClient;
pub use models::Models;
pub use output::OutputFormat;
pub use parameters::{Parameters, ReasoningEffort};
pub use provider::{Provider, ProviderKind, Providers};

use crate::tools::ToolSpec;

/// Calls language models.
#[async_trait]
pub trait ModelClient: Send + Sync {
    /// True when there is a provider of this name in the configuration.
    fn has_provider(&self, provider: &str) -> bool;

    /// Waits until the limits of the provider let one more call begin, which takes so many tokens, about, read and written. Who
    /// holds the admission may make one call. Dropping the future gives the place up.
    async fn admit(&self, provider: &str, tokens: u64) -> Admission;

    /// Makes one call. The listener hears the reply as it arrives; what is returned holds all of it. Dropping the future
    /// ends the call, but not a response that the provider makes in the background.
    async fn complete(
        &self,
        request: ModelRequest,
        listener: &mut dyn ReplyListener,
    ) -> Result<ModelReply, ModelError>;

    /// Ends a response that a provider makes in the background, so that it costs no more. One that has ended, or that
    /// is not known, is no error. Only clients whose listeners hear of such responses have something to do.
    async fn cancel(&self, _provider: &str, _response_id: &str) -> Result<(), ModelError> {
        Ok(())
    }
}

/// Hears a reply while it is made. A function that takes its pieces is one, too.
#[async_trait]
pub trait ReplyListener: Send + Sync {
    /// The provider makes the response of this id in the background, whoever reads it. It is called before any piece
    /// of the reply, and nothing is read until it returns. After an error the call ends with it.
    async fn accepted(&mut self, response_id: &str) -> Result<(), ModelError>;

    /// The response of an earlier attempt comes to nothing ([`ModelRequest::attached`]). The call is made again when this
    /// returns.
    async fn made_again(&mut self) {}

    /// A piece of a text.
    fn delta(&mut self, part: Part, piece: &str);
}

#[async_trait]
impl<F: FnMut(Part, &str) + Send + Sync> ReplyListener for F {
    async fn accepted(&mut self, _response_id: &str) -> Result<(), ModelError> {
        Ok(())
    }

    fn delta(&mut self, part: Part, piece: &str) {
        self(part, piece);
    }
}

/// One call.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// Name of the provider in the configuration.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// System prompt, when there is one.
    pub instructions: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<ContextMessage>,
    /// The files that the messages and the results of tools name.
    pub files: SentFiles,
    /// Tools the model may ask for.
    pub tools: Vec<ToolSpec>,
    /// The most tokens of the reply; without one the provider decides.
    pub max_output_tokens: Option<u32>,
    /// How the model is to write the reply.
    pub parameters: Parameters,
    /// What an answer has to be; `None`: any text.
    pub output: Option<OutputFormat>,
    /// The reply has to be a text that Everturn asks for, like a summary: no schema binds it, and no tool may be called. The
    /// tools are in the request all the same, so that it begins as those before, which the provider has in its cache.
    pub wants_text: bool,
    /// Names the call. It is the same in each attempt, so that a provider may see that it has the call already. Empty:
    /// the call has no name, and its response is not made in the background, because no attempt would go on with it.
    pub idempotency_key: String,
    /// The response that an earlier attempt has had the provider make in the background, when there is one: the reply is
    /// read from it. When it is gone or has failed, the call is made again.
    pub attached: Option<String>,
}

impl ModelRequest {
    /// What the reply has to be, when a provider of this kind is told so in a field of its own.
    fn schema_field(&self, kind: ProviderKind) -> Option<&OutputFormat> {
        let output = self.output.as_ref().filter(|_| !self.wants_text);
        output.filter(|output| output.has_field(kind, !self.tools.is_empty()))
    }
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

/// Who answers a call: `signed_by` of the tool calls that have signatures.
pub fn signer(provider: &str, model: &str) -> String {
    format!("{provider}/{model}")
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
