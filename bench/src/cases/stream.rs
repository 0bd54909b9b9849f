//! Case `stream`: turn W with an answer spread over two seconds, and the plain turn in comparison. A reader follows
//! every turn.

use std::time::Duration;

use clap::Args;
use everturn_tests::model::Model;

use crate::{
    measure::{Report, Samples, float},
    turns::{Load, WARM_UP, Who, alone, crowd, idle, loaded},
    world::{BackendChoice, SPREAD_OVER, TurnKind, World, turn_w},
};

/// Number of turns to read the history of.
const COUNTED: usize = 5;

/// The spread and the plain turn, the prefix of the figures, and the duration of the model's answer. The duration is
/// subtracted from `p50_ms`.
const TURNS: [(TurnKind, &str, Duration); 2] = [
    (TurnKind::Spread, "", SPREAD_OVER),
    (TurnKind::Ordinary, "turn_", Duration::ZERO),
];

/// Options of the case `stream`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    load: Load,
    /// Number of samples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
    #[command(flatten)]
    choice: BackendChoice,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let world = World::start(options.choice, Model::start(turn_w).await).await;
    let mut samples = Samples::default();
    for (kind, prefix, _) in TURNS {
        crowd(
            &async || world.turn(kind).await,
            WARM_UP,
            options.load.at_once,
        )
        .await;
        for _ in 0..COUNTED {
            let conversation = world.turn(kind).await;
            let events = world.stack.history(&conversation).await.len();
            samples.add(format!("{prefix}history_events"), float(events as u64));
        }
    }
    idle(&mut samples).await;
    for _ in 0..options.samples {
        let mut costs = Vec::new();
        for (kind, prefix, spoken) in TURNS {
            let turn = async || world.turn(kind).await;
            alone(turn, prefix, spoken, &mut samples).await;
            costs.push(loaded(&world, turn, &Who::ours(prefix), options.load, &mut samples).await);
        }
        samples.add("ratio", costs[0] / costs[1]);
    }
    Report::of("stream", samples)
}
