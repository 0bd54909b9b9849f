//! The gate of a provider: calls over its limits wait here, in the order of their arrival.
//!
//! Every process has separate gates. The limits apply to the calls of its turns, and not to the HTTP attempts of one
//! call.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex as SyncMutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_telemetry::turns;
use tokio::{
    sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

const MINUTE: Duration = Duration::from_mins(1);

/// The limits of one process's calls to a provider; `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// The most calls in parallel.
    pub concurrent: Option<usize>,
    /// The most calls that begin within any minute.
    pub per_minute: Option<usize>,
    /// The most tokens, input and output, of the calls that begin within any minute.
    pub tokens_per_minute: Option<u64>,
}

/// The gate of one provider.
pub(super) struct Gate {
    provider: String,
    limits: CallLimits,
    slots: Option<Arc<Semaphore>>,
    /// The queue of waiting calls. The holder of the lock goes through next; tokio grants the lock in the order of the
    /// requests.
    row: Mutex<()>,
    begun: Arc<Begun>,
    /// The time before which no call goes through.
    paused_until: SyncMutex<Option<Instant>>,
    waiting: AtomicUsize,
}

/// The calls of the last minute, oldest first.
#[derive(Debug, Default)]
struct Begun {
    calls: SyncMutex<VecDeque<BegunCall>>,
    /// Notified when a call took fewer tokens than its estimate.
    has_room: Notify,
}

#[derive(Debug)]
struct BegunCall {
    at: Instant,
    /// The call's tokens: an estimate at first, later the exact number; at least 1.
    tokens: u64,
    id: u64,
}

/// The permission to make one call. Dropping the admission frees the slot.
#[derive(Debug, Default)]
pub struct Admission {
    _slot: Option<OwnedSemaphorePermit>,
    begun: Option<(Arc<Begun>, u64)>,
}

impl Admission {
    /// Replaces the estimate of the call's tokens by the real number.
    pub fn settle(&self, tokens: u64) {
        let Some((begun, id)) = &self.begun else {
            return;
        };
        let mut calls = begun.lock();
        if let Some(call) = calls.iter_mut().rfind(|call| call.id == *id) {
            call.tokens = tokens.max(1);
            begun.has_room.notify_one();
        }
    }
}

impl Begun {
    fn lock(&self) -> MutexGuard<'_, VecDeque<BegunCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    /// Returns the gate of the provider; `None` without limits.
    pub(super) fn new(provider: &str, limits: CallLimits) -> Option<Self> {
        (limits != CallLimits::default()).then(|| Self {
            provider: provider.to_owned(),
            limits,
            slots: limits.concurrent.map(Semaphore::new).map(Arc::new),
            row: Mutex::default(),
            begun: Arc::default(),
            paused_until: SyncMutex::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Waits until one more call with about `tokens` tokens may begin. Dropping the future gives up the position in the
    /// queue.
    pub(super) async fn admit(&self, tokens: u64) -> Admission {
        let _waiting = Waiting::of(self);
        let _row = self.row.lock().await;
        let slot = match &self.slots {
            // The semaphore is never closed.
            Some(slots) => slots.clone().acquire_owned().await.ok(),
            None => None,
        };
        while let Some(at) = self.next(tokens) {
            tokio::select! {
                () = sleep_until(at) => {}
                () = self.begun.has_room.notified() => {}
            }
        }
        Admission {
            _slot: slot,
            begun: self.begin(tokens),
        }
    }

    /// Counts a call that begins now, if calls or tokens per minute have a limit.
    fn begin(&self, tokens: u64) -> Option<(Arc<Begun>, u64)> {
        let CallLimits {
            per_minute,
            tokens_per_minute,
            ..
        } = self.limits;
        if per_minute.is_none() && tokens_per_minute.is_none() {
            return None;
        }
        let mut calls = self.begun.lock();
        let id = calls.back().map_or(0, |last| last.id + 1);
        calls.push_back(BegunCall {
            at: Instant::now(),
            tokens: tokens.max(1),
            id,
        });
        Some((Arc::clone(&self.begun), id))
    }

    /// Stops new calls for the time `wait`, because the provider asks for a pause.
    pub(super) fn pause(&self, wait: Duration) {
        let mut paused = self.paused();
        let until = Instant::now() + wait;
        if paused.is_none_or(|known| known < until) {
            *paused = Some(until);
            tracing::info!(provider = self.provider, ?wait, "the provider asks to wait");
        }
    }

    /// Returns the time at which a call with `tokens` tokens may begin; `None` when it may begin now.
    fn next(&self, tokens: u64) -> Option<Instant> {
        let now = Instant::now();
        let mut calls = self.begun.lock();
        while calls
            .front()
            .is_some_and(|oldest| oldest.at + MINUTE <= now)
        {
            calls.pop_front();
        }
        let most = self.limits.per_minute.unwrap_or(usize::MAX);
        let too_many = (calls.len() + 1).saturating_sub(most);
        // A call above the whole limit goes through alone.
        let most = self.limits.tokens_per_minute.unwrap_or(u64::MAX);
        let room = most - tokens.min(most);
        let mut taken: u64 = calls.iter().map(|call| call.tokens).sum();
        let too_large = calls.iter().take_while(|call| {
            let has_room = taken <= room;
            taken -= call.tokens;
            !has_room
        });
        let ends = too_many.max(too_large.count());
        let free = ends.checked_sub(1).and_then(|last| calls.get(last));
        let free = free.map(|call| call.at + MINUTE);
        let at = free.into_iter().chain(*self.paused()).max()?;
        (at > now).then_some(at)
    }

    fn paused(&self) -> MutexGuard<'_, Option<Instant>> {
        self.paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a call as waiting until the value is dropped.
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
            tokens_per_minute: None,
        };
        Arc::new(Gate::new("p", limits).unwrap())
    }

    async fn is_open(gate: &Gate) -> bool {
        timeout(Duration::from_millis(1), gate.admit(1))
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
        let (first, _second) = (gate.admit(1).await, gate.admit(1).await);
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
            drop(gate.admit(1).await);
            times.push(begun.elapsed().as_secs());
            advance(Duration::from_secs(10)).await;
        }
        assert_eq!(times, [0, 10, 20, 60, 70, 80, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_go_through_in_their_order_and_who_leaves_holds_nobody_up() {
        let gate = gate(Some(1), Some(1000));
        let held = gate.admit(1).await;
        let order: Arc<StdMutex<Vec<usize>>> = Arc::default();
        let mut waiting = Vec::new();
        for number in 0..20 {
            let (gate, order) = (gate.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let _admission = gate.admit(1).await;
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
            async move { drop(gate.admit(1).await) }
        });
        advance(Duration::from_secs(20)).await;
        // A longer pause that comes while a call waits holds that call, too.
        gate.pause(Duration::from_secs(40));
        waits.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_take_only_so_many_tokens_in_a_minute() {
        let limits = CallLimits {
            tokens_per_minute: Some(1000),
            ..CallLimits::default()
        };
        let gate = Arc::new(Gate::new("p", limits).unwrap());
        let first = gate.admit(600).await;
        let is_open = async |tokens| {
            let admitted = timeout(Duration::from_millis(1), gate.admit(tokens)).await;
            admitted.is_ok()
        };
        assert!(!is_open(600).await);
        // The first call took less than was thought, so the one that waits goes through at once.
        let begun = Instant::now();
        let waits = tokio::spawn({
            let gate = gate.clone();
            async move { gate.admit(600).await }
        });
        tokio::task::yield_now().await;
        first.settle(300);
        let second = waits.await.unwrap();
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
}
