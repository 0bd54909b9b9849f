//! Messages that come while the engine is away for good, and an engine that comes back empty. The gateway's reconciler
//! finds them. The benchmark sends many messages, and a test a few.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    model::{Model, Reply, Request},
    stack::{Process, Stack},
    temporal::Temporal,
};

/// Number of conversations that send at the same time.
const SENDING: usize = 100;

/// How often the engine's counters are read.
const SAMPLE: Duration = Duration::from_millis(250);

/// A rate counts for at least so long: the engine brings its counters up to date once a second.
const WINDOW: Duration = Duration::from_secs(3);

/// Calls to the engine that a gateway makes for a turn.
const CALLS: [&str; 4] = [
    "DescribeWorkflowExecution",
    "SignalWithStartWorkflowExecution",
    "SignalWorkflowExecution",
    "StartWorkflowExecution",
];

/// The processes, and the engine that goes away.
pub struct Outage {
    /// The stack with the worker, the gateways and the model.
    pub stack: Stack,
    temporal: &'static Temporal,
    conversations: Vec<String>,
    _running: (Process, Process),
}

/// How the messages were answered after the engine had come back.
#[derive(Debug)]
pub struct Drained {
    /// The events of each conversation.
    pub events: Vec<Vec<Value>>,
    /// The time from the engine's return to the last answer.
    pub took: Duration,
    /// Calls that the gateways made for turns.
    pub calls: u64,
    /// The largest number of these calls in a second, over three seconds.
    pub most_a_second: f64,
}

impl Outage {
    /// Starts everything, with these tables in the configuration and so many conversations. The model repeats what the
    /// user has said.
    pub async fn start(tables: &str, conversations: usize) -> Self {
        let model = Model::start(|request: &Request| Reply::text(&request.last("user")));
        let mut stack = Stack::new(model.await).await;
        let temporal = stack.move_to_own_temporal().await;
        stack.configure(tables);
        let running = stack.start().await;
        let client = stack.client();
        let created = stream::iter(0..conversations)
            .map(|_| async { client.create_conversation(None).await.unwrap() })
            .buffer_unordered(SENDING);
        Self {
            conversations: created.collect().await,
            stack,
            temporal,
            _running: running,
        }
    }

    /// Sends `0`, `1` and so on to each conversation while the engine is away. Returns the statuses of the answers.
    pub async fn send(&self, messages: usize) -> Vec<u16> {
        self.temporal.stop().await;
        let send = |id: String| async move {
            let mut statuses = Vec::new();
            for message in 0..messages {
                let body = json!({"content": message.to_string()});
                statuses.push(self.stack.send(&id, &body).await.0);
            }
            statuses
        };
        let sends = stream::iter(self.conversations.clone()).map(send);
        sends.buffer_unordered(SENDING).concat().await
    }

    /// Starts an empty engine, and waits until so many turns of each conversation have ended.
    pub async fn drain(&self, messages: usize) -> Drained {
        self.temporal.start_empty().await;
        let begun = Instant::now();
        let mut samples = Vec::new();
        let sampling = async {
            loop {
                samples.push((Instant::now(), self.temporal.calls(&CALLS).await));
                tokio::time::sleep(SAMPLE).await;
            }
        };
        let ended = async {
            let mut events = Vec::new();
            for id in &self.conversations {
                events.push(self.stack.ended(id, messages).await);
            }
            // The calls of the last seconds are counted, too.
            let took = begun.elapsed();
            tokio::time::sleep(WINDOW).await;
            (events, took)
        };
        let (events, took) = tokio::select! {
            ended = ended => ended,
            () = sampling => unreachable!(),
        };
        Drained {
            events,
            took,
            calls: samples.last().map_or(0, |(_, calls)| *calls),
            most_a_second: most_a_second(&samples),
        }
    }
}

/// The largest rate of what was counted, over at least [`WINDOW`].
#[allow(clippy::cast_precision_loss)]
fn most_a_second(samples: &[(Instant, u64)]) -> f64 {
    let mut most: f64 = 0.0;
    for (number, (from, before)) in samples.iter().enumerate() {
        let after = samples[number..]
            .iter()
            .find(|(to, _)| to.duration_since(*from) >= WINDOW);
        if let Some((to, calls)) = after {
            let seconds = to.duration_since(*from).as_secs_f64();
            most = most.max((calls - before) as f64 / seconds);
        }
    }
    most
}
