//! Case `replay`: a long conversation. The case measures the speed of a full replay, and the latency of the latest
//! page.

use std::{net::SocketAddr, time::Instant};

use clap::Args;
use everturn_tests::{
    arena::Arena,
    crowd::replay,
    model::{Model, Reply, Request},
};
use serde_json::{Value, json};

use crate::{
    measure::{Latencies, Report, Samples, float},
    world::{BackendChoice, TurnKind, World},
};

/// PostgreSQL is necessary, because the gateway should read the events from PostgreSQL.
const CHOICE: BackendChoice = BackendChoice { embedded: false };

/// Number of events on the latest page.
const PAGE: u32 = 100;

/// Number of reads of the page in a sample.
const PAGES: usize = 200;

/// Number of tokens per answer in the conversation.
const TOKENS: usize = 50;

/// Options of the case `replay`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Minimum number of events of the conversation.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    events: u32,
    /// Number of samples.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    samples: u32,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> anyhow::Result<Report> {
    let world = World::start(CHOICE, Model::start(short_turn).await).await;
    let conversation = world.turn(TurnKind::Ordinary).await;
    let events = fill(&world, &conversation, options.events).await;
    let address: SocketAddr = world.stack.url().trim_start_matches("http://").parse()?;
    let path = Arena::path(&conversation);
    let mut samples = Samples::default();
    samples.add("events", f64::from(events));
    // The client keeps its connection between requests.
    let http = reqwest::Client::new();
    for _ in 0..options.samples {
        let begun = Instant::now();
        let bytes = replay(address, &path, events).await;
        let seconds = begun.elapsed().as_secs_f64();
        samples.add("events_per_s", f64::from(events) / seconds);
        samples.add("bytes_per_event", float(bytes as u64) / f64::from(events));
        latest_pages(&world, &http, &conversation, events, &mut samples).await?;
        let url = format!("{}/conversations/{conversation}/messages", world.api());
        let begun = Instant::now();
        let timeline: Value = http.get(url).send().await?.json().await?;
        samples.add("timeline_ms", begun.elapsed().as_secs_f64() * 1000.0);
        anyhow::ensure!(timeline["total"].as_u64() > Some(0), "no timeline");
    }
    Ok(Report::of("replay", samples))
}

/// Returns the model's reply: a turn with two tools and a short answer.
fn short_turn(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I need two tools.")
            .call("test_read", &json!({}))
            .call("test_read", &json!({})),
        _ => Reply::tokens(TOKENS),
    }
}

/// Appends copies of the conversation's events, until the conversation has at least the given number. Returns the
/// number.
async fn fill(world: &World, conversation: &str, events: u32) -> u32 {
    let one_turn = u32::try_from(world.stack.events(conversation).await.len()).unwrap_or(u32::MAX);
    let copies = events.div_ceil(one_turn).saturating_sub(1);
    let events = one_turn * (copies + 1);
    let fill = format!(
        "INSERT INTO agent_execution_events (id, conversation_id, message_id, event_type, sequence_number, batch_key, \
         created_at, data_bytes, event_data) \
         SELECT id || '-' || copy, conversation_id, message_id, event_type, sequence_number + copy * {one_turn}, batch_key, \
         created_at, data_bytes, event_data FROM agent_execution_events, generate_series(1, {copies}) AS copy \
         WHERE conversation_id = '{conversation}' ORDER BY copy, sequence_number; \
         UPDATE conversations SET last_sequence = {events} WHERE id = '{conversation}'; \
         ANALYZE"
    );
    assert!(world.stack.backends().run_sql(&fill).await, "PostgreSQL");
    events
}

/// Measures repeated reads of the latest page.
async fn latest_pages(
    world: &World,
    http: &reqwest::Client,
    conversation: &str,
    events: u32,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    let from = events - PAGE + 1;
    let url = format!(
        "{}/conversations/{conversation}/events?from_sequence={from}&limit={PAGE}",
        world.api()
    );
    let mut latencies = Latencies::default();
    for _ in 0..PAGES {
        let begun = Instant::now();
        let page = http.get(&url).send().await?.bytes().await?;
        latencies.add(begun.elapsed());
        let page: Value = serde_json::from_slice(&page)?;
        let last = &page["events"][PAGE as usize - 1]["sequence_number"];
        anyhow::ensure!(*last == events, "the page ends with {last}");
    }
    samples.add("latest_page_ms", latencies.median_ms());
    Ok(())
}
