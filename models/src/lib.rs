//! The port to language models. A model client makes one call, and returns a reply or an error. The error's code
//! names the remedy.
//!
//! A model client knows no storage and no stream; it reports its progress to a [`ReplyListener`]. A client never
//! repeats a call, because the engine does (invariant 5, paid once). A response in the background is read again instead
//! of made again.
//!
//! - [`ModelClient`], [`ModelRequest`], [`ModelReply`]: the port
//! - [`Models`]: the clients of every provider
//! - `genai_client`, `responses`: the adapters
//! - [`SentFiles`]: the files of a request
//! - `targets`, `endpoint`, `failure`, `said`, `limits`: code that both adapters share
//! - `output`: the format of an agent's answers
//! - `gate`: the queue of calls that wait for a provider's limits
//!
//! Must not be here: the choice of a model, the context of a call, and its costs (`everturn-activities`).

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
mod port;
mod provider;
mod responses;
mod said;
mod targets;

/// The tokens of a call, by the provider's count. A number that the provider does not report is 0.
pub use everturn_proto::event::Usage;

pub use endpoint::ProviderError;
pub use error::ModelError;
pub use files::{
    BLOB_ID, FileKind, MAX_FILES_OF_RESULT, SentFile, SentFiles, estimated_bytes, named_by, told,
};
pub use gate::{Admission, CallLimits};
pub use genai_client::GenaiClient;
pub use models::Models;
pub use output::OutputFormat;
pub use parameters::{Parameters, ReasoningEffort};
pub use port::{
    ModelClient, ModelReply, ModelRequest, ModelToolCall, OfferedTool, ReplyListener, signer,
};
pub use provider::{Provider, ProviderKind, Providers};
