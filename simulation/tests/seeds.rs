//! Seeds of the simulation that every test run visits. `make simulate SEEDS=…` visits more.

use std::thread;

use everturn_simulation::{Promise, facts::Facts};

/// The seeds of a test run.
const SEEDS: u64 = 500;

#[test]
fn no_order_of_events_breaks_a_promise() {
    let half = |from: u64| {
        for seed in (from..SEEDS).step_by(2) {
            let outcome = everturn_simulation::run(seed).unwrap();
            if !outcome.violations.is_empty() {
                let outcome = everturn_simulation::shrink(outcome, None);
                let (violations, story) = (outcome.violations, outcome.story.join("\n"));
                panic!("seed {seed}: {violations:#?}\n{story}");
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| half(0));
        half(1);
    });
}

#[test]
fn a_seed_repeats_its_story() {
    for seed in 0..10 {
        let [first, second] = [(); 2].map(|()| everturn_simulation::run(seed).unwrap().story);
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// A promise that nobody makes: no tool runs beside a cancelled message.
fn no_tool_beside_a_cancel(facts: &Facts) -> Option<String> {
    let is_broken = !facts.tools.is_empty() && !facts.cancelled.is_empty();
    is_broken.then(|| "a tool and a cancel".to_owned())
}

#[test]
fn a_failing_schedule_becomes_shorter() {
    let promise: Promise = no_tool_beside_a_cancel;
    let mut failing = (0..100).map(|seed| everturn_simulation::run_with(seed, promise).unwrap());
    let outcome = failing.find(|it| !it.violations.is_empty()).unwrap();
    let (steps, choices) = (outcome.steps, outcome.choices.clone());
    let short = everturn_simulation::shrink(outcome, Some(promise));
    assert_eq!(short.violations, ["a tool and a cancel"]);
    assert!(short.steps < steps, "{} of {steps}", short.steps);
    assert!(short.choices.len() < choices.len());
    let again = everturn_simulation::run_choices(short.choices, Some(promise)).unwrap();
    assert_eq!(again.violations, short.violations);
    assert_eq!(again.story.len(), short.story.len());
}
