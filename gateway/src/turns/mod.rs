//! The engine: the port that hands it messages and answers, and what implements it.
//!
//! - `port`: what the gateway asks of the engine
//! - `temporal`: the implementation of the port with Temporal
//! - `activities`: what has activities of dead workers begin again
//! - `runs`: what deletes the runs of a conversation that is removed
//! - `search_attributes`: what the engine must know before a turn is started

mod activities;
mod port;
mod runs;
mod search_attributes;
mod temporal;

pub use self::{
    activities::ActivityRestarter,
    port::{
        ApprovalOutcome, CancelOutcome, OnBusy, StartMessages, StartOutcome, TurnError, TurnStarter,
    },
    search_attributes::{RegisterError, register_search_attributes},
    temporal::{TemporalTurns, TemporalTurnsOptions},
};
