//! Seeds of the simulation that every test run visits. `make simulate SEEDS=…` visits more.

use std::thread;

/// The seeds of a test run.
const SEEDS: u64 = 500;

#[test]
fn no_order_of_events_breaks_a_promise() {
    let half = |from: u64| {
        for seed in (from..SEEDS).step_by(2) {
            let outcome = everturn_simulation::run(seed).unwrap();
            assert!(
                outcome.violations.is_empty(),
                "seed {seed}: {:#?}\n{}",
                outcome.violations,
                outcome.story.join("\n")
            );
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
