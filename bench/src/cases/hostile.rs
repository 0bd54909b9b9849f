//! Case `hostile`: a tenant attacks the gateway while a quiet tenant works. The case measures the quiet tenant's turns
//! and tokens with and without the attack. Expected: the gateway's memory stays under a limit, and no process ends.

use std::{
    net::SocketAddr,
    pin::pin,
    process::Stdio,
    time::{Duration, Instant},
};

use clap::Args;
use everturn_client::GatewayClient;
use everturn_tests::{
    FollowedTurn,
    append::Appender,
    backends::Backends,
    crowd::{ages, allow_streams},
    hostile::{Attack, Force, Target},
    model::{Model, Reply},
    stack::Stack,
    temporal::Temporal,
};
use futures::{StreamExt, stream};
use tokio::process::{Child, Command};

use crate::{
    measure::{Latencies, Report, Samples, float},
    world,
};

/// Options of the case `hostile`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of turns of the quiet tenant in a measurement, with and without the attack.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    turns: u32,
    /// Number of concurrent turns of the quiet tenant.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    at_once: u32,
    /// Requests per second and kind from the hostile tenant.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Open connections per kind from the hostile tenant.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    connections: u32,
    /// Maximum running and waiting turns of the hostile tenant.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    concurrent_turns: u32,
    /// Maximum requests per second of a tenant.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    allowed_rate: u32,
}

const MIB: usize = 1024 * 1024;
/// Memory limits of the gateway in MiB: for every tenant together, and per tenant.
const ALL: usize = 96;
const OF_TENANT: usize = 48;
/// Memory beyond the limits, according to docs/operate/configuration.md: the process itself in MiB, and an open stream
/// in bytes.
const BESIDE: usize = 100;
const OF_STREAM: usize = 40 * 1024;
/// Events of the conversation that the hostile tenant keeps reading: a page of the maximum size.
const EVENTS: usize = 16;
const EVENT: usize = 256 * 1024;
/// Answers for the quiet tenant: number of tokens, and the time between tokens.
const TOKENS: usize = 40;
const PACE: Duration = Duration::from_millis(25);
/// Environment variable with the API key of the attacking process.
const KEY: &str = "HOSTILE_KEY";
/// Duration of the attack before the measurement.
const HEAD_START: Duration = Duration::from_secs(5);

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    allow_streams(4 * options.connections as usize + 1000);
    let model = Model::start(|_| Reply::stamps(TOKENS, PACE)).await;
    model.keep_no_bodies();
    let temporal = Temporal::fair().await.lasting();
    let backends = Backends::measured(false).await;
    let stack = Stack::of(temporal, backends, model, "tools = []\n").with_gateways(1);
    stack.configure(&limits(options));
    let gateway = stack.gateway_on(0, &[]).await;
    let worker = stack.spawn(&["worker"], "worker", &[]);
    let quiet = world::key(&stack, "quiet").await;
    let quiet = GatewayClient::with_token(&stack.gateway_url(0), Some(&quiet)).unwrap();
    let _warm = turns(&quiet, options.at_once * 2, options.at_once).await;
    let alone = turns(&quiet, options.turns, options.at_once).await;
    let before = gateway.peak_memory_bytes();
    let force = Force {
        requests_per_second: options.rate,
        connections: options.connections as usize,
    };
    let attack = attacking(&target(&stack).await, force);
    tokio::time::sleep(HEAD_START).await;
    let beside = turns(&quiet, options.turns, options.at_once).await;
    let mut samples = Samples::default();
    tell_attack(attack, &mut samples).await;
    let peak = gateway.peak_memory_bytes();
    samples.add("gateway_peak_mib", float(peak) / 1024.0 / 1024.0);
    let grown = usize::try_from(peak.saturating_sub(before)).unwrap() / MIB;
    let allowed = ALL + BESIDE + options.connections as usize * OF_STREAM / MIB;
    compared(&alone, &beside, samples)
        .expect(
            grown <= allowed,
            format!("the gateway grew by {grown} MiB, and {allowed} are allowed"),
        )
        .expect(gateway.runs() && worker.runs(), "a process has ended")
}

/// Makes the report of the turns without and with the attack.
fn compared(alone: &Took, beside: &Took, mut samples: Samples) -> Report {
    alone.tell("alone_", &mut samples);
    beside.tell("beside_", &mut samples);
    let ratios = [
        ("turn", beside.turns_p99() / alone.turns_p99()),
        ("token", beside.tokens_p99() / alone.tokens_p99()),
    ];
    for (name, ratio) in ratios {
        samples.add(format!("{name}_p99_ratio"), ratio);
    }
    let report = Report::of("hostile", samples);
    ratios.into_iter().fold(report, |report, (name, ratio)| {
        report.expect(
            ratio <= 2.0,
            format!("the 99th percentile of a {name} is {ratio:.2} times that without the attack"),
        )
    })
}

/// Starts the attack in a separate process, because the attack must not delay the measuring process.
fn attacking(target: &Target, force: Force) -> Child {
    let of_connections = force.connections.to_string();
    let rate = force.requests_per_second.to_string();
    let address = target.address.to_string();
    Command::new(std::env::current_exe().unwrap())
        .args(["attack", &address, &target.conversation])
        .args([&rate, &of_connections])
        .env(KEY, &target.key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Ends the attack, and adds the counts of the responses to the samples.
async fn tell_attack(mut attack: Child, samples: &mut Samples) {
    drop(attack.stdin.take());
    let output = attack.wait_with_output().await.unwrap();
    assert!(output.status.success(), "the attack has failed");
    let said = String::from_utf8(output.stdout).unwrap();
    print!("{said}");
    for line in said.lines() {
        let (name, count) = line.rsplit_once(' ').unwrap();
        samples.add(
            format!("attack_{}", name.replace(' ', "_")),
            count.parse().unwrap(),
        );
    }
}

/// Options of the attacking process, which ends with standard input.
#[derive(Debug, Args)]
pub(crate) struct AttackOptions {
    address: SocketAddr,
    conversation: String,
    rate: u32,
    connections: usize,
}

/// Attacks the gateway, and prints the number of responses by kind of request and status.
pub(crate) async fn attack(options: &AttackOptions) -> anyhow::Result<()> {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    allow_streams(4 * options.connections + 1000);
    let target = Target {
        address: options.address,
        key: std::env::var(KEY)?,
        conversation: options.conversation.clone(),
    };
    let force = Force {
        requests_per_second: options.rate,
        connections: options.connections,
    };
    let attack = Attack::begin(&target, force);
    tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await?;
    for ((kind, status), count) in attack.answers() {
        println!("{kind} {status} {count}");
    }
    Ok(())
}

fn limits(options: &Options) -> String {
    let (all, of_tenant) = (ALL * MIB, OF_TENANT * MIB);
    let (rate, turns) = (options.allowed_rate, options.concurrent_turns);
    format!(
        "[auth]\nrequired = true\n[reconciler]\ngrace = \"1h\"\n[limits]\nmemory_bytes = {all}\n\
         tenant_memory_bytes = {of_tenant}\nrequests_per_second = {rate}\nrequest_burst = {}\nopen_streams = 200\n\
         concurrent_turns = {turns}\n",
        rate * 2
    )
}

/// Prepares the attack's target: an API key, and a conversation with a page of the maximum size.
async fn target(stack: &Stack) -> Target {
    let store = stack.store().await;
    let conversation = "loud".to_owned();
    let appender = Appender::begin_for(&store, "loud", &conversation).await;
    let event = "x".repeat(EVENT);
    for _ in 0..EVENTS {
        appender.append(&event).await;
    }
    Target {
        address: ([127, 0, 0, 1], stack.gateway_port(0)).into(),
        key: world::key(stack, "loud").await,
        conversation,
    }
}

/// Durations of turns, and latencies of tokens.
#[derive(Default)]
struct Took {
    turns: Vec<Duration>,
    tokens: Vec<Duration>,
}

impl Took {
    fn tell(&self, prefix: &str, samples: &mut Samples) {
        of(&self.turns).tell(&format!("{prefix}turn_"), samples);
        of(&self.tokens).tell(&format!("{prefix}token_"), samples);
    }

    fn turns_p99(&self) -> f64 {
        of(&self.turns).p99_ms()
    }

    fn tokens_p99(&self) -> f64 {
        of(&self.tokens).p99_ms()
    }
}

fn of(times: &[Duration]) -> Latencies {
    let mut latencies = Latencies::default();
    for took in times {
        latencies.add(*took);
    }
    latencies
}

async fn turns(client: &GatewayClient, count: u32, at_once: u32) -> Took {
    let turns = stream::iter(0..count).map(|_| turn(client));
    let all = turns.buffer_unordered(at_once as usize);
    all.fold(Took::default(), async |mut all, (turn, tokens)| {
        all.turns.push(turn);
        all.tokens.extend(tokens);
        all
    })
    .await
}

/// Runs a turn and checks that no event is missing. Returns the turn's duration and the tokens' latencies.
async fn turn(client: &GatewayClient) -> (Duration, Vec<Duration>) {
    let begun = Instant::now();
    let conversation = client.create_conversation(None).await.unwrap();
    let message = client.submit(&conversation, "Speak.", None).await.unwrap();
    let followed = async {
        let mut turn = FollowedTurn::of(&message);
        let mut frames = pin!(client.follow(&conversation, 0));
        let (mut tokens, mut last, mut whole) = (Vec::new(), 0, 0);
        while let Some(frame) = frames.next().await {
            if let Some(id) = frame.id {
                assert_eq!(id, last + 1, "an event of {conversation} is missing");
                last = id;
            }
            if frame.event == "text_delta" {
                tokens.extend(ages(frame.data["text"].as_str().unwrap_or_default()));
            }
            if frame.event == "assistant_message" {
                whole = ages(frame.data["content"].as_str().unwrap_or_default()).count();
            }
            if turn.ends_with(&frame) {
                assert_eq!((frame.event.as_str(), whole), ("complete", TOKENS));
                break;
            }
        }
        tokens
    };
    let tokens = tokio::time::timeout(world::TURN_LIMIT, followed).await;
    let tokens = tokens.unwrap_or_else(|_| panic!("the turn of {conversation} has stalled"));
    (begun.elapsed(), tokens)
}
