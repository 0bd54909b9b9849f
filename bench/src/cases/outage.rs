//! Measures how messages are answered that came while the engine was away.

use clap::Args;
use everturn_tests::{events::contents, outage::Outage};

/// Error of a measured rate, in calls a second.
const RATE_ERROR: f64 = 1.0;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The messages that come while the engine is away.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    messages: u32,
    /// The messages of each conversation.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    each: u32,
    /// The most calls to the engine a second, `calls_per_second` of `[reconciler]`.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    calls_per_second: u32,
}

/// Sends the messages, and prints how they were answered. Returns whether each was answered in order and the engine was
/// not asked more often than it may be.
pub(crate) async fn run(options: &Options) -> bool {
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
    println!(
        "{answered} conversations have all answers in order, {:.1} s after its return",
        drained.took.as_secs_f64()
    );
    println!(
        "{} calls to the engine, at most {:.1} a second (the limit is {})",
        drained.calls, drained.most_a_second, options.calls_per_second
    );
    let paid = outage.stack.model.requests().len();
    println!("{paid} calls of the model");
    let limit = f64::from(options.calls_per_second) + RATE_ERROR;
    answered == conversations && paid == stored && drained.most_a_second <= limit
}
