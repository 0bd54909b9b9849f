//! The contract of Everturn: the types, ids and limits on which two processes, or two versions of a process, must
//! agree.
//!
//! - [`event`]: the persisted events as readers see them
//! - [`turn`]: input, signals, query and activity payloads of the workflow; checkpoint states
//! - [`activities`]: the activity declarations; implemented in `everturn-activities`, called by `everturn-workflows`
//! - [`ids`]: deterministic ids (invariant 1, pure workflow)
//! - [`ConversationName`]: a tenant's name for a conversation, and the id made from the tenant and the name
//! - [`Thread`]: the sequence of messages in the context of an agent execution
//! - [`payload`]: payloads of Temporal that the codec of a worker has opened or refused
//! - [`LogId`]: the id of a conversation's event log, valid from the conversation's creation to its removal
//! - [`SealedStep`]: a step with its whole text in saved events, which replace the streamed text
//! - `storable`: the parts of a JSON text that the store does not take, and their replacements
//! - `approval`: the checks of an answer to an approval
//! - `called_model`: the model of a call among the models of an agent, and the longest answer
//! - [`TitleTemplate`]: the template of a tool call's title for people
//! - [`RemoteCall`]: the argument of a remote tool's activity, with the headers beside it
//! - [`ToolResultEvents`]: the events that a tool has put into its result
//! - `turn_end`: the rule that tells the events that end a turn
//! - `unknown_agent`: the definition of an agent with a known name and nothing else known
//! - [`words`]: the types of statuses, event types and kinds, and the names of search attributes
//! - [`Responsible`]: the owner of an agent, and the owner's address
//! - `typed`: the words of the generated messages as their types
//! - [`money`]: the tokens and the cost of model calls
//! - [`limits`]: sizes shared by the parts of the runtime
//! - [`is_loopback`], [`is_private`]: the hosts of the local machine, and the URLs that nobody on the network can read
//!
//! The messages are compiled from `proto/everturn/v1/*.proto`. The crate does no I/O, reads no clock and knows no
//! database. A change in the crate changes the wire and the stored histories, so fields are only ever added.

pub mod activities;
mod approval;
mod called_model;
mod conversation_name;
pub mod ids;
mod json;
mod lenient;
pub mod limits;
mod log_id;
mod loopback;
pub mod money;
pub mod payload;
mod remote_call;
mod responsible;
mod sealed_step;
mod storable;
mod thread;
mod title;
mod tool_events;
mod turn_end;
mod typed;
mod unknown_agent;
pub mod words;

pub use conversation_name::ConversationName;
pub use json::Json;
pub use lenient::Lenient;
pub use log_id::LogId;
pub use loopback::{is_loopback, is_private};
pub use remote_call::RemoteCall;
pub use responsible::Responsible;
pub use sealed_step::SealedStep;
pub use thread::Thread;
pub use title::TitleTemplate;
pub use tool_events::{FIELD as TOOL_EVENTS_FIELD, ToolResultEvents};

/// The events as readers see them. Generated from `event.proto`.
pub mod event {
    #![allow(missing_docs, clippy::pedantic)]
    include!(concat!(env!("OUT_DIR"), "/everturn.event.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/everturn.event.v1.serde.rs"));
}

/// The payloads of the workflow and of its activities. Generated from `turn.proto`.
pub mod turn {
    #![allow(missing_docs, clippy::pedantic)]
    include!(concat!(env!("OUT_DIR"), "/everturn.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/everturn.v1.serde.rs"));
}
