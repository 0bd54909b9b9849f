//! The port to language models: a call, its reply, and the listener that hears the reply.

use std::time::Duration;

use async_trait::async_trait;
use everturn_proto::{
    Json,
    event::Usage,
    turn::{Citation, Prices},
};
use everturn_store::ContextMessage;
use everturn_stream::Part;
use serde_json::Value;

use crate::{
    caller::Caller,
    error::ModelError,
    estimate::TokenEstimate,
    files::SentFiles,
    gate::{Admission, Arrival, Later},
    output::OutputFormat,
    parameters::Parameters,
    profile::{Cache, Profile},
    provider::ProviderKind,
    tool_choice::ToolChoice,
    tool_rules::ToolRules,
};

/// Calls language models.
#[async_trait]
pub trait ModelClient: Send + Sync {
    /// True when the configuration has a provider of this name.
    fn has_provider(&self, provider: &str) -> bool;

    /// Returns the provider's rules for the tools of a request to a model.
    fn tool_rules(&self, provider: &str, model: &str) -> ToolRules;

    /// Waits until the provider's limits let one more call begin. The admission permits one call. Dropping the future
    /// ends the wait.
    ///
    /// # Errors
    ///
    /// [`Later`] when the call must give its slot back and come again: after the longest wait, or because enough older
    /// calls wait already.
    async fn admit(&self, provider: &str, arrival: &Arrival) -> Result<Admission, Later>;

    /// Makes one call. The listener gets the reply piece by piece; the result is the whole reply. Dropping the future
    /// ends the call, but not a response in the background.
    async fn complete(
        &self,
        request: ModelRequest,
        listener: &mut dyn ReplyListener,
    ) -> Result<ModelReply, ModelError>;

    /// Ends a response in the background, to stop the costs. A response that has ended, or that the provider
    /// does not know, is no error. Only clients with responses in the background implement this function.
    async fn cancel(&self, _provider: &str, _response_id: &str) -> Result<(), ModelError> {
        Ok(())
    }
}

/// Receives a reply while the provider makes it. A function that takes pieces of text is a listener, too.
#[async_trait]
pub trait ReplyListener: Send + Sync {
    /// Reports a response in the background, with the provider's id. The client calls it before the
    /// first piece of the reply, and reads on only after it returns. An error ends the call with this error.
    async fn accepted(&mut self, response_id: &str) -> Result<(), ModelError>;

    /// Reports that an earlier attempt's response gives no reply ([`ModelRequest::attached`]). The client repeats the
    /// call after this function returns. An error ends the call with this error, before the repetition.
    async fn made_again(&mut self) -> Result<(), ModelError> {
        Ok(())
    }

    /// Reports a piece of a text.
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
    /// The prices of the model, for metrics; `None` without configured prices.
    pub prices: Option<Prices>,
    /// The caller of the turn, for metrics too. A provider gets the facts that its table names.
    pub caller: Caller,
    /// The estimated tokens of the call, for providers that count no tokens.
    pub estimate: TokenEstimate,
    /// The key under which the provider caches the beginnings of the conversation's requests, for providers that take a
    /// key. Empty: without a key.
    pub cache_key: String,
    /// System prompt, if any.
    pub instructions: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<ContextMessage>,
    /// The files that the messages and the results of tools name.
    pub files: SentFiles,
    /// Tools the model may ask for.
    pub tools: Vec<OfferedTool>,
    /// How long the provider may send no byte, before the answer and during it; `None`: without a limit. A comment of
    /// the stream and a piece of reasoning are bytes, too.
    pub silence: Option<Duration>,
    /// The most tokens of the reply; without a limit the provider decides.
    pub max_output_tokens: Option<u32>,
    /// The settings for the model's writing.
    pub parameters: Parameters,
    /// The format of an answer; `None`: any text.
    pub output: Option<OutputFormat>,
    /// The demand on the reply's tool calls; `None`: the model decides.
    pub tool_choice: Option<ToolChoice>,
    /// True when Everturn needs a plain text, like a summary: no schema applies, and the model may call no tool. The
    /// request still lists the tools, so that its beginning matches the earlier requests in the provider's cache.
    pub wants_text: bool,
    /// The name of the call. Every attempt has an identical name, so that a provider can recognise a repeated call.
    /// Empty: the call has no name, and its response is not made in the background, because no later attempt could read
    /// it.
    pub idempotency_key: String,
    /// The response in the background of an earlier attempt, if any: the client reads the reply from it. If the
    /// response is gone or has failed, the client makes the call again.
    pub attached: Option<String>,
}

impl ModelRequest {
    /// Returns the key of the conversation in the provider's cache, for a provider that takes a key.
    pub(crate) fn cache_key(&self, profile: &Profile) -> Option<Value> {
        let has_key = profile.cache == Cache::Key && !self.cache_key.is_empty();
        has_key.then(|| self.cache_key.as_str().into())
    }

    /// Returns the format of the reply, when a provider of this kind takes the format in its own field.
    pub(crate) fn schema_field(&self, kind: ProviderKind) -> Option<&OutputFormat> {
        let output = self.output.as_ref().filter(|_| !self.wants_text);
        output.filter(|output| output.has_field(kind, !self.tools.is_empty()))
    }

    /// Returns the demand on the reply's tool calls. A request without tools has no demand, because providers refuse the
    /// field. A tool that the request does not offer cannot be demanded.
    pub(crate) fn demand(&self) -> Option<&ToolChoice> {
        let is_offered = |name: &str| self.tools.iter().any(|tool| tool.name == name);
        if self.tools.is_empty() {
            return None;
        }
        if self.wants_text {
            return Some(&ToolChoice::None);
        }
        match &self.tool_choice {
            Some(ToolChoice::Tool(name)) if !is_offered(name) => None,
            choice => choice.as_ref(),
        }
    }

    /// Returns whether the model may make several tool calls in a reply; `None`: the provider decides. A request without
    /// tools has no such field.
    pub(crate) fn parallel_calls(&self) -> Option<bool> {
        let parallel = self.parameters.parallel_tool_calls;
        parallel.filter(|_| !self.tools.is_empty())
    }
}

/// The definition of a tool, for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The tool's name.
    pub name: String,
    /// The purpose of the tool.
    pub description: String,
    /// The JSON schema of the arguments.
    pub parameters: Value,
}

/// The model's reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelReply {
    /// The answer, or the text before the tool calls.
    pub text: String,
    /// The thinking of a reasoning model, if the provider shows it.
    pub reasoning: String,
    /// The requested tool calls, in the model's order.
    pub tool_calls: Vec<ModelToolCall>,
    /// True when the provider cut the reply at the limit of tokens.
    pub is_cut: bool,
    /// The tokens of the call.
    pub usage: Usage,
    /// The sources that the text cites, at most [`MAX_CITATIONS`](everturn_proto::limits::MAX_CITATIONS).
    pub citations: Vec<Citation>,
}

impl ModelReply {
    /// Returns the length of everything that the model wrote.
    pub(crate) fn bytes(&self) -> usize {
        let calls = self.tool_calls.iter();
        let calls = calls.map(|call| call.tool_name.len() + call.arguments.as_str().len());
        self.text.len() + self.reasoning.len() + calls.sum::<usize>()
    }
}

/// Returns the provider and model of a call, as in `signed_by` of tool calls with signatures.
pub fn signer(provider: &str, model: &str) -> String {
    format!("{provider}/{model}")
}

/// A tool call in the model's words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelToolCall {
    /// The model's id of the call, if any. The model may have used the id before.
    pub call_id: Option<String>,
    /// The tool's name. The tool may not exist.
    pub tool_name: String,
    /// Arguments, which may not fit the schema. Cut-off arguments arrive as a JSON string.
    pub arguments: Json,
    /// Opaque parts that the provider needs back with the call.
    pub signatures: Vec<String>,
}
