//! Turn W: one message, a call of the model that asks for two tools at once, both tools, and a call that streams 1,000
//! tokens. What it costs, alone and with many others.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use clap::Args;
use everturn_tests::model::Model;
use futures::{StreamExt, stream};

use crate::{
    measure::{CpuTimes, DatabaseCounts, Latencies, Report, Role, Samples},
    peers::{Peer, Running},
    world::{Place, Tools, World, turn_w},
};

/// The write of the engine that each workflow task and each activity needs.
const ENGINE_WRITE: &str = "UpdateWorkflowExecution";

/// Requests to the engine, as figures.
const REQUESTS: [(&str, &str); 3] = [
    ("workflow_tasks", "RespondWorkflowTaskCompleted"),
    ("activities", "RespondActivityTaskCompleted"),
    ("heartbeats", "RecordActivityTaskHeartbeat"),
];

/// The engine and PostgreSQL bring their counters up to date about once a second.
const TOLD_WITHIN: Duration = Duration::from_millis(1500);

/// Turns before anything is measured: connections are made, statements prepared, code paged in.
const WARM_UP: usize = 64;

/// Turns with a proxy that counts, one after the other.
const COUNTED: usize = 20;

/// Our own turns.
const OURS: [Tools; 2] = [Tools::Ordinary, Tools::Inline];

/// What the names of the figures of our own turns begin with.
fn prefix(tools: Tools) -> &'static str {
    match tools {
        Tools::Ordinary => "",
        Tools::Inline => "inline_",
    }
}

/// Whose turns are measured.
struct Who {
    /// What the names of its figures begin with.
    prefix: String,
    /// A peer has no gateway and no store.
    is_peer: bool,
}

impl Who {
    fn ours(tools: Tools) -> Self {
        Self {
            prefix: prefix(tools).to_owned(),
            is_peer: false,
        }
    }

    fn peer(peer: Peer) -> Self {
        Self {
            prefix: format!("{}_", peer.prefix()),
            is_peer: true,
        }
    }
}

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of turns of each sample.
    #[arg(long, default_value_t = 320, value_parser = clap::value_parser!(u32).range(8..=1_000_000))]
    turns: u32,
    /// Number of turns at the same time.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    at_once: u32,
    /// Number of samples.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
    #[command(flatten)]
    place: Place,
    /// Without the peers.
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

/// Counts what does not depend on the load: round trips and history events.
async fn counted(options: &Options, samples: &mut Samples) {
    let model = Model::start(turn_w).await;
    let (world, round_trips) = World::counting(options.place, model).await;
    for tools in OURS {
        for _ in 0..COUNTED {
            world.turn(tools).await;
        }
    }
    // What the processes ask without a turn, as a gateway that looks for stalled turns does.
    let idle = Instant::now();
    round_trips.take();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let a_second = float(round_trips.take()) / idle.elapsed().as_secs_f64();
    for tools in OURS {
        for _ in 0..COUNTED {
            round_trips.take();
            let begun = Instant::now();
            let conversation = world.turn(tools).await;
            let idle = a_second * begun.elapsed().as_secs_f64();
            let asked = float(round_trips.take()) - idle;
            let prefix = prefix(tools);
            if !options.place.embedded {
                samples.add(format!("{prefix}round_trips"), asked);
            }
            let events = world.stack.history(&conversation).await.len();
            samples.add(format!("{prefix}history_events"), float(events as u64));
        }
    }
}

/// Measures time, processor time and writes, and the same of the peers on the same engine.
async fn timed(options: &Options, samples: &mut Samples) -> anyhow::Result<()> {
    let world = World::start(options.place, Model::start(turn_w).await).await;
    let (address, model_url) = (world.stack.temporal.address(), world.stack.model.base_url());
    let mut peers = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|_| !options.alone) {
        peers.push((peer, Running::start(peer, &address, &model_url).await?));
    }
    for tools in OURS {
        crowd(&async || world.turn(tools).await, WARM_UP, options.at_once).await;
    }
    for (_, peer) in &peers {
        crowd(
            &async || peer.turn().await.unwrap(),
            WARM_UP,
            options.at_once,
        )
        .await;
    }
    // Round by round, so that what the machine does beside it meets all of them.
    for _ in 0..options.samples {
        for tools in OURS {
            let turn = async || world.turn(tools).await;
            alone(turn, prefix(tools), samples).await;
            loaded(&world, turn, &Who::ours(tools), options, samples).await;
        }
        for (peer, running) in &peers {
            let who = Who::peer(*peer);
            let turn = async || running.turn().await.unwrap();
            alone(turn, &who.prefix, samples).await;
            loaded(&world, turn, &who, options, samples).await;
            world.stack.model.forget_requests();
        }
    }
    Ok(())
}

/// One turn after the other.
async fn alone<T>(turn: impl AsyncFn() -> T, prefix: &str, samples: &mut Samples) {
    let mut latencies = Latencies::default();
    for _ in 0..COUNTED {
        let begun = Instant::now();
        turn().await;
        latencies.add(begun.elapsed());
    }
    latencies.tell(prefix, samples);
}

/// Many turns at the same time.
async fn loaded<T>(
    world: &World,
    turn: impl AsyncFn() -> T,
    who: &Who,
    options: &Options,
    samples: &mut Samples,
) {
    let (prefix, is_peer) = (&who.prefix, who.is_peer);
    let before = Counts::of(world, is_peer).await;
    let cpu = CpuTimes::now();
    let begun = Instant::now();
    crowd(&turn, options.turns as usize, options.at_once).await;
    let took = begun.elapsed().as_secs_f64();
    let now = CpuTimes::now();
    let turns = f64::from(options.turns);
    let mut add = |figure: &str, value: f64| samples.add(format!("{prefix}{figure}"), value);
    add("turns_per_s", turns / took);
    let mut total = 0.0;
    // A peer has a worker and the engine. What Everturn's own processes do meanwhile is not the peer's.
    let roles = if is_peer {
        &Role::PEER[..]
    } else {
        &Role::PRODUCT
    };
    for role in roles {
        let a_turn = now.since(&cpu, *role) / turns;
        total += a_turn;
        add(cpu_figure(*role), a_turn);
    }
    add("total_cpu_ms", total);
    add(cpu_figure(Role::Load), now.since(&cpu, Role::Load) / turns);
    Counts::of(world, is_peer).await.tell(&before, turns, add);
}

/// What the engine and the database have been asked so far.
struct Counts {
    persistence: BTreeMap<String, u64>,
    requests: BTreeMap<String, u64>,
    database: Option<DatabaseCounts>,
}

impl Counts {
    /// Reads them; of a peer, only those of the engine.
    async fn of(world: &World, is_peer: bool) -> Self {
        tokio::time::sleep(TOLD_WITHIN).await;
        let temporal = world.stack.temporal;
        let database = if is_peer {
            None
        } else {
            DatabaseCounts::of(world.stack.backends()).await
        };
        Self {
            persistence: temporal.persistence().await,
            requests: temporal.requests().await,
            database,
        }
    }

    /// Tells what was added for each turn since an earlier time.
    fn tell(&self, before: &Self, turns: f64, mut add: impl FnMut(&str, f64)) {
        let added = |name: &str, now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>| {
            let of = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or_default();
            float(of(now) - of(before)) / turns
        };
        let writes = added(ENGINE_WRITE, &self.persistence, &before.persistence);
        add("engine_writes", writes);
        for (figure, request) in REQUESTS {
            add(figure, added(request, &self.requests, &before.requests));
        }
        if let Some((now, before)) = self.database.zip(before.database) {
            let added = now.since(before);
            add("commits", float(added.commits) / turns);
            add("rows", float(added.rows) / turns);
            add("wal_bytes", float(added.wal_bytes) / turns);
        }
    }
}

fn cpu_figure(role: Role) -> &'static str {
    match role {
        Role::Worker => "worker_cpu_ms",
        Role::Gateway => "gateway_cpu_ms",
        Role::Engine => "engine_cpu_ms",
        Role::Database => "db_cpu_ms",
        Role::Redis => "redis_cpu_ms",
        Role::Load => "load_cpu_ms",
    }
}

/// Runs so many turns, some of them at the same time.
async fn crowd<T>(turn: &impl AsyncFn() -> T, turns: usize, at_once: u32) {
    stream::iter(0..turns)
        .map(|_| turn())
        .buffer_unordered(at_once as usize)
        .for_each(|_| async {})
        .await;
}

/// A count as a figure.
#[allow(clippy::cast_precision_loss)]
fn float(count: u64) -> f64 {
    count as f64
}
