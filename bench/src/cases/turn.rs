//! Case `turn`: the cost of turn W, alone and under load. Turn W is a message, an LLM call that asks for two parallel
//! tools, both tools, and an LLM call that streams 1,000 tokens.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_tests::model::Model;

use crate::{
    measure::{Report, Samples, float},
    peers::{Peer, Running},
    turns::{Load, WARM_UP, Who, alone, crowd, loaded},
    world::{BackendChoice, TurnKind, World, turn_w},
};

/// Number of sequential turns behind the counting proxy.
const COUNTED: usize = 20;

/// Everturn's kinds of turns, with the prefixes of their figures.
const OURS: [(TurnKind, &str); 2] = [(TurnKind::Ordinary, ""), (TurnKind::Inline, "inline_")];

/// Options of the case `turn`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    load: Load,
    /// Number of samples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
    #[command(flatten)]
    choice: BackendChoice,
    /// Skips the peers.
    #[arg(long)]
    alone: bool,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> anyhow::Result<Report> {
    let mut samples = Samples::default();
    counted(options, &mut samples).await;
    timed(options, &mut samples).await?;
    Ok(Report::of("turn", samples))
}

/// Counts round trips and history events, which do not depend on the load.
async fn counted(options: &Options, samples: &mut Samples) {
    let model = Model::start(turn_w).await;
    let (world, round_trips) = World::counting(options.choice, model).await;
    for (kind, _) in OURS {
        for _ in 0..COUNTED {
            world.turn(kind).await;
        }
    }
    // Round trips without a turn, for example the gateway's search for stalled turns.
    let idle = Instant::now();
    round_trips.take();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let a_second = float(round_trips.take()) / idle.elapsed().as_secs_f64();
    for (kind, prefix) in OURS {
        for _ in 0..COUNTED {
            round_trips.take();
            let begun = Instant::now();
            let conversation = world.turn(kind).await;
            let idle = a_second * begun.elapsed().as_secs_f64();
            let asked = float(round_trips.take()) - idle;
            if !options.choice.embedded {
                samples.add(format!("{prefix}round_trips"), asked);
            }
            let events = world.stack.history(&conversation).await.len();
            samples.add(format!("{prefix}history_events"), float(events as u64));
        }
    }
}

/// Measures time, processor time and writes, for turn W and for the peers, on one Temporal server.
async fn timed(options: &Options, samples: &mut Samples) -> anyhow::Result<()> {
    let world = World::start(options.choice, Model::start(turn_w).await).await;
    let (address, model_url) = (world.stack.temporal.address(), world.stack.model.base_url());
    let mut peers = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|_| !options.alone) {
        peers.push((peer, Running::start(peer, &address, &model_url).await?));
    }
    for (kind, _) in OURS {
        crowd(
            &async || world.turn(kind).await,
            WARM_UP,
            options.load.at_once,
        )
        .await;
    }
    for (_, peer) in &peers {
        crowd(
            &async || peer.turn().await.unwrap(),
            WARM_UP,
            options.load.at_once,
        )
        .await;
    }
    let load = options.load;
    // The kinds alternate in rounds, because background load of the machine should affect every kind alike.
    for _ in 0..options.samples {
        for (kind, prefix) in OURS {
            let turn = async || world.turn(kind).await;
            alone(turn, prefix, Duration::ZERO, samples).await;
            loaded(&world, turn, &Who::ours(prefix), load, samples).await;
        }
        for (peer, running) in &peers {
            let who = Who::peer(*peer);
            let turn = async || running.turn().await.unwrap();
            alone(turn, &who.prefix, Duration::ZERO, samples).await;
            loaded(&world, turn, &who, load, samples).await;
            world.stack.model.forget_requests();
        }
    }
    Ok(())
}
