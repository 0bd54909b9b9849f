//! The contract of Everturn: everything two processes, or two versions of one process, must agree on.
//!
//! - [`event`]: the persisted events as readers see them
//! - [`turn`]: input, signals, query and activity payloads of the workflow; checkpoint states
//! - [`activities`]: the activity declarations; implemented in `everturn-activities`, called by `everturn-workflows`
//! - [`ids`]: deterministic ids (invariant 1, pure workflow)
//! - [`ConversationName`]: how a tenant names a conversation, and the id that follows from it
//! - [`Thread`]: whose messages are the context of an agent execution
//! - [`LogId`]: the event log of one conversation, from its creation to its removal
//! - [`SealedStep`]: a step whose streamed text is replaced by saved events
//! - `storable`: what the store can hold of a JSON text
//! - `approval`: what an answer to an approval must be
//! - `turn_end`: whether an event ends its turn
//! - `unknown_agent`: the definition of an agent that nobody here knows
//! - [`words`]: the types of statuses, event types and kinds, and the names of search attributes
//! - `typed`: the words of the generated messages as their types
//! - [`money`]: what calls of models take and cost
//! - [`limits`]: sizes that all parts must agree on
//! - [`is_loopback`], [`is_private`]: which hosts are this machine, and where nobody on the way can read
//!
//! The messages are compiled from `proto/everturn/v1/*.proto`. Nothing here does I/O, reads a clock or knows a
//! database; a change here is a change of the wire and of stored histories, so fields are only ever added.

pub mod activities;
mod approval;
mod conversation_name;
pub mod ids;
mod json;
mod lenient;
pub mod limits;
mod log_id;
mod loopback;
pub mod money;
mod sealed_step;
mod storable;
mod thread;
mod turn_end;
mod typed;
mod unknown_agent;
pub mod words;

pub use conversation_name::ConversationName;
pub use json::Json;
pub use lenient::Lenient;
pub use log_id::LogId;
pub use loopback::{is_loopback, is_private};
pub use sealed_step::SealedStep;
pub use thread::Thread;

/// Events as readers see them. Generated from `event.proto`.
pub mod event {
    #![allow(missing_docs, clippy::pedantic)]
    include!(concat!(env!("OUT_DIR"), "/everturn.event.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/everturn.event.v1.serde.rs"));
}

/// Payloads of the workflow and its activities. Generated from `turn.proto`.
pub mod turn {
    #![allow(missing_docs, clippy::pedantic)]
    include!(concat!(env!("OUT_DIR"), "/everturn.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/everturn.v1.serde.rs"));
}
