//! A long turn: many tool calls, one after the other. How long a step takes at the beginning and at the end, and what each
//! adds to the history of the engine.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use clap::Args;
use everturn_tests::model::{Model, Reply, Request};
use serde_json::json;

use crate::{
    measure::{Report, Samples, float},
    world::{Place, World},
};

/// The message of a turn before the measured one.
const WARM_UP: &str = "Warm up.";

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of tool calls, one in each step.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(10..=999))]
    steps: u32,
    #[command(flatten)]
    place: Place,
}

/// When the model was asked, in order.
type Asked = Arc<Mutex<Vec<Instant>>>;

/// Runs the case.
pub(crate) async fn run(options: &Options) -> Report {
    let (steps, asked) = (options.steps as usize, Asked::default());
    let model = Model::start(script(steps, asked.clone())).await;
    // The answer is a step, too.
    let keys = format!("max_steps = {}", steps + 1);
    let world = World::with_agent(options.place, model, &keys).await;
    world.ask(WARM_UP).await;
    let conversation = world.ask("Take many steps.").await;
    let histories = world.stack.histories(&conversation).await;
    let asked = asked.lock().unwrap().clone();
    let mut samples = Samples::default();
    samples.add("steps", float(steps as u64));
    let each = |number: u64| float(number) / float(steps as u64);
    let events = histories.iter().map(|history| history.events).sum();
    let bytes = histories.iter().map(|history| history.bytes).sum();
    samples.add("history_events_per_step", each(events));
    samples.add("history_bytes_per_step", each(bytes));
    samples.add("runs", float(histories.len() as u64));
    // The model is asked once more than there are tool calls.
    let is_whole = asked.len() == steps + 1;
    if is_whole {
        let tenth = steps / 10;
        let first = milliseconds_each(&asked[..=tenth]);
        let last = milliseconds_each(&asked[steps - tenth..]);
        samples.add("step_ms", milliseconds_each(&asked));
        samples.add("first_steps_ms", first);
        samples.add("last_steps_ms", last);
        samples.add("slowdown", last / first);
    }
    // A message, three events of each step, the answer and its end.
    let events = world.client.last_sequence(&conversation).await.unwrap();
    Report::of("long", samples)
        .expect(
            is_whole,
            format!("the model was asked {} times", asked.len()),
        )
        .expect(
            events as usize == 3 * steps + 3,
            format!("the conversation has {events} events"),
        )
}

/// Asks for one tool after the other, and then answers. The context that the model is given has an end, so the script
/// counts by itself.
fn script(steps: usize, asked: Asked) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| {
        if request.last("user") == WARM_UP {
            return Reply::text("Warm.");
        }
        let mut asked = asked.lock().unwrap();
        asked.push(Instant::now());
        if asked.len() > steps {
            return Reply::text("These were many steps.");
        }
        Reply::text("One more.").call("test_read", &json!({}))
    }
}

/// The time between two of these, in milliseconds.
fn milliseconds_each(asked: &[Instant]) -> f64 {
    let took = asked.first().zip(asked.last());
    let took = took.map_or(Duration::ZERO, |(first, last)| *last - *first);
    took.as_secs_f64() * 1000.0 / float(asked.len() as u64 - 1)
}
