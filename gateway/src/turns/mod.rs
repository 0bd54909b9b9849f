//! The engine: the port that hands it messages and answers, and what implements it.
//!
//! - `port`: what the gateway asks of the engine
//! - `temporal`: the implementation of the port with Temporal

mod port;
mod temporal;

pub use self::{
    port::{
        ApprovalOutcome, CancelOutcome, OnBusy, StartMessages, StartOutcome, TurnError, TurnStarter,
    },
    temporal::{TemporalTurns, TemporalTurnsOptions},
};
