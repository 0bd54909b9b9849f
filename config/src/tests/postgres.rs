//! `[postgres]`.

use std::time::Duration;

use super::{assert_errors, parse};

#[test]
fn the_pool_is_as_written_and_a_worker_makes_two_calls_a_slot() {
    let text = "[postgres]\nmax_connections = 40\nacquire_timeout = \"2s\"\n\
                [worker]\nmax_concurrent_activities = 500\n";
    let config = parse(text, &[]).unwrap();
    let pool = config.worker_pool();
    assert_eq!(
        (pool.max_connections, pool.acquire_timeout, pool.max_calls),
        (40, Duration::from_secs(2), Some(1000))
    );
    assert_eq!(config.postgres.max_calls, None);
    let default = parse("", &[]).unwrap().postgres;
    assert_eq!(
        (default.max_connections, default.acquire_timeout),
        (10, Duration::from_secs(5))
    );
}

#[test]
fn a_wrong_pool_is_explained() {
    assert_errors(&[
        (
            "[postgres]\nmax_connections = 0\n",
            "`max_connections` must be from 1 to 10000, not 0",
        ),
        (
            "[postgres]\nacquire_timeout = \"11s\"\n",
            "`acquire_timeout` must be from 100ms to 10s, not \"11s\"",
        ),
    ]);
}
