//! Case `outage`: messages arrive while Temporal is away. The case measures the time until every answer, and the calls
//! to Temporal.

use clap::Args;
use everturn_tests::{events::contents, outage::Outage};

use crate::measure::{Report, Samples, float};

/// Error of a measured rate, in calls a second.
const RATE_ERROR: f64 = 1.0;

/// Options of the case `outage`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of messages sent during the outage.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    messages: u32,
    /// Number of messages per conversation.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    each: u32,
    /// Maximum calls to Temporal per second: `calls_per_second` of `[reconciler]`.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    calls_per_second: u32,
}

/// Sends the messages, and measures the answers. Messages must be answered in order, and the calls to Temporal must
/// stay under the limit.
pub(crate) async fn run(options: &Options) -> Report {
    let tables = format!(
        "[limits]\nconcurrent_turns = 1000000\nrequests_per_second = 0\n[reconciler]\ncalls_per_second = {}\n",
        options.calls_per_second
    );
    let each = options.each as usize;
    let conversations = options.messages.div_ceil(options.each) as usize;
    let outage = Outage::start(&tables, conversations).await;
    let stored = outage.send(each).await.len();
    println!(
        "{stored} messages in {conversations} conversations were sent while the engine was away"
    );
    let drained = outage.drain(each).await;
    let sent: Vec<_> = (0..each).map(|message| message.to_string()).collect();
    let in_order = |events: &&Vec<_>| contents(events, "user_message") == sent;
    let answered = drained.events.iter().filter(in_order).count();
    let paid = outage.stack.model.requests().len();
    let (rate, limit) = (drained.most_a_second, options.calls_per_second);
    let mut samples = Samples::default();
    samples.add("messages", float(stored as u64));
    samples.add("conversations", float(conversations as u64));
    samples.add("conversations_in_order", float(answered as u64));
    samples.add("model_calls", float(paid as u64));
    samples.add("drained_s", drained.took.as_secs_f64());
    samples.add("engine_calls", float(drained.calls));
    samples.add("most_engine_calls_a_s", rate);
    Report::of("outage", samples)
        .expect(
            answered == conversations,
            format!("{answered} of {conversations} conversations have all messages in order"),
        )
        .expect(
            paid == stored,
            format!("the model was called {paid} times for {stored} messages"),
        )
        .expect(
            rate <= f64::from(limit) + RATE_ERROR,
            format!("the engine got {rate:.1} calls a second, and the limit is {limit}"),
        )
}
