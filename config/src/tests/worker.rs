//! `[worker]`.

use std::time::Duration;

use everturn_models::WaitLimits;

use super::{assert_errors, parse};

/// The limits of the waiting calls of a worker with this table.
fn waits(table: &str) -> WaitLimits {
    let config = parse(&format!("[worker]\n{table}"), &[]).unwrap();
    config.worker.provider_waits()
}

#[test]
fn calls_wait_for_a_provider_in_a_quarter_of_the_slots() {
    let limits = |seconds, calls| WaitLimits {
        longest: Duration::from_secs(seconds),
        calls,
    };
    assert_eq!(waits(""), limits(5, 50));
    assert_eq!(waits("provider_wait = \"10m\"\n"), limits(600, 50));
    let slots = |slots: u32| waits(&format!("max_concurrent_activities = {slots}\n"));
    assert_eq!(slots(2), limits(5, 1));
    assert_eq!(slots(100_000), limits(5, 100));
}

#[test]
fn a_wrong_wait_is_explained() {
    let wrong = |written: &str| format!("[worker]\nprovider_wait = \"{written}\"\n");
    assert_errors(&[
        (
            wrong("999ms"),
            "`provider_wait` must be from 1s to 10m, not \"999ms\"",
        ),
        (
            wrong("11m"),
            "`provider_wait` must be from 1s to 10m, not \"11m\"",
        ),
    ]);
}
