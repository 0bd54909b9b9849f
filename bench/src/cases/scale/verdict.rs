//! The figures of the case, and its aims.

use std::time::Duration;

use super::fleet::Usage;
use crate::measure::{Report, Role, Samples, float};

/// The most processor cores of workers, gateway and engine while the models only speak, for any number of turns.
const MAX_CORES: f64 = 1.5;

/// The most memory of a worker, in MB.
const MAX_WORKER_MB: f64 = 1024.0;

/// The most processor cores of a gateway without requests and readers: the reconciler and the watch of the workers.
const MAX_GATEWAY_CORES: f64 = 0.05;

/// The most queries a second of a gateway without requests and readers.
const MAX_GATEWAY_QUERIES: f64 = 20.0;

/// The longest time until every terminated turn calls the model again.
const MAX_BACK: Duration = Duration::from_secs(30);

/// The figures so far, and the missed aims.
pub(super) struct Verdict {
    turns: u32,
    samples: Samples,
    aims: Vec<(bool, String)>,
}

impl Verdict {
    /// Begins the verdict on a number of turns.
    pub(super) fn of(turns: u32, seconds: u32) -> Self {
        let mut samples = Samples::default();
        samples.add("turns", f64::from(turns));
        samples.add("seconds", f64::from(seconds));
        Self {
            turns,
            samples,
            aims: Vec::new(),
        }
    }

    fn aim(&mut self, is_met: bool, fault: String) {
        self.aims.push((is_met, fault));
    }

    /// Adds the number of turns in flight, and the time after which they were in flight.
    pub(super) fn in_flight(&mut self, turns: usize, after: Duration) {
        self.samples.add("in_flight", float(turns as u64));
        self.samples.add("in_flight_after_s", after.as_secs_f64());
        let is_met = turns >= self.turns as usize;
        self.aim(is_met, format!("{turns} turns were in flight at once"));
    }

    /// Adds the use of the processes.
    pub(super) fn streaming(&mut self, usage: &Usage) {
        let mut product = 0.0;
        for (role, cores) in usage.cores {
            self.samples.add(cores_figure(role), cores);
            match role {
                Role::Worker | Role::Engine => product += cores,
                Role::Gateway => {
                    product += cores;
                    let fault = format!("the gateway used {cores:.3} cores");
                    self.aim(cores <= MAX_GATEWAY_CORES, fault);
                }
                Role::Database | Role::Redis | Role::Load => {}
            }
        }
        let queries = usage.gateway_queries;
        self.samples.add("cores", product);
        self.samples.add("heartbeats_per_s", usage.heartbeats);
        self.samples.add("gateway_queries_per_s", queries);
        self.samples.add("worker_mb", megabytes(usage.worker_bytes));
        self.samples
            .add("gateway_mb", megabytes(usage.gateway_bytes));
        let fault = format!("workers, gateway and engine used {product:.2} cores");
        self.aim(product <= MAX_CORES, fault);
        let fault = format!("the gateway made {queries:.1} queries a second");
        self.aim(queries <= MAX_GATEWAY_QUERIES, fault);
    }

    /// Adds whether a living worker was taken for dead while a table was locked.
    pub(super) fn buried(&mut self, is_buried: bool) {
        self.samples.add("buried", f64::from(u8::from(is_buried)));
        self.aim(!is_buried, "a living worker was taken for dead".to_owned());
    }

    /// Adds the time until every terminated turn called the model again.
    pub(super) fn back(&mut self, took: Option<Duration>) {
        if let Some(took) = took {
            self.samples.add("terminated_back_s", took.as_secs_f64());
        }
        let is_met = took.is_some_and(|took| took <= MAX_BACK);
        self.aim(
            is_met,
            format!("the terminated turns were back after {took:?}"),
        );
    }

    /// Adds the number of turns with an answer.
    pub(super) fn ended(&mut self, completed: u64, after: Duration) {
        self.samples.add("completed", float(completed));
        self.samples.add("ended_after_s", after.as_secs_f64());
        let is_met = completed == u64::from(self.turns);
        self.aim(is_met, format!("{completed} turns are complete"));
    }

    /// Adds the number of turns whose call was paid twice.
    pub(super) fn paid_twice(&mut self, turns: usize) {
        self.samples.add("paid_twice", float(turns as u64));
        self.aim(turns == 0, format!("{turns} turns were paid twice"));
    }

    /// Adds the most memory of a worker.
    pub(super) fn memory(&mut self, bytes: u64) {
        let most = megabytes(bytes);
        self.samples.add("worker_peak_mb", most);
        let fault = format!("a worker held {most:.0} MB");
        self.aim(most <= MAX_WORKER_MB, fault);
    }

    /// Makes the report.
    pub(super) fn report(self) -> Report {
        let report = Report::of("scale", self.samples);
        let aims = self.aims.into_iter();
        aims.fold(report, |report, (is_met, fault)| {
            report.expect(is_met, fault)
        })
    }
}

fn cores_figure(role: Role) -> &'static str {
    match role {
        Role::Worker => "worker_cores",
        Role::Gateway => "gateway_cores",
        Role::Engine => "engine_cores",
        Role::Database => "db_cores",
        Role::Redis => "redis_cores",
        Role::Load => "load_cores",
    }
}

fn megabytes(bytes: u64) -> f64 {
    float(bytes) / (1024.0 * 1024.0)
}
