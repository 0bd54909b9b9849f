//! The gate of a provider: calls over its limits wait here, in the order in which they came.
//!
//! Each process has gates of its own. The limits hold for the calls that its turns make, and not for the tries of one call.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex as SyncMutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_telemetry::turns;
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

const MINUTE: Duration = Duration::from_mins(1);

/// How many calls of a provider one process makes; `None`: as many as there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// The most calls at the same time.
    pub concurrent: Option<usize>,
    /// The most calls that begin within any minute.
    pub per_minute: Option<usize>,
}

/// The gate of one provider.
pub(super) struct Gate {
    provider: String,
    slots: Option<Arc<Semaphore>>,
    per_minute: Option<usize>,
    /// When the calls of the last minute began. Who holds it is the next to go through; tokio gives it away in the order in
    /// which it was asked for.
    begun: Mutex<VecDeque<Instant>>,
    /// Nobody goes through before.
    paused_until: SyncMutex<Option<Instant>>,
    waiting: AtomicUsize,
}

/// The permission to make one call. Its place is free for others when this is dropped.
#[derive(Debug, Default)]
pub struct Admission {
    _slot: Option<OwnedSemaphorePermit>,
}

impl Gate {
    /// The gate of this provider; `None` without limits.
    pub(super) fn new(provider: &str, limits: CallLimits) -> Option<Self> {
        (limits != CallLimits::default()).then(|| Self {
            provider: provider.to_owned(),
            slots: limits.concurrent.map(Semaphore::new).map(Arc::new),
            per_minute: limits.per_minute,
            begun: Mutex::default(),
            paused_until: SyncMutex::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Waits until one more call may begin. Who drops the future gives its place in the row up.
    pub(super) async fn admit(&self) -> Admission {
        let _waiting = Waiting::of(self);
        let mut begun = self.begun.lock().await;
        let slot = match &self.slots {
            // The semaphore is never closed.
            Some(slots) => slots.clone().acquire_owned().await.ok(),
            None => None,
        };
        while let Some(at) = self.next(&begun) {
            sleep_until(at).await;
        }
        if let Some(most) = self.per_minute {
            begun.push_back(Instant::now());
            while begun.len() > most {
                begun.pop_front();
            }
        }
        Admission { _slot: slot }
    }

    /// Lets nobody through for so long, because the provider asks for it.
    pub(super) fn pause(&self, wait: Duration) {
        let mut paused = self.paused();
        let until = Instant::now() + wait;
        if paused.is_none_or(|known| known < until) {
            *paused = Some(until);
            tracing::info!(provider = self.provider, ?wait, "the provider asks to wait");
        }
    }

    /// When a call may begin that may not begin now.
    fn next(&self, begun: &VecDeque<Instant>) -> Option<Instant> {
        let is_full = self.per_minute.is_some_and(|most| begun.len() >= most);
        let free = begun
            .front()
            .filter(|_| is_full)
            .map(|oldest| *oldest + MINUTE);
        let at = free.into_iter().chain(*self.paused()).max()?;
        (at > Instant::now()).then_some(at)
    }

    fn paused(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a call as waiting until it is dropped.
struct Waiting<'a>(&'a Gate);

impl<'a> Waiting<'a> {
    fn of(gate: &'a Gate) -> Self {
        let before = gate.waiting.fetch_add(1, Ordering::Relaxed);
        turns::calls_waiting(&gate.provider, before + 1);
        Self(gate)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let before = self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        turns::calls_waiting(&self.0.provider, before - 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use tokio::time::{advance, timeout};

    use super::*;

    fn gate(concurrent: Option<usize>, per_minute: Option<usize>) -> Arc<Gate> {
        let limits = CallLimits {
            concurrent,
            per_minute,
        };
        Arc::new(Gate::new("p", limits).unwrap())
    }

    async fn is_open(gate: &Gate) -> bool {
        timeout(Duration::from_millis(1), gate.admit())
            .await
            .is_ok()
    }

    #[test]
    fn without_limits_there_is_none() {
        assert!(Gate::new("p", CallLimits::default()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_calls_run_at_once() {
        let gate = gate(Some(2), None);
        let (first, _second) = (gate.admit().await, gate.admit().await);
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
            drop(gate.admit().await);
            times.push(begun.elapsed().as_secs());
            advance(Duration::from_secs(10)).await;
        }
        assert_eq!(times, [0, 10, 20, 60, 70, 80, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_go_through_in_their_order_and_who_leaves_holds_nobody_up() {
        let gate = gate(Some(1), Some(1000));
        let held = gate.admit().await;
        let order: Arc<StdMutex<Vec<usize>>> = Arc::default();
        let mut waiting = Vec::new();
        for number in 0..20 {
            let (gate, order) = (gate.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let _admission = gate.admit().await;
                order.lock().unwrap().push(number);
            }));
            tokio::task::yield_now().await;
        }
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 20);
        // The first one in the row, and one in its middle, are cancelled.
        for left in [0, 7] {
            waiting[left].abort();
        }
        drop(held);
        for task in waiting {
            let _is_cancelled = task.await;
        }
        let expected: Vec<_> = (1..20).filter(|number| *number != 7).collect();
        assert_eq!(*order.lock().unwrap(), expected);
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_everybody_and_the_longest_one_counts() {
        let gate = gate(Some(10), None);
        gate.pause(Duration::from_secs(30));
        gate.pause(Duration::from_secs(5));
        assert!(!is_open(&gate).await);
        let begun = Instant::now();
        let waits = tokio::spawn({
            let gate = gate.clone();
            async move { drop(gate.admit().await) }
        });
        advance(Duration::from_secs(20)).await;
        // A longer pause that comes while a call waits holds that call, too.
        gate.pause(Duration::from_secs(40));
        waits.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 60);
    }
}
