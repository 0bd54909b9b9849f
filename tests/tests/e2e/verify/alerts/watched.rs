//! Processes as Prometheus sees them: their metrics are read again and again, and the alerts of the chart are evaluated on
//! what they have shown.
//!
//! Nobody waits for minutes: each reading counts as one minute later than the one before. Temporal answers polls without a
//! task in a fraction of a second instead of a minute, so idle workers count about as many in that time as in a real minute.

use std::time::{Duration, Instant};

use everturn_tests::{
    model::Model,
    stack::{Process, Stack},
    temporal::Temporal,
    wait,
};
use futures::future::join_all;
use serde_json::json;

use super::firing::{Firing, firing};
use crate::embedded::health::Probes;

/// The time after which Temporal answers a poll without a task.
const POLL: &str = "matching.longPollExpirationInterval=\"200ms\"";

/// Number of minutes of a system that is well before each condition.
const WELL: usize = 4;

/// It looks for half a second, which a save may take on a machine that does much else.
const OF_A_BUSY_MACHINE: &str = "EverturnSavesSlow";

/// A gateway and some workers, with the metrics that they have shown.
pub(super) struct Watched {
    pub(super) stack: Stack,
    /// The `max_streams` of the gateway, which the chart puts into the rules.
    pub(super) max_streams: usize,
    /// Whether somebody answers the polls of the workers.
    pub(super) is_polled: bool,
    pods: Vec<Pod>,
    minute: usize,
    /// A line of JSON for each reading of a process.
    scrapes: Vec<String>,
    polls: f64,
    may_also_fire: Vec<&'static str>,
}

/// A place for a process, which keeps its name when the process in it is replaced.
struct Pod {
    name: String,
    role: &'static str,
    probes: Probes,
    process: Option<Process>,
}

impl Drop for Watched {
    /// Ends the Temporal server, which else would keep the machine busy while other tests run.
    fn drop(&mut self) {
        self.stack.temporal.kill();
    }
}

impl Watched {
    /// Starts a gateway and so many workers on a stack, with a Temporal server of their own.
    pub(super) async fn start(stack: Stack, workers: usize) -> Self {
        let mut stack = stack.with_gateways(1);
        let polls = vec![POLL.to_owned()];
        stack.temporal = Temporal::dev_with(polls).await.lasting();
        let names = (1..=workers).map(|number| (format!("worker-{number}"), "worker"));
        let names = [("gateway-1".to_owned(), "gateway")]
            .into_iter()
            .chain(names);
        let pods = names.map(|(name, role)| Pod {
            name,
            role,
            probes: Probes::free(),
            process: None,
        });
        let mut watched = Self {
            stack,
            max_streams: 10_000,
            is_polled: true,
            pods: pods.collect(),
            minute: 0,
            scrapes: Vec::new(),
            polls: 0.0,
            may_also_fire: vec![OF_A_BUSY_MACHINE],
        };
        for pod in 0..watched.pods.len() {
            watched.start_in(pod).await;
        }
        watched
    }

    /// Starts a stack without anything special, and its processes.
    pub(super) async fn of(model: Model, tables: &str, workers: usize) -> Self {
        let stack = Stack::new(model).await;
        stack.configure(tables);
        Self::start(stack, workers).await
    }

    /// Starts the process of a pod, and waits until it is ready.
    async fn start_in(&mut self, pod: usize) {
        let listen = format!("127.0.0.1:{}", self.stack.gateway_port(0));
        let pod = &mut self.pods[pod];
        let role = match pod.role {
            "gateway" => vec!["gateway", "--listen", &listen],
            role => vec![role],
        };
        pod.process = Some(pod.probes.spawn(&self.stack, &role, &[]));
        pod.probes.says("/readyz", 200).await;
    }

    fn position(&self, name: &str) -> usize {
        let found = self.pods.iter().position(|pod| pod.name == name);
        found.unwrap()
    }

    /// Kills the process of a pod with `kill -9`.
    pub(super) async fn kill(&mut self, name: &str) {
        let pod = self.position(name);
        let process = self.pods[pod].process.take();
        process.unwrap().kill().await;
    }

    /// Starts a process in a pod that has none.
    pub(super) async fn start_again(&mut self, name: &str) {
        let pod = self.position(name);
        self.start_in(pod).await;
    }

    /// Stops the process of a pod, and removes the pod: Prometheus no longer looks for it.
    pub(super) async fn remove(&mut self, name: &str) {
        let pod = self.position(name);
        let process = self.pods.remove(pod).process;
        assert_eq!(process.unwrap().terminate().await, Some(0));
    }

    /// Has so many turns at the same time, and waits until they have ended.
    pub(super) async fn turns(&self, said: &str, count: usize) {
        self.turns_of(None, said, count).await;
    }

    /// Has so many turns of an agent at the same time, and waits until they have ended.
    pub(super) async fn turns_of(&self, agent: Option<&str>, said: &str, count: usize) {
        join_all((0..count).map(|_| async {
            let client = self.stack.client();
            let conversation = client.create_conversation(agent).await.unwrap();
            client.submit(&conversation, said, None).await.unwrap();
            self.stack.ended(&conversation, 1).await;
        }))
        .await;
    }

    /// Begins to watch anew: some minutes in which all is well, with a turn in each.
    pub(super) async fn is_well(&mut self) {
        self.minute = 0;
        self.scrapes.clear();
        self.busy_minutes(WELL).await;
    }

    /// Lets some minutes pass, with a turn in each.
    pub(super) async fn busy_minutes(&mut self, count: usize) {
        for _ in 0..count {
            self.turns("hello", 1).await;
            self.minutes(1).await;
        }
    }

    /// Lets some minutes pass.
    pub(super) async fn minutes(&mut self, count: usize) {
        for _ in 0..count {
            self.minute().await;
        }
    }

    async fn minute(&mut self) {
        let texts = wait::until("Temporal answers polls", || async {
            let texts = self.scrape().await;
            let polls = sum(&texts, &["temporal_workflow_task_queue_poll_"]);
            (!self.is_polled || polls.to_bits() != self.polls.to_bits()).then_some(texts)
        })
        .await;
        self.polls = sum(&texts, &["temporal_workflow_task_queue_poll_"]);
        for (pod, text) in self.pods.iter().zip(texts) {
            let labels = json!({"job": "everturn", "namespace": "agents", "pod": pod.name});
            let scrape = json!({"minute": self.minute, "labels": labels, "text": text});
            self.scrapes.push(scrape.to_string());
        }
        self.minute += 1;
    }

    /// What the processes show now; `None` of one that does not answer.
    async fn scrape(&self) -> Vec<Option<String>> {
        join_all(self.pods.iter().map(|pod| pod.probes.text())).await
    }

    /// Waits until a process shows this line among its metrics.
    pub(super) async fn shows(&self, pod: &str, line: &str) {
        let probes = &self.pods[self.position(pod)].probes;
        wait::until(&format!("{pod} shows {line}"), || async {
            let text = probes.text().await?;
            text.lines().any(|found| found == line).then_some(())
        })
        .await;
    }

    /// Waits until the series whose names and labels have all of these words have risen. It must take less than a minute.
    pub(super) async fn rise(&self, words: &[&str]) {
        let (begun, before) = (Instant::now(), sum(&self.scrape().await, words));
        wait::until(&format!("{words:?} rise"), || async {
            (sum(&self.scrape().await, words) > before).then_some(())
        })
        .await;
        let took = begun.elapsed();
        assert!(took < Duration::from_mins(1), "{words:?} took {took:?}");
    }

    /// Waits until the series whose names and labels have all of these words have at least this sum.
    pub(super) async fn counted(&self, words: &[&str], least: f64) {
        wait::until(&format!("{words:?} are {least}"), || async {
            (sum(&self.scrape().await, words) >= least).then_some(())
        })
        .await;
    }

    /// Lets an alert fire that comes from how the test makes its condition.
    pub(super) fn may_also_fire(&mut self, alert: &'static str) {
        self.may_also_fire.push(alert);
    }

    /// Checks that each of these alerts fires since the system was no longer well, and no other. Returns the first firing
    /// of each, in this order.
    pub(super) async fn only_fires(&self, alerts: &[&str]) -> Vec<Firing> {
        let mut firing = firing(self.stack.directory(), self.max_streams, &self.scrapes).await;
        firing.retain(|firing| {
            let alert = firing.alert.as_str();
            alerts.contains(&alert) || !self.may_also_fire.contains(&alert)
        });
        let early = firing.iter().find(|firing| firing.minute < WELL);
        assert!(
            early.is_none(),
            "all was well until minute {WELL}: {early:?}"
        );
        let is_other = |firing: &&Firing| !alerts.contains(&firing.alert.as_str());
        let other = firing.iter().find(is_other);
        assert!(other.is_none(), "only {alerts:?} should fire: {firing:?}");
        let first = |alert: &&str| {
            let found = firing.iter().find(|firing| firing.alert == **alert);
            found
                .unwrap_or_else(|| panic!("{alert} does not fire"))
                .clone()
        };
        alerts.iter().map(first).collect()
    }
}

/// The sum of the series whose names and labels have all of these words.
fn sum(texts: &[Option<String>], words: &[&str]) -> f64 {
    let lines = texts.iter().flatten().flat_map(|text| text.lines());
    let lines = lines.filter(|line| !line.starts_with('#'));
    let found = lines.filter(|line| words.iter().all(|word| line.contains(word)));
    found
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum()
}
