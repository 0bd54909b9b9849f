//! The port to language models. A model client makes one call, and returns a reply or an error. The error's code
//! names the remedy.
//!
//! A model client knows no storage and no stream; it reports its progress to a [`ReplyListener`]. A client never
//! repeats a call, because the engine does (invariant 5, paid once). A response in the background is read again instead
//! of made again.
//!
//! - [`ModelClient`], [`ModelRequest`], [`ModelReply`]: the port
//! - [`Models`]: the clients of every provider
//! - [`Caller`]: the facts about the caller of a turn that a provider gets
//! - `told`: the facts about a caller as fields of a body
//! - `client`, `wire`: the adapters for chat completions, Anthropic's messages and Gemini
//! - `responses`: the adapter for OpenAI's Responses API
//! - `conversation`: a conversation in the form that every adapter writes
//! - `profile`: the differences between providers of one wire
//! - [`SentFiles`]: the files of a request
//! - `targets`, `endpoint`, `failure`, `silence`, `limits`: code that the adapters share
//! - `estimate`: the tokens of a call, when the provider counts none
//! - `output`: the format of an agent's answers
//! - `tool_choice`: the tool that a model must call
//! - `tool_rules`: the rules of a provider for tools; `tool_schema`: the tools of a request in the provider's form
//! - [`refused`]: validators of requests, for tests
//! - `gate`: the queue of calls that wait for a provider's limits; `sync`: its lock and its clock
//!
//! Must not be here: the choice of a model, the context of a call, and its costs (`everturn-activities`).

mod caller;
mod client;
mod conversation;
mod endpoint;
mod error;
mod estimate;
mod failure;
mod files;
mod gate;
mod kind;
mod limits;
mod models;
mod output;
mod parameters;
mod port;
mod profile;
mod provider;
pub mod refused;
mod responses;
mod silence;
mod strict_schema;
mod sync;
mod targets;
mod told;
mod tool_choice;
mod tool_rules;
mod tool_schema;
mod wire;

/// The tokens of a call, by the provider's count or Everturn's estimate.
pub use everturn_proto::event::Usage;

pub use caller::{Caller, CallerFields, CallerText};
pub use client::StreamingClient;
pub use endpoint::ProviderError;
pub use error::ModelError;
pub use estimate::{BytesPerToken, TokenEstimate};
pub use files::{
    BLOB_ID, FileKind, MAX_FILES_OF_RESULT, SentFile, SentFiles, estimated_bytes, named_by, told,
};
pub use gate::{Admission, Arrival, CallLimits, Later, WaitLimits};
pub use models::Models;
pub use output::OutputFormat;
pub use parameters::{Parameters, ReasoningEffort};
pub use port::{
    ModelClient, ModelReply, ModelRequest, ModelToolCall, OfferedTool, ReplyListener, signer,
};
pub use profile::{
    Cache, CallIds, Dialect, MaxTokens, Profile, ProfileField, ProfileSettings, PropertyNames,
    Roles, Thoughts, ToolNames, ToolSchemas,
};
pub use provider::{Provider, ProviderKind, Providers};
pub use tool_choice::ToolChoice;
pub use tool_rules::ToolRules;
pub use tool_schema::{Unfit, unfit};
