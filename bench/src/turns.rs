//! Runs sequential and concurrent turns, and measures their duration, and the cost of a turn by process, in the engine
//! and in the database.
//!
//! Must not be here: the content of the turns (`world`), and comparisons of turns (`cases`).

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

/// Temporal's database write for every workflow task and every activity.
const ENGINE_WRITE: &str = "UpdateWorkflowExecution";

/// Requests to Temporal, by the name of the figure.
const REQUESTS: [(&str, &str); 3] = [
    ("workflow_tasks", "RespondWorkflowTaskCompleted"),
    ("activities", "RespondActivityTaskCompleted"),
    ("heartbeats", "RecordActivityTaskHeartbeat"),
];

/// Maximum delay of Temporal's counters.
const ENGINE_TOLD_WITHIN: Duration = Duration::from_millis(1500);

/// Maximum delay of PostgreSQL's counters: a connection may hold back the counts of its last second until the
/// connection was idle for ten seconds (`PGSTAT_IDLE_INTERVAL`).
const DATABASE_TOLD_WITHIN: Duration = Duration::from_secs(11);

/// Number of turns before a measurement: the turns open connections, prepare statements and page code in.
pub(crate) const WARM_UP: usize = 64;

/// Number of sequential turns of a measurement.
const ALONE: usize = 20;

/// Duration of the measurement without turns.
const IDLE: Duration = Duration::from_secs(10);

/// Number of turns to measure.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Load {
    /// Number of turns in a sample.
    #[arg(long, default_value_t = 320, value_parser = clap::value_parser!(u32).range(8..=1_000_000))]
    pub(crate) turns: u32,
    /// Number of concurrent turns.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) at_once: u32,
}

/// System under measurement: Everturn or a peer.
pub(crate) struct Who {
    /// Prefix of the figures' names.
    pub(crate) prefix: String,
    /// True for a peer, which has no gateway and no store.
    is_peer: bool,
}

impl Who {
    /// Everturn's turns, with the prefix of the figures.
    pub(crate) fn ours(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            is_peer: false,
        }
    }

    /// A peer's turns.
    pub(crate) fn peer(peer: Peer) -> Self {
        Self {
            prefix: format!("{}_", peer.prefix()),
            is_peer: true,
        }
    }
}

/// Measures sequential turns. The time `spoken`, over which the model spreads the answer, is subtracted.
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

/// Measures concurrent turns. Returns the processor time per turn, in milliseconds.
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
    // A peer consists of a worker and Temporal. Everturn's own processes do not count for a peer.
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

/// Measures the processor time without turns, in milliseconds per second.
pub(crate) async fn idle(samples: &mut Samples) {
    let (cpu, begun) = (CpuTimes::now(), Instant::now());
    tokio::time::sleep(IDLE).await;
    let (now, seconds) = (CpuTimes::now(), begun.elapsed().as_secs_f64());
    let used = Role::PRODUCT.map(|role| now.since(&cpu, role));
    samples.add("idle_cpu_ms_a_s", used.iter().sum::<f64>() / seconds);
}

/// Values of the counters of Temporal and of the database.
struct Counts {
    persistence: BTreeMap<String, u64>,
    requests: BTreeMap<String, u64>,
    database: Option<DatabaseCounts>,
}

impl Counts {
    /// Reads the counters; for a peer, only Temporal's.
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

    /// Adds the growth per turn since an earlier reading.
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

/// Runs the given number of turns, up to `at_once` concurrently.
pub(crate) async fn crowd<T>(turn: &impl AsyncFn() -> T, turns: usize, at_once: u32) {
    stream::iter(0..turns)
        .map(|_| turn())
        .buffer_unordered(at_once as usize)
        .for_each(|_| async {})
        .await;
}
