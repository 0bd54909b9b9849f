//! Case `fairness`: tenants share workers. The case measures the quiet tenant's turns while a loud tenant floods the
//! workers with turns.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_client::GatewayClient;
use everturn_tests::{
    backends::Backends,
    model::{Model, Reply},
    stack::Stack,
    temporal::Temporal,
};
use futures::{StreamExt, stream};

use crate::{
    measure::{Latencies, Report, Samples},
    world::{self, BackendChoice},
};

/// Options of the case `fairness`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of turns in the loud tenant's flood.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    flood: u32,
    /// Number of sequential turns of the quiet tenant.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    turns: u32,
    /// Uses a Temporal server without fairness between tenants.
    #[arg(long)]
    unfair: bool,
    #[command(flatten)]
    choice: BackendChoice,
}

/// Duration of the model's answer.
const ANSWER: Duration = Duration::from_secs(1);
/// Number of concurrent requests of the flood.
const SENDERS: usize = 16;
const AUTH: &str = "[auth]\nrequired = true\n";

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let tokens = || (0..50).map(|number| format!("token{number} ")).collect();
    let model = Model::start(move |_| Reply::spread(tokens(), ANSWER)).await;
    let temporal = if options.unfair {
        Temporal::measured().await
    } else {
        Temporal::fair().await
    };
    let backends = Backends::measured(options.choice.embedded).await;
    let stack = world::stack_on(temporal.lasting(), backends, model, "");
    stack.configure(AUTH);
    let _gateway = stack.gateway_on(0, &[]).await;
    let _worker = stack.spawn(&["worker"], "worker", &[]);
    let (loud, quiet) = (client(&stack, "loud").await, client(&stack, "quiet").await);
    turn(&quiet).await;
    let mut samples = Samples::default();
    let alone = turns(&quiet, options.turns).await;
    alone.tell("alone_", &mut samples);
    stream::iter(0..options.flood)
        .for_each_concurrent(SENDERS, |_| async {
            send(&loud).await;
        })
        .await;
    let asked = stack.model.requests().len();
    let beside = turns(&quiet, options.turns).await;
    beside.tell("beside_flood_", &mut samples);
    let answered = stack.model.requests().len() - asked;
    let of_flood = u32::try_from(answered).unwrap_or(u32::MAX);
    samples.add("flood_calls_meanwhile", f64::from(of_flood - options.turns));
    Report::of("fairness", samples)
}

async fn client(stack: &Stack, tenant: &str) -> GatewayClient {
    let key = world::key(stack, tenant).await;
    GatewayClient::with_token(&stack.url(), Some(&key)).unwrap()
}

/// Sends a message to a new conversation. Returns the ids of the conversation and the message.
async fn send(client: &GatewayClient) -> (String, String) {
    let conversation = client.create_conversation(None).await.unwrap();
    let message = client.submit(&conversation, "Hello.", None).await.unwrap();
    (conversation, message)
}

async fn turns(client: &GatewayClient, count: u32) -> Latencies {
    let mut took = Latencies::default();
    for _ in 0..count {
        took.add(turn(client).await);
    }
    took
}

async fn turn(client: &GatewayClient) -> Duration {
    let begun = Instant::now();
    let (conversation, message) = send(client).await;
    world::followed(client, &conversation, &message).await;
    begun.elapsed()
}
