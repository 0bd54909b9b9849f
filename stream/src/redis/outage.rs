//! Tracks whether Redis is away, and decides which caller probes Redis.
//!
//! After a failure, calls fail at once until a pause is over. The next call tries, while concurrent calls still fail
//! at once. A caller with work to do waits in [`Outage::may_try`]: one caller goes on after each pause, and all
//! callers go on after a successful call. Therefore a Redis that is away, or has just come back, gets one call per
//! process and pause, however many texts are written and read.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};

use super::{
    error::Error,
    options::{RedisStreamOptions, backoff},
};

/// The state of an outage, as known by this process.
#[derive(Debug)]
pub(super) struct Outage {
    /// The time limit of one try.
    timeout: Duration,
    max_backoff: Duration,
    state: Mutex<State>,
    /// True from the first failure until a call succeeds.
    is_away: watch::Sender<bool>,
    /// Held by the caller that tries next.
    turns: tokio::sync::Mutex<()>,
    /// Notified when the time of the next try has changed.
    moved: Notify,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// The time until which calls fail.
    retry_at: Option<Instant>,
    /// True when a released caller has not made its call yet.
    is_reserved: bool,
}

impl Outage {
    pub(super) fn new(options: &RedisStreamOptions) -> Self {
        Self {
            timeout: options.command_timeout,
            max_backoff: options.max_backoff,
            state: Mutex::default(),
            is_away: watch::Sender::new(false),
            turns: tokio::sync::Mutex::default(),
            moved: Notify::new(),
        }
    }

    /// Admits a call, or fails while Redis is known to be away.
    pub(super) fn admit(&self) -> Result<(), Error> {
        let mut state = self.lock();
        let Some(retry_at) = state.retry_at else {
            return Ok(());
        };
        let now = Instant::now();
        if now < retry_at && !state.is_reserved {
            return Err(Error::Away(retry_at - now));
        }
        // This call tries. Until the outcome, concurrent calls fail.
        state.is_reserved = false;
        state.retry_at = Some(now + self.timeout);
        Ok(())
    }

    /// Waits while Redis is known to be away, or until this caller may try. Cancel safe.
    pub(super) async fn may_try(&self) {
        let mut is_away = self.is_away.subscribe();
        tokio::select! {
            biased;
            // The sender is in `self`, so the wait cannot fail.
            _ = is_away.wait_for(|is_away| !is_away) => {}
            () = self.turn() => {}
        }
    }

    async fn turn(&self) {
        let _turn = self.turns.lock().await;
        while let Err(retry_at) = self.reserve() {
            tokio::select! {
                () = sleep_until(retry_at) => {}
                () = self.moved.notified() => {}
            }
        }
    }

    /// Reserves the next try for the caller, or returns the time of the next try. If the caller makes no call within
    /// the longest pause, the next caller may try.
    fn reserve(&self) -> Result<(), Instant> {
        let mut state = self.lock();
        let now = Instant::now();
        match state.retry_at {
            Some(retry_at) if now < retry_at => return Err(retry_at),
            Some(_) => {
                state.is_reserved = true;
                state.retry_at = Some(now + self.max_backoff);
            }
            None => {}
        }
        Ok(())
    }

    /// Makes the next try due now, because Redis is probably back.
    pub(super) fn try_now(&self) {
        let mut state = self.lock();
        if state.retry_at.is_some() {
            state.retry_at = Some(Instant::now());
            self.moved.notify_one();
        }
    }

    /// Records a successful call.
    pub(super) fn succeeded(&self) {
        let mut state = self.lock();
        if state.failures == 0 {
            return;
        }
        tracing::info!("Redis is back; texts are shown live again");
        *state = State::default();
        self.is_away.send_replace(false);
    }

    /// Records a failed call.
    pub(super) fn failed(&self, error: &Error) {
        let mut state = self.lock();
        if state.failures == 0 {
            tracing::warn!(%error, "Redis is away; texts are not shown live");
            self.is_away.send_replace(true);
        }
        state.failures = state.failures.saturating_add(1);
        state.is_reserved = false;
        state.retry_at = Some(Instant::now() + backoff(state.failures, self.max_backoff));
        self.moved.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::time::{advance, sleep, timeout};

    use super::*;

    fn outage() -> Outage {
        let outage = Outage::new(&RedisStreamOptions::default());
        outage.failed(&Error::Lost);
        outage
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_tries_after_each_pause_and_all_go_on_when_it_succeeds() {
        let (outage, tries) = (Arc::new(outage()), Arc::new(AtomicUsize::new(0)));
        let callers: Vec<_> = (0..5000)
            .map(|_| {
                let (outage, tries) = (Arc::clone(&outage), Arc::clone(&tries));
                tokio::spawn(async move {
                    loop {
                        outage.may_try().await;
                        if !*outage.is_away.borrow() {
                            return;
                        }
                        outage.admit().expect("who is let through may call");
                        tries.fetch_add(1, Ordering::Relaxed);
                        outage.failed(&Error::Lost);
                    }
                })
            })
            .collect();
        sleep(Duration::from_secs(10)).await;
        let tries = tries.load(Ordering::Relaxed);
        assert!((40..=85).contains(&tries), "{tries} tries in 10 s");
        outage.succeeded();
        let at = Instant::now();
        for caller in callers {
            caller.await.unwrap();
        }
        assert_eq!(at.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_let_through_and_does_not_call_holds_nobody_up_for_long() {
        let (outage, longest) = (outage(), RedisStreamOptions::default().max_backoff);
        for _ in 0..3 {
            timeout(longest, outage.may_try()).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_not_let_through_fail_while_one_tries() {
        let outage = outage();
        assert!(outage.admit().is_err());
        advance(RedisStreamOptions::default().max_backoff).await;
        assert!(outage.admit().is_ok());
        assert!(outage.admit().is_err(), "one tries already");
        outage.try_now();
        assert!(outage.admit().is_ok());
        outage.succeeded();
        assert!(outage.admit().is_ok() && outage.admit().is_ok());
    }
}
