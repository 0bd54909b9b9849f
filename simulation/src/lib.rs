//! A simulation of Everturn: the product's workflow, store and gateway under a model of Temporal, one step at a time, in
//! an order that a seed chooses.
//!
//! - `seed`: the choices of a seed
//! - `shrink`: a shorter schedule with the same violation
//! - `schedule`: actors that wait at their steps
//! - `engine`: the model of Temporal
//! - `worker`: a worker process, with the workflow's own code
//! - `activities`: the activities, reduced to their calls
//! - `gateway`: the product's router, with the model as its engine
//! - `payloads`: the payloads of the engine
//! - `leases`: the leases of workers in a store that may be slow or away
//! - `facts`: what has really happened, for the oracles
//! - `people`: what people and clients were asked and told, for the oracles
//! - `promises`: the promises to a client, compared with the log of events
//! - `oracles`: checks of the store beside a step of a worker
//! - `simulation`: the actors together, and the checks
//!
//! Must not be here: time, processes, and the network. Tests with real processes show those (`tests/tests/e2e`).

mod activities;
pub mod engine;
pub mod facts;
mod gateway;
mod leases;
mod oracles;
mod payloads;
mod people;
mod promises;
mod schedule;
mod seed;
mod shrink;
mod simulation;
mod worker;
mod world;

use std::panic::catch_unwind;

use tokio::{runtime::Builder, task::LocalSet};

use self::seed::Choices;
pub use self::{
    shrink::shrink,
    simulation::{Outcome, Promise},
};

/// Runs the simulation of a seed on this thread. A panic of the product's code is a violation.
///
/// # Errors
///
/// An error when the store cannot be opened.
pub fn run(seed: u64) -> anyhow::Result<Outcome> {
    on_this_thread(Choices::new(seed), None)
}

/// Runs the simulation of a seed with one more promise, on this thread.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(seed: u64, promise: Promise) -> anyhow::Result<Outcome> {
    on_this_thread(Choices::new(seed), Some(promise))
}

/// Repeats the choices of an outcome on this thread. The first choice follows the list.
///
/// # Errors
///
/// As [`run`].
pub fn run_choices(choices: Vec<u32>, promise: Option<Promise>) -> anyhow::Result<Outcome> {
    on_this_thread(Choices::repeat(choices), promise)
}

fn on_this_thread(choices: Choices, promise: Option<Promise>) -> anyhow::Result<Outcome> {
    let ended = catch_unwind(|| {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        LocalSet::new().block_on(&runtime, simulation::simulate(choices, promise))
    });
    ended.unwrap_or_else(|_panic| {
        Ok(Outcome {
            violations: vec!["the code panics, as stderr says".to_owned()],
            ..Outcome::default()
        })
    })
}
