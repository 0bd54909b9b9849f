//! The order of waiting calls, the limits of calls, and the limits of the wait.

use std::{sync::Mutex as StdMutex, time::UNIX_EPOCH};

use tokio::{
    task::{JoinHandle, yield_now},
    time::{advance, timeout},
};

use super::*;

const HOUR: Duration = Duration::from_hours(1);
const LONGEST: Duration = Duration::from_secs(5);
/// The limits of a wait on a worker with few slots.
const FEW: WaitLimits = WaitLimits {
    longest: LONGEST,
    calls: 2,
};

fn gate(concurrent: Option<usize>, per_minute: Option<usize>) -> Arc<Gate> {
    let limits = CallLimits {
        concurrent,
        per_minute,
        tokens_per_minute: None,
    };
    Arc::new(Gate::new("p", limits).unwrap())
}

/// A call that waits as long as needed.
fn patient(tokens: u64) -> Arrival {
    Arrival {
        tokens,
        asked_at: UNIX_EPOCH,
        limits: WaitLimits {
            longest: HOUR,
            calls: 100,
        },
    }
}

/// A call that was asked for at this second, on a worker with few slots.
fn asked_at(second: u64) -> Arrival {
    Arrival {
        tokens: 1,
        asked_at: UNIX_EPOCH + Duration::from_secs(second),
        limits: FEW,
    }
}

async fn is_open(gate: &Gate) -> bool {
    let arrival = patient(1);
    let admitted = timeout(Duration::from_millis(1), gate.admit(&arrival)).await;
    admitted.is_ok()
}

/// Lets a call wait in a task. The task returns after the call has left the gate, or has begun and ended.
async fn waits(gate: &Arc<Gate>, arrival: Arrival) -> JoinHandle<Result<(), Later>> {
    let gate = Arc::clone(gate);
    let task = tokio::spawn(async move { gate.admit(&arrival).await.map(drop) });
    yield_now().await;
    task
}

fn waiting(gate: &Gate) -> usize {
    gate.shared.lock().waiting.len()
}

#[test]
fn without_limits_there_is_none() {
    assert!(Gate::new("p", CallLimits::default()).is_none());
}

#[tokio::test(start_paused = true)]
async fn only_so_many_calls_run_at_once() {
    let gate = gate(Some(2), None);
    let first = gate.admit(&patient(1)).await.unwrap();
    let _second = gate.admit(&patient(1)).await.unwrap();
    assert!(!is_open(&gate).await);
    drop(first);
    assert!(is_open(&gate).await);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_calls_begin_within_a_minute() {
    let gate = gate(None, Some(3));
    let begun = Instant::now();
    let mut times = Vec::new();
    for _ in 0..7 {
        drop(gate.admit(&patient(1)).await.unwrap());
        times.push(begun.elapsed().as_secs());
        advance(Duration::from_secs(10)).await;
    }
    assert_eq!(times, [0, 10, 20, 60, 70, 80, 120]);
}

#[tokio::test(start_paused = true)]
async fn calls_go_through_in_their_order_and_who_leaves_holds_nobody_up() {
    let gate = gate(Some(1), Some(1000));
    let held = gate.admit(&patient(1)).await.unwrap();
    let order: Arc<StdMutex<Vec<usize>>> = Arc::default();
    let mut tasks = Vec::new();
    for number in 0..20 {
        let (gate, order) = (gate.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let _admission = gate.admit(&patient(1)).await.unwrap();
            order.lock().unwrap().push(number);
        }));
        yield_now().await;
    }
    assert_eq!(waiting(&gate), 20);
    // The first one in the row, and one in its middle, are cancelled.
    for left in [0, 7] {
        tasks[left].abort();
    }
    drop(held);
    for task in tasks {
        let _is_cancelled = task.await;
    }
    let expected: Vec<_> = (1..20).filter(|number| *number != 7).collect();
    assert_eq!(*order.lock().unwrap(), expected);
    assert_eq!(waiting(&gate), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_and_the_longest_one_counts() {
    let gate = gate(Some(10), None);
    gate.pause(Duration::from_secs(30));
    gate.pause(Duration::from_secs(5));
    assert!(!is_open(&gate).await);
    let begun = Instant::now();
    let waits = waits(&gate, patient(1)).await;
    advance(Duration::from_secs(20)).await;
    // A longer pause that comes while a call waits holds that call, too.
    gate.pause(Duration::from_secs(40));
    waits.await.unwrap().unwrap();
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn calls_take_only_so_many_tokens_in_a_minute() {
    let limits = CallLimits {
        tokens_per_minute: Some(1000),
        ..CallLimits::default()
    };
    let gate = Arc::new(Gate::new("p", limits).unwrap());
    let first = gate.admit(&patient(600)).await.unwrap();
    let is_open = async |tokens| {
        let arrival = patient(tokens);
        let admitted = timeout(Duration::from_millis(1), gate.admit(&arrival)).await;
        admitted.is_ok()
    };
    assert!(!is_open(600).await);
    // The first call took less than was thought, so the one that waits goes through at once.
    let begun = Instant::now();
    let waits = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(&patient(600)).await }
    });
    yield_now().await;
    first.settle(300);
    let second = waits.await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    // And the second one took more.
    second.settle(900);
    assert!(!is_open(1).await);
    advance(Duration::from_secs(59)).await;
    assert!(!is_open(1).await);
    advance(Duration::from_secs(2)).await;
    assert!(is_open(1000).await);
    // What is larger than the limit goes through alone.
    assert!(!is_open(2000).await);
    advance(MINUTE).await;
    assert!(is_open(2000).await);
    assert!(!is_open(1).await);
}

#[tokio::test(start_paused = true)]
async fn a_call_gives_its_slot_back_and_keeps_its_position() {
    let gate = gate(Some(1), None);
    let held = gate.admit(&asked_at(0)).await.unwrap();
    let begun = Instant::now();
    for second in [1, 2] {
        let later = gate.admit(&asked_at(second)).await.unwrap_err();
        assert_eq!(later.after, Duration::ZERO);
    }
    assert_eq!(begun.elapsed().as_secs(), 2 * LONGEST.as_secs());
    assert_eq!(waiting(&gate), 0);
    // The calls come again in another order. The call that was asked for first goes first.
    let order: Arc<StdMutex<Vec<u64>>> = Arc::default();
    let mut tasks = Vec::new();
    for second in [2, 1] {
        let (gate, order) = (gate.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let _admission = gate.admit(&asked_at(second)).await.unwrap();
            order.lock().unwrap().push(second);
        }));
        yield_now().await;
    }
    drop(held);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn calls_behind_enough_older_calls_leave_at_once_and_come_again_one_after_another() {
    let gate = gate(Some(1), None);
    let _held = gate.admit(&asked_at(0)).await.unwrap();
    let _older = [
        waits(&gate, asked_at(1)).await,
        waits(&gate, asked_at(2)).await,
    ];
    assert_eq!(waiting(&gate), FEW.calls);
    let begun = Instant::now();
    let mut returns = Vec::new();
    for second in 3..6 {
        let later = gate.admit(&asked_at(second)).await.unwrap_err();
        returns.push(later.after.as_millis());
    }
    assert_eq!(returns, [5000, 7500, 10_000]);
    // Nothing is kept of the refused calls, however many come, and none stays away for longer than a minute.
    for second in 6..1000 {
        let later = gate.admit(&asked_at(second)).await.unwrap_err();
        assert!(later.after <= LONGEST_RETURN, "{later:?}");
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(waiting(&gate), FEW.calls);
}

#[tokio::test(start_paused = true)]
async fn calls_come_again_sooner_at_a_provider_that_takes_many() {
    let gate = gate(Some(10), None);
    let mut held = Vec::new();
    for second in 0..10 {
        held.push(gate.admit(&asked_at(second)).await.unwrap());
    }
    for second in [10, 11] {
        waits(&gate, asked_at(second)).await;
    }
    let mut returns = Vec::new();
    for second in 12..15 {
        let later = gate.admit(&asked_at(second)).await.unwrap_err();
        returns.push(later.after.as_millis());
    }
    assert_eq!(returns, [5000, 5250, 5500]);
}

#[tokio::test(start_paused = true)]
async fn an_older_call_that_comes_again_makes_the_youngest_call_leave() {
    let gate = gate(Some(1), None);
    let held = gate.admit(&asked_at(0)).await.unwrap();
    let older = waits(&gate, asked_at(2)).await;
    let youngest = waits(&gate, asked_at(3)).await;
    let oldest = waits(&gate, asked_at(1)).await;
    let later = youngest.await.unwrap().unwrap_err();
    assert_eq!(later.after, LONGEST);
    assert_eq!(waiting(&gate), FEW.calls);
    drop(held);
    for task in [oldest, older] {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_comes_again_at_the_end_of_a_pause() {
    let gate = gate(Some(1), None);
    gate.pause(Duration::from_secs(30));
    let later = gate.admit(&asked_at(1)).await.unwrap_err();
    // A timer of the test may be late by a millisecond.
    let off = later.after.abs_diff(Duration::from_secs(25));
    assert!(off < Duration::from_millis(10), "{later:?}");
    gate.pause(HOUR);
    let later = gate.admit(&asked_at(1)).await.unwrap_err();
    assert_eq!(later.after, LONGEST_RETURN);
}
