//! Case `long`: long turns. The first turn makes many sequential tool calls on a context that fills the model's window,
//! the second turn makes many parallel calls per step, and a third turn has a worker killed again and again. The case
//! measures the duration of a step at the beginning and later, the step's share of Temporal's history, and the requests
//! that extend the previous request, because a provider reads an unchanged beginning from its cache.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use clap::Args;
use everturn_tests::{
    events,
    model::{CallUsage, Model, Reply, Request},
    random::Random,
    wait,
};
use serde_json::{Value, json};

use crate::{
    measure::{Report, Samples, float},
    world::{BackendChoice, World, followed},
};

/// Message of the turn before the measurement.
const WARM_UP: &str = "Warm up.";
/// Messages of the measured turns: sequential calls, parallel calls, and sequential calls under kills.
const SEQUENTIAL: &str = "Take many steps.";
const WIDE: &str = "Take wide steps.";
const KILLED: &str = "Take many steps, whatever happens.";
/// Bytes of a step in the context, beside the tool's output.
const STEP_BYTES: usize = 400;
/// Approximate bytes of a provider's token.
const BYTES_PER_TOKEN: usize = 4;
/// Of `IN_A_ROW` consecutive requests, at most `MOST_MISSES` may not extend the previous request. A provider has the
/// beginning of the remaining requests in its cache.
const IN_A_ROW: usize = 200;
const MOST_MISSES: usize = 10;
/// Limits for a step: history events, history bytes, and the slowest steps' duration relative to the first steps.
const MOST_EVENTS: f64 = 16.0;
const MOST_BYTES: f64 = 2500.0;
const MOST_SLOWDOWN: f64 = 1.5;
/// Limits for a call in a wide step: history events and history bytes.
const MOST_WIDE_EVENTS: f64 = 8.0;
const MOST_WIDE_BYTES: f64 = 1250.0;
/// Minimum size of the largest context, in percent of the option `tokens`. A step beyond the window starts a
/// compaction.
const LEAST_OF_TOKENS: usize = 95;
/// Maximum time between a request and the kill of the worker.
const KILL_WITHIN_MS: usize = 40;

/// Options of the case `long`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of tool calls of a turn, one per step.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    steps: u32,
    /// Tokens of the context after the calls. A slightly larger context is compacted.
    #[arg(long, default_value_t = 200_000)]
    tokens: u32,
    /// Number of calls per step of the wide turn.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    wide: u32,
    /// Number of kills of the worker.
    #[arg(long, default_value_t = 10)]
    kills: u32,
    #[command(flatten)]
    choice: BackendChoice,
}

/// The model's record of a turn.
#[derive(Debug, Default)]
struct Seen {
    /// Arrival and response time of every request.
    calls: Vec<(Instant, Instant)>,
    /// True for a request that extends the previous request.
    goes_on: Vec<bool>,
    last: Vec<Value>,
    /// The tokens of the last request.
    last_tokens: usize,
    /// Number of the last step in the latest context.
    steps: usize,
    largest_tokens: usize,
    summaries: usize,
    without_task: usize,
}

/// The scripted model: the number of calls to ask for, and the record of the turn.
#[derive(Debug, Clone)]
struct Script {
    steps: usize,
    wide: usize,
    tokens: usize,
    output_bytes: usize,
    seen: Arc<Mutex<Seen>>,
}

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let steps = options.steps as usize;
    let bytes = options.tokens as usize * BYTES_PER_TOKEN / steps;
    let script = Script {
        steps,
        wide: options.wide as usize,
        tokens: options.tokens as usize,
        output_bytes: bytes.saturating_sub(STEP_BYTES),
        seen: Arc::default(),
    };
    let answering = script.clone();
    let model = Model::start(move |request| answering.answer(request)).await;
    model.keep_no_bodies();
    // A context is compacted at four fifths of the window. Answers and summaries are steps, too.
    let window = options.tokens / 4 * 5;
    let keys = format!(
        "max_steps = {}\ncontext_window = {window}\nmax_parallel_tools = 64\n",
        2 * steps
    );
    let mut world = World::with_agent(options.choice, model, &keys).await;
    world.ask(WARM_UP).await;
    let mut samples = Samples::default();
    let report = sequential(&world, &script, &mut samples).await;
    let report = wide(&world, &script, &mut samples, report).await;
    let report = killed(&mut world, &script, options.kills, &mut samples, report).await;
    report.into_iter().fold(
        Report::of("long", samples),
        |report, (is_as_it_must_be, fault)| report.expect(is_as_it_must_be, fault),
    )
}

/// Expectations, with the fault to report for a violation.
type Expected = Vec<(bool, String)>;

/// Runs the turn with one call per step, on a growing context.
async fn sequential(world: &World, script: &Script, samples: &mut Samples) -> Expected {
    script.begin();
    let conversation = world.ask(SEQUENTIAL).await;
    let histories = world.stack.histories(&conversation).await;
    let seen = std::mem::take(&mut *script.seen.lock().unwrap());
    let steps = script.steps;
    samples.add("steps", float(steps as u64));
    let each = |number: u64| float(number) / float(steps as u64);
    let events_each = each(histories.iter().map(|it| it.events).sum());
    let bytes_each = each(histories.iter().map(|it| it.bytes).sum());
    samples.add("history_events_per_step", events_each);
    samples.add("history_bytes_per_step", bytes_each);
    samples.add("runs", float(histories.len() as u64));
    samples.add("largest_context_tokens", float(seen.largest_tokens as u64));
    samples.add("summaries", float(seen.summaries as u64));
    let hits = seen.fewest_hits();
    samples.add("fewest_hits_of_200", float(hits as u64));
    let tenth = (steps / 10).max(1);
    let took = seen.milliseconds();
    let (first, slowest) = (mean(&took[..tenth]), slowest(&took, tenth));
    samples.add("first_steps_ms", first);
    samples.add("slowest_steps_ms", slowest);
    let slowdown = slowest / first;
    samples.add("slowdown", slowdown);
    add_usage(&world.stack.events(&conversation).await, samples);
    let events = world.client.last_sequence(&conversation).await.unwrap() as usize;
    // A message, three events per step, the answer and the end.
    let expected = 3 * steps + 3 + seen.summaries;
    vec![
        (
            events == expected,
            format!("the conversation has {events} events, not {expected}"),
        ),
        (
            seen.calls.len() == steps + 1 + seen.summaries,
            format!("the model was asked {} times", seen.calls.len()),
        ),
        (seen.without_task == 0, "the task was left out".to_owned()),
        (
            seen.largest_tokens * 100 >= script.tokens * LEAST_OF_TOKENS,
            format!(
                "the context came to {} of {} tokens",
                seen.largest_tokens, script.tokens
            ),
        ),
        (
            events_each <= MOST_EVENTS && bytes_each <= MOST_BYTES,
            format!("a step adds {events_each:.1} events and {bytes_each:.0} bytes"),
        ),
        (
            slowdown <= MOST_SLOWDOWN,
            format!("the slowest steps take {slowdown:.2} times as long as the first"),
        ),
        (
            hits + MOST_MISSES >= IN_A_ROW.min(seen.goes_on.len()),
            format!("only {hits} of {IN_A_ROW} requests begin with the one before"),
        ),
    ]
}

/// Adds the tokens of the turn, and the tokens that the provider read from its cache.
fn add_usage(events: &[Value], samples: &mut Samples) {
    let ends = events::data(events, "complete");
    let usage = ends.first().map(|end| &end["usage"]);
    let count = |key: &str| usage.and_then(|usage| usage[key].as_u64());
    let [input, cached] = ["input_tokens", "cached_tokens"].map(count);
    let (input, cached) = (input.unwrap_or_default(), cached.unwrap_or_default());
    samples.add("input_tokens", float(input));
    samples.add("cached_tokens", float(cached));
    samples.add("cached_percent", float(cached * 100) / float(input.max(1)));
}

/// Runs the turn with many calls per step.
async fn wide(
    world: &World,
    script: &Script,
    samples: &mut Samples,
    mut expected: Expected,
) -> Expected {
    script.begin();
    let begun = Instant::now();
    let conversation = world.ask(WIDE).await;
    let took = begun.elapsed();
    let seen = std::mem::take(&mut *script.seen.lock().unwrap());
    let histories = world.stack.histories(&conversation).await;
    let calls = script.wide_steps() * script.wide;
    samples.add("wide_calls", float(calls as u64));
    samples.add(
        "wide_ms_per_call",
        took.as_secs_f64() * 1000.0 / float(calls as u64),
    );
    let each = |number: u64| float(number) / float(calls as u64);
    let bytes_each = each(histories.iter().map(|it| it.bytes).sum());
    let events_each = each(histories.iter().map(|it| it.events).sum());
    samples.add("wide_history_bytes_per_call", bytes_each);
    samples.add("wide_history_events_per_call", events_each);
    let events = world.stack.events(&conversation).await;
    events::assert_gap_free(&events);
    let count = |event_type| events::count(&events, event_type);
    let (acts, observes) = (count("act"), count("observe"));
    expected.extend([
        (
            acts == calls && observes == calls && count("complete") == 1,
            format!("of {calls} wide calls {acts} began and {observes} ended"),
        ),
        (
            seen.calls.len() == script.wide_steps() + 1 + seen.summaries,
            format!(
                "the model was asked {} times for wide steps",
                seen.calls.len()
            ),
        ),
        (
            seen.without_task == 0,
            "the task of the wide turn was left out".to_owned(),
        ),
        (
            events_each <= MOST_WIDE_EVENTS && bytes_each <= MOST_WIDE_BYTES,
            format!("a wide call adds {events_each:.1} events and {bytes_each:.0} bytes"),
        ),
    ]);
    expected
}

/// Runs a turn like the first turn, and kills the worker with -9 at random moments.
async fn killed(
    world: &mut World,
    script: &Script,
    kills: u32,
    samples: &mut Samples,
    mut expected: Expected,
) -> Expected {
    script.begin();
    let client = world.client.clone();
    let conversation = client.create_conversation(None).await.unwrap();
    let message = client.submit(&conversation, KILLED, None).await.unwrap();
    let begun = Instant::now();
    let ended = followed(&client, &conversation, &message);
    let kill = async {
        let mut random = Random::new(u64::from(kills));
        for number in 0..kills as usize {
            let from = script.steps * number / kills as usize;
            let at = from + random.below(script.steps / kills as usize);
            wait::until("the turn has come so far", || async {
                (script.seen.lock().unwrap().calls.len() >= at).then_some(())
            })
            .await;
            let within = u64::try_from(random.below(KILL_WITHIN_MS)).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(within)).await;
            world.replace_worker().await;
        }
    };
    tokio::join!(ended, kill);
    samples.add("killed_s", begun.elapsed().as_secs_f64());
    let seen = std::mem::take(&mut *script.seen.lock().unwrap());
    let events = world.stack.events(&conversation).await;
    events::assert_gap_free(&events);
    let (acts, observes) = (
        events::count(&events, "act"),
        events::count(&events, "observe"),
    );
    let steps = script.steps;
    expected.push((
        acts == steps && observes == steps && events::count(&events, "complete") == 1,
        format!("of {steps} calls {acts} began and {observes} ended in the killed turn"),
    ));
    // A kill may interrupt one LLM call, and the call is repeated.
    let (asked, least) = (seen.calls.len(), steps + 1 + seen.summaries);
    expected.push((
        asked >= least && asked <= least + kills as usize,
        format!("the model was asked {asked} times in the killed turn, and not {least}"),
    ));
    expected.push((
        seen.without_task == 0,
        "the task of the killed turn was left out".to_owned(),
    ));
    expected
}

impl Script {
    /// Clears the record.
    fn begin(&self) {
        *self.seen.lock().unwrap() = Seen::default();
    }

    fn wide_steps(&self) -> usize {
        (self.steps / self.wide).max(1)
    }

    /// Asks for one tool per step, and then answers. The last step's number in the context shows the progress of the
    /// turn, even for a repeated LLM call.
    fn answer(&self, request: &Request) -> Reply {
        let user = request.last("user");
        if user == WARM_UP {
            return Reply::text("Warm.");
        }
        let mut seen = self.seen.lock().unwrap();
        let (tokens, cached) = seen.note(request);
        let is_summary = user.contains("Write a summary");
        seen.summaries += usize::from(is_summary);
        let asked = if user == WIDE {
            seen.calls.len() - seen.summaries
        } else {
            seen.steps
        };
        let reply = if is_summary {
            Reply::text("So far it went well.")
        } else if user == WIDE && asked < self.wide_steps() {
            let one = |reply: Reply, _| reply.call("test_read", &json!({}));
            (0..self.wide).fold(Reply::text("Many at once."), one)
        } else if user != WIDE && asked < self.steps {
            let input = json!({"output_bytes": self.output_bytes});
            Reply::text(&format!("Step {}.", asked + 1)).call("test_read", &input)
        } else {
            Reply::text("These were many steps.")
        };
        seen.calls.push((request.arrived, Instant::now()));
        reply.taking(CallUsage {
            input_tokens: tokens as u64,
            output_tokens: 20,
            cached_tokens: cached as u64,
            ..CallUsage::default()
        })
    }
}

impl Seen {
    /// Records a request. Returns the request's tokens, and the tokens that a provider reads from its cache: the previous
    /// request, if the request extends it.
    fn note(&mut self, request: &Request) -> (usize, usize) {
        let messages = request.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let goes_on = messages.starts_with(&self.last);
        if !self.last.is_empty() {
            self.goes_on.push(goes_on);
        }
        let is_task = |message: &Value| {
            let tasks = [SEQUENTIAL, WIDE, KILLED];
            let text = message["content"].as_str().unwrap_or_default();
            // A summary of older messages and the task are one message of the user.
            tasks.iter().any(|task| text.contains(task))
        };
        let step = |message: &Value| {
            let text = message["content"].as_str()?;
            text.strip_prefix("Step ")?.strip_suffix('.')?.parse().ok()
        };
        self.steps = messages.iter().rev().find_map(step).unwrap_or_default();
        self.without_task += usize::from(!messages.iter().any(is_task));
        self.last = messages;
        let tokens = request.body.to_string().len() / BYTES_PER_TOKEN;
        self.largest_tokens = self.largest_tokens.max(tokens);
        let last = std::mem::replace(&mut self.last_tokens, tokens);
        (tokens, if goes_on { last } else { 0 })
    }

    /// Returns the minimum number of extending requests among `IN_A_ROW` consecutive requests.
    fn fewest_hits(&self) -> usize {
        let windows = self
            .goes_on
            .windows(IN_A_ROW.min(self.goes_on.len()).max(1));
        let hits = windows.map(|window| window.iter().filter(|hit| **hit).count());
        hits.min().unwrap_or_default()
    }

    /// Returns the duration of every step without the model, in milliseconds.
    fn milliseconds(&self) -> Vec<f64> {
        let pairs = self.calls.windows(2);
        let took = pairs.map(|pair| pair[1].0.saturating_duration_since(pair[0].1));
        took.map(|took| took.as_secs_f64() * 1000.0).collect()
    }
}

fn mean(took: &[f64]) -> f64 {
    took.iter().sum::<f64>() / float(took.len() as u64)
}

/// Returns the mean of the slowest `count` consecutive steps.
fn slowest(took: &[f64], count: usize) -> f64 {
    took.windows(count.min(took.len()))
        .map(mean)
        .fold(0.0, f64::max)
}
