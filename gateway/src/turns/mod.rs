//! Temporal as the engine of turns: the port for messages and answers, and the port's implementation.
//!
//! - `port`: the gateway's calls to the engine
//! - `inputs`: the payloads for the workflow of a conversation
//! - `temporal`: implements the port with Temporal
//! - `hooks`: starts the workflow of the hooks after a turn
//! - `activities`: restarts the activities of dead workers
//! - `lists`: asks which conversations have a running workflow
//! - `runs`: deletes the workflow runs of a removed conversation
//! - `search_attributes`: registers the search attributes of turns, before the first turn

mod activities;
mod hooks;
mod inputs;
mod lists;
mod port;
mod runs;
mod search_attributes;
mod temporal;

pub use self::{
    activities::ActivityRestarter,
    inputs::{hooks_input, ring, start_input, turn_input},
    port::{
        ApprovalOutcome, HooksOutcome, OnBusy, RunningWorkflow, StartMessages, StartOutcome,
        TurnError, TurnStarter,
    },
    search_attributes::{RegisterError, register_search_attributes},
    temporal::{TemporalTurns, TemporalTurnsOptions},
};
