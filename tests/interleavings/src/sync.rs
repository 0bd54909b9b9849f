//! The locks, the clock and the tasks of the checked files, under the names of the product's modules `sync`.
//!
//! Time stands still. A time-out never comes, so a lost notification stops its thread for good, and the check fails. A
//! pause ends after other threads have run.

use std::{
    future::Future,
    ops::{Add, Deref, DerefMut},
    sync::{LockResult, PoisonError, atomic::Ordering::SeqCst},
    time::Duration,
};

pub(crate) use shuttle::{future::spawn, sync::atomic::AtomicUsize};
use shuttle::{
    future::yield_now,
    sync::{Mutex as Inner, MutexGuard as InnerGuard},
};

/// A lock. Other threads may run before the lock is taken, before its release, and after its release
/// (docs/libraries.md, shuttle: a release and the next step are one step).
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    inner: Inner<T>,
    released: AtomicUsize,
}

/// A taken lock.
pub(crate) struct MutexGuard<'a, T> {
    /// Set until the release.
    inner: Option<InnerGuard<'a, T>>,
    released: &'a AtomicUsize,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            inner: Inner::new(value),
            released: AtomicUsize::new(0),
        }
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let guard = |inner| MutexGuard {
            inner: Some(inner),
            released: &self.released,
        };
        let locked = self.inner.lock();
        locked
            .map(guard)
            .map_err(|poisoned| PoisonError::new(guard(poisoned.into_inner())))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().unwrap()
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().unwrap()
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        // The read of an atomic number lets other threads run first.
        self.released.load(SeqCst);
    }
}

/// A moment, as its distance from the only present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(Duration::ZERO)
    }

    pub(crate) fn duration_since(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

/// Waits forever, unless the time is present.
pub(crate) async fn sleep_until(until: Instant) {
    if until > Instant::now() {
        std::future::pending::<()>().await;
    }
}

/// Waits until the scheduler has chosen the thread again.
pub(crate) async fn sleep(_pause: Duration) {
    yield_now().await;
}

/// Waits for the future. The time-out never comes.
pub(crate) async fn timeout<F: Future>(_longest: Duration, future: F) -> F::Output {
    future.await
}
