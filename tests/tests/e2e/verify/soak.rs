//! What many short turns leave (invariant 4, linear history). `bench soak` measures far more of them.

use everturn_tests::soak::{MAX_GROWTH, Soak};

/// The worker replaces Temporal's SDK some times in the test, as it does in a month.
const RENEWED: &str = "renew_after_activities = 200";

#[tokio::test]
async fn turns_leave_the_same_rows_and_keys_and_no_memory() {
    let mut soak = Soak::start(RENEWED).await;
    let begin = soak.run_to(20).await;
    let first = soak.run_to(100).await;
    let last = soak.run_to(400).await;
    println!("{begin:?}\n{first:?}\n{last:?}");
    let (early, late) = (
        first.rows_a_turn_since(&begin),
        last.rows_a_turn_since(&first),
    );
    assert!((early - late).abs() < 0.01, "{early} rows, then {late}");
    let keys = |turns: usize| u64::try_from(turns).unwrap() * first.keys;
    assert!(last.keys * 100 <= keys(last.turns), "{first:?}, {last:?}");
    for (name, before, after) in [
        ("worker", first.worker_bytes, last.worker_bytes),
        ("gateway", first.gateway_bytes, last.gateway_bytes),
    ] {
        assert!(
            after * 100 <= before * (100 + usize::from(MAX_GROWTH)),
            "the {name} grew from {before} to {after} bytes"
        );
    }
}
