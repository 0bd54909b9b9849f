//! A rolling update of workers and gateways under load, ten times in a row, in the order of the Helm chart: a new process
//! comes before an old one goes, and the old one is told with SIGTERM.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_tests::{
    count::Count,
    model::{Model, Reply, Request},
    reader::{CursorIn, Cut, Left, Reader, View},
    stack::{Process, Stack},
    wait,
};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::embedded::health::Probes;

const ROUNDS: usize = 10;
/// Conversations that are always in a turn, each with a reader.
const BUSY: usize = 4;
/// Number of turns that end in each round.
const TURNS: usize = 3;
/// How long an answer takes, so that calls of the model are in flight at each moment.
const ANSWER: Duration = Duration::from_millis(400);
/// How often a run may wait for the time-out of a workflow task. A worker that stops may lose a workflow task, and the
/// server gives the task to another worker after 4 s (docs/engine.md, a worker that stops).
const TIME_OUTS: u64 = 2;

/// The pause of a reader whose gateway did not answer.
const COMES_BACK: Duration = Duration::from_millis(50);

const EACH_TURN: &str = "user_message thought act observe assistant_message complete";

fn one_tool(request: &Request) -> Reply {
    let words = |word: &str| (0..20).map(|_| word.to_owned()).collect();
    match request.results_since_user() {
        0 => Reply::spread(words("look "), ANSWER).call("test_once", &json!({"effect": true})),
        _ => Reply::spread(words("here "), ANSWER),
    }
}

/// What runs, as a load balancer sees it.
struct Cluster<'a> {
    stack: &'a Stack,
    /// The numbers of the gateways that get requests.
    serving: Mutex<VecDeque<usize>>,
    next: AtomicUsize,
    has_begun: CancellationToken,
    is_over: CancellationToken,
    ended: Count,
}

impl Cluster<'_> {
    /// The URL of a gateway that serves, each time that of the next one.
    fn url(&self) -> String {
        let serving = self.serving.lock().unwrap();
        let next = self.next.fetch_add(1, Ordering::Relaxed) % serving.len();
        self.stack.gateway_url(serving[next])
    }

    /// Sends a request until a gateway has taken it, and returns the answer.
    async fn post(&self, path: &str, body: &Value) -> Value {
        let path = format!("/api/v1/agent/conversations{path}");
        wait::until("a request is taken", || async {
            let answer = self.stack.http.post(self.url() + &path).json(body).send();
            let answer = answer.await.ok()?.error_for_status().ok()?;
            answer.json().await.ok()
        })
        .await
    }

    /// One turn after the other, read as it happens. Returns the conversation and its number of turns.
    async fn converse(&self) -> (String, usize) {
        self.has_begun.cancelled().await;
        let made = self.post("", &json!({})).await;
        let conversation = made["id"].as_str().unwrap().to_owned();
        let mut reader = Reader::new(&self.stack.http, &conversation);
        let mut turns = 0;
        while !self.is_over.is_cancelled() {
            // However often it is sent, it is the same message.
            let message = json!({"content": "look", "message_id": Uuid::now_v7().to_string()});
            self.post(&format!("/{conversation}/messages"), &message)
                .await;
            turns += 1;
            while reader.view.turns_ended() < turns {
                let (url, mut never) = (self.url(), Cut::never());
                let has_all = |view: &View| view.turns_ended() >= turns;
                let visit = reader.visit(&url, CursorIn::Query, &mut never, has_all);
                if visit.await.expect("no frame breaks a rule") == Left::Refused {
                    tokio::time::sleep(COMES_BACK).await;
                }
            }
            self.ended.rise();
        }
        let shown = reader.view.events().iter();
        let shown: Vec<_> = shown.map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(
            shown.join(" "),
            vec![EACH_TURN; turns].join(" "),
            "the reader has lost events"
        );
        (conversation, turns)
    }

    async fn goes_on(&self) {
        self.ended.risen_by(TURNS, "turns have ended").await;
    }

    /// Starts a worker of this build, and waits until it asks for tasks.
    async fn worker(&self, round: usize) -> Process {
        let (probes, build) = (Probes::free(), format!("round-{round}"));
        let version = [("TEMPORAL_WORKER_BUILD_ID", build.as_str())];
        let worker = probes.spawn(self.stack, &["worker"], &version);
        probes.says("/readyz", 200).await;
        worker
    }

    /// Starts a gateway, which then gets requests.
    async fn gateway(&self, number: usize) -> (usize, Process) {
        let gateway = self.stack.gateway_on(number, &[]).await;
        self.serving.lock().unwrap().push_back(number);
        (number, gateway)
    }

    /// Takes a gateway out of service, and stops it.
    async fn stop(&self, (number, gateway): (usize, Process)) -> usize {
        self.serving
            .lock()
            .unwrap()
            .retain(|serving| *serving != number);
        assert_eq!(gateway.terminate().await, Some(0));
        number
    }

    /// Replaces each of two workers and two gateways in turn. Returns those that run at the end.
    async fn roll(&self) -> (VecDeque<Process>, VecDeque<(usize, Process)>) {
        let mut workers = VecDeque::from([self.worker(0).await, self.worker(0).await]);
        let mut gateways = VecDeque::from([self.gateway(0).await, self.gateway(1).await]);
        self.has_begun.cancel();
        let mut spare = gateways.len();
        for round in 1..=ROUNDS {
            self.goes_on().await;
            workers.push_back(self.worker(round).await);
            gateways.push_back(self.gateway(spare).await);
            let (worker, gateway) = (workers.pop_front().unwrap(), gateways.pop_front().unwrap());
            let (code, free) = tokio::join!(worker.terminate(), self.stop(gateway));
            assert_eq!(code, Some(0));
            spare = free;
        }
        self.goes_on().await;
        self.is_over.cancel();
        (workers, gateways)
    }
}

#[tokio::test]
async fn nothing_is_lost_or_late_while_every_process_is_replaced_ten_times() {
    let stack = Stack::new(Model::start(one_tool).await)
        .await
        .with_gateways(3);
    let cluster = Cluster {
        stack: &stack,
        serving: Mutex::default(),
        next: AtomicUsize::new(0),
        has_begun: CancellationToken::new(),
        is_over: CancellationToken::new(),
        ended: Count::default(),
    };
    let conversations = join_all((0..BUSY).map(|_| cluster.converse()));
    let (conversations, _left) = tokio::join!(conversations, cluster.roll());
    let turns: usize = conversations.iter().map(|(_, turns)| turns).sum();
    assert_eq!(stack.effects().len(), turns, "every tool ran once");
    let calls = stack.model.requests().len();
    assert_eq!(calls, 2 * turns, "no call is paid twice");
    for (conversation, _) in &conversations {
        for events in stack.events_of_runs(conversation).await {
            let lost = workflow_time_outs(&events);
            assert!(lost <= TIME_OUTS, "{lost} workflow tasks timed out");
            let lost = activity_time_outs(&events);
            assert_eq!(lost, 0, "an activity of a stopped worker timed out");
        }
    }
}

/// Counts how often a run waited for the time-out of a workflow task. The history has the first time-out of a task as an
/// event. The number of the task's last attempt has the others.
fn workflow_time_outs(events: &[Value]) -> u64 {
    let in_event = |event: &Value| {
        let attempt = &event["workflowTaskScheduledEventAttributes"]["attempt"];
        let timed_out = event["eventType"] == "EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT";
        u64::from(timed_out) + attempt.as_u64().unwrap_or(0).saturating_sub(2)
    };
    events.iter().map(in_event).sum()
}

/// Counts the activities whose attempt before the last one timed out.
fn activity_time_outs(events: &[Value]) -> usize {
    let started = events
        .iter()
        .map(|event| &event["activityTaskStartedEventAttributes"]);
    let timed_out =
        started.filter(|started| !started["lastFailure"]["timeoutFailureInfo"].is_null());
    timed_out.count()
}
