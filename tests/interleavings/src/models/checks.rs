//! Calls at the gate of a provider: calls that end, that leave, and that are cancelled.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, UNIX_EPOCH},
};

use shuttle::{
    future::{JoinHandle, block_on, spawn, yield_now},
    thread,
};

use super::gate::{Arrival, CallLimits, Gate, Later, WaitLimits};
use crate::orders::in_many_orders;

/// A gate with one call in parallel.
fn narrow() -> Arc<Gate> {
    let limits = CallLimits {
        concurrent: Some(1),
        ..CallLimits::default()
    };
    Arc::new(Gate::new("p", limits).unwrap())
}

/// The call that was asked for as the call number `number`.
fn asked(number: u64) -> Arrival {
    Arrival {
        tokens: 600,
        asked_at: UNIX_EPOCH + Duration::from_secs(number),
        limits: WaitLimits {
            longest: Duration::from_hours(1),
            calls: 100,
        },
    }
}

/// A call that ends at once after its begin.
fn call(gate: &Arc<Gate>, arrival: Arrival) -> JoinHandle<Result<(), Later>> {
    let gate = Arc::clone(gate);
    spawn(async move { gate.admit(&arrival).await.map(drop) })
}

/// Every call begins, and no two calls run at the same time.
pub fn calls_take_turns() {
    in_many_orders(|| {
        let (gate, running) = (narrow(), Arc::new(AtomicUsize::new(0)));
        let call = |number| {
            let (gate, running) = (Arc::clone(&gate), Arc::clone(&running));
            spawn(async move {
                let admission = gate.admit(&asked(number)).await.unwrap();
                assert_eq!(running.fetch_add(1, SeqCst), 0, "two calls run");
                yield_now().await;
                running.fetch_sub(1, SeqCst);
                drop(admission);
            })
        };
        let calls = [2, 0, 1].map(call);
        for call in calls {
            block_on(call).unwrap();
        }
    });
}

/// A cancelled call holds up no other call, whether it waits or runs.
pub fn a_cancelled_call_holds_nobody_up() {
    in_many_orders(|| {
        let gate = narrow();
        let held = block_on(gate.admit(&asked(0))).unwrap();
        let (first, second) = (call(&gate, asked(1)), call(&gate, asked(2)));
        let end = thread::spawn(move || drop(held));
        first.abort();
        block_on(second).unwrap().unwrap();
        end.join().unwrap();
        block_on(call(&gate, asked(3))).unwrap().unwrap();
    });
}

/// Of two calls that wait with room for one, the younger call leaves, in whichever order the calls arrive.
pub fn the_younger_call_leaves() {
    in_many_orders(|| {
        let gate = narrow();
        let held = block_on(gate.admit(&asked(0))).unwrap();
        let alone = |number| {
            let mut arrival = asked(number);
            arrival.limits.calls = 1;
            call(&gate, arrival)
        };
        let (young, old) = (alone(2), alone(1));
        block_on(young).unwrap().unwrap_err();
        drop(held);
        block_on(old).unwrap().unwrap();
    });
}

/// A call waits for tokens. The call begins after a running call took fewer tokens than estimated.
pub fn a_settled_call_lets_the_next_call_begin() {
    in_many_orders(|| {
        let limits = CallLimits {
            tokens_per_minute: Some(1000),
            ..CallLimits::default()
        };
        let gate = Arc::new(Gate::new("p", limits).unwrap());
        let first = block_on(gate.admit(&asked(0))).unwrap();
        let second = call(&gate, asked(1));
        first.settle(300);
        block_on(second).unwrap().unwrap();
    });
}
