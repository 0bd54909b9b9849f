//! Turns, one after the other and many at the same time: how long they take, and what each costs by process, in the engine
//! and in the database.
//!
//! Must not be here: which turns (`world`), and what they are compared with (`cases`).

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use clap::Args;
use futures::{StreamExt, stream};

use crate::{
    measure::{CpuTimes, DatabaseCounts, Latencies, Role, Samples, float},
    peers::Peer,
    world::World,
};

/// The write of the engine that each workflow task and each activity needs.
const ENGINE_WRITE: &str = "UpdateWorkflowExecution";

/// Requests to the engine, as figures.
const REQUESTS: [(&str, &str); 3] = [
    ("workflow_tasks", "RespondWorkflowTaskCompleted"),
    ("activities", "RespondActivityTaskCompleted"),
    ("heartbeats", "RecordActivityTaskHeartbeat"),
];

/// The engine brings its counters up to date about once a second.
const ENGINE_TOLD_WITHIN: Duration = Duration::from_millis(1500);

/// A connection of PostgreSQL may keep what it did in its last second to itself until it was idle for ten seconds
/// (`PGSTAT_IDLE_INTERVAL`).
const DATABASE_TOLD_WITHIN: Duration = Duration::from_secs(11);

/// Turns before anything is measured: connections are made, statements prepared, code paged in.
pub(crate) const WARM_UP: usize = 64;

/// Number of turns that are measured one after the other.
const ALONE: usize = 20;

/// How long nothing happens while the cost of that is measured.
const IDLE: Duration = Duration::from_secs(10);

/// How many turns are measured.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Load {
    /// Number of turns of each sample.
    #[arg(long, default_value_t = 320, value_parser = clap::value_parser!(u32).range(8..=1_000_000))]
    pub(crate) turns: u32,
    /// Number of turns at the same time.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) at_once: u32,
}

/// Whose turns are measured.
pub(crate) struct Who {
    /// What the names of its figures begin with.
    pub(crate) prefix: String,
    /// A peer has no gateway and no store.
    is_peer: bool,
}

impl Who {
    /// Our own turns, with what the names of their figures begin with.
    pub(crate) fn ours(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            is_peer: false,
        }
    }

    /// The turns of a peer.
    pub(crate) fn peer(peer: Peer) -> Self {
        Self {
            prefix: format!("{}_", peer.prefix()),
            is_peer: true,
        }
    }
}

/// One turn after the other. `spoken` is the time over which the model spreads its answer: it does not count.
pub(crate) async fn alone<T>(
    turn: impl AsyncFn() -> T,
    prefix: &str,
    spoken: Duration,
    samples: &mut Samples,
) {
    let mut latencies = Latencies::default();
    for _ in 0..ALONE {
        let begun = Instant::now();
        turn().await;
        latencies.add(begun.elapsed().saturating_sub(spoken));
    }
    latencies.tell(prefix, samples);
}

/// Many turns at the same time. Returns the processor time of each turn, in milliseconds.
pub(crate) async fn loaded<T>(
    world: &World,
    turn: impl AsyncFn() -> T,
    who: &Who,
    load: Load,
    samples: &mut Samples,
) -> f64 {
    let (prefix, is_peer) = (&who.prefix, who.is_peer);
    let before = Counts::of(world, is_peer).await;
    let cpu = CpuTimes::now();
    let begun = Instant::now();
    crowd(&turn, load.turns as usize, load.at_once).await;
    let took = begun.elapsed().as_secs_f64();
    let now = CpuTimes::now();
    let turns = f64::from(load.turns);
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
    total
}

/// Measures what the processes use while nothing happens, in milliseconds of processor time a second.
pub(crate) async fn idle(samples: &mut Samples) {
    let (cpu, begun) = (CpuTimes::now(), Instant::now());
    tokio::time::sleep(IDLE).await;
    let (now, seconds) = (CpuTimes::now(), begun.elapsed().as_secs_f64());
    let used = Role::PRODUCT.map(|role| now.since(&cpu, role));
    samples.add("idle_cpu_ms_a_s", used.iter().sum::<f64>() / seconds);
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
        let temporal = world.stack.temporal;
        let database = if is_peer || world.stack.backends().postgres().is_none() {
            tokio::time::sleep(ENGINE_TOLD_WITHIN).await;
            None
        } else {
            tokio::time::sleep(DATABASE_TOLD_WITHIN).await;
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
pub(crate) async fn crowd<T>(turn: &impl AsyncFn() -> T, turns: usize, at_once: u32) {
    stream::iter(0..turns)
        .map(|_| turn())
        .buffer_unordered(at_once as usize)
        .for_each(|_| async {})
        .await;
}
