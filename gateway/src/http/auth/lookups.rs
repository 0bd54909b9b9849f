//! Limits for look-ups of unknown keys. The gateway remembers an unknown key for some seconds, and an address that
//! tries too many unknown keys must wait. Valid keys are not counted. A caller therefore waits for another caller's
//! failures only when both share an address and the caller's key is new to the gateway.

use std::{
    collections::HashMap,
    net::IpAddr,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use governor::{
    DefaultKeyedRateLimiter, Quota,
    clock::{Clock, DefaultClock},
};
use lru::LruCache;
use tokio::time::Instant;

use crate::{config::ConnectionLimits, connections::client::counted};

/// The most remembered ids of unknown keys: some 100 bytes each.
const MAX_UNKNOWN: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// The number of counted addresses above which the gateway forgets addresses without recent tries: some 100 bytes each.
const MAX_ADDRESSES: usize = 50_000;

/// This gateway's look-ups without a found key.
pub(super) struct FailedLookups {
    ttl: Duration,
    unknown: Mutex<LruCache<String, Instant>>,
    limiter: Option<DefaultKeyedRateLimiter<IpAddr>>,
    clock: DefaultClock,
    barred: Mutex<HashMap<IpAddr, Instant>>,
}

impl FailedLookups {
    /// Makes the limits. `ttl` is how long the gateway remembers an unknown key.
    pub(super) fn new(limits: &ConnectionLimits, ttl: Duration) -> Self {
        let limiter = limits.unknown_keys_per_second.map(|rate| {
            let quota = Quota::per_second(rate).allow_burst(limits.unknown_key_burst);
            DefaultKeyedRateLimiter::keyed(quota)
        });
        Self {
            ttl,
            unknown: Mutex::new(LruCache::new(MAX_UNKNOWN)),
            limiter,
            clock: DefaultClock::default(),
            barred: Mutex::default(),
        }
    }

    /// Returns true when the store reported the key as unknown within `ttl`.
    pub(super) fn remembers(&self, id: &str) -> bool {
        let mut unknown = locked(&self.unknown);
        let found = unknown.get(id).map(Instant::elapsed);
        found.is_some_and(|age| age < self.ttl)
    }

    /// Returns how long the address must wait before its next look-up in the store.
    pub(super) fn wait(&self, address: IpAddr) -> Option<Duration> {
        let address = counted(address);
        let mut barred = locked(&self.barred);
        let until = *barred.get(&address)?;
        let wait = until.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            barred.remove(&address);
            return None;
        }
        Some(wait)
    }

    /// Notes that the store has no key with the id, after a request from the address.
    pub(super) fn failed(&self, id: &str, address: IpAddr) {
        locked(&self.unknown).put(id.to_owned(), Instant::now());
        let Some(limiter) = &self.limiter else { return };
        if limiter.len() >= MAX_ADDRESSES {
            limiter.retain_recent();
        }
        let address = counted(address);
        let Err(refused) = limiter.check_key(&address) else {
            return;
        };
        let now = Instant::now();
        let mut barred = locked(&self.barred);
        if barred.len() >= MAX_ADDRESSES {
            barred.retain(|_, until| *until > now);
        }
        barred.insert(address, now + refused.wait_time_from(self.clock.now()));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn lookups() -> FailedLookups {
        let limits = ConnectionLimits {
            unknown_keys_per_second: NonZeroU32::new(1),
            unknown_key_burst: NonZeroU32::new(3).unwrap(),
            ..ConnectionLimits::default()
        };
        FailedLookups::new(&limits, Duration::from_mins(1))
    }

    #[test]
    fn whoever_tries_too_many_keys_waits_and_nobody_else() {
        let lookups = lookups();
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        for number in 0..3 {
            assert_eq!(lookups.wait(one), None);
            lookups.failed(&format!("k{number}"), one);
        }
        lookups.failed("k4", one);
        assert!(
            lookups
                .wait(one)
                .is_some_and(|wait| wait <= Duration::from_secs(1))
        );
        assert_eq!(lookups.wait(other), None);
        assert!(lookups.remembers("k1") && !lookups.remembers("other"));
    }

    #[test]
    fn made_up_keys_and_addresses_do_not_pile_up() {
        let lookups = lookups();
        for number in 0..200_000_u32 {
            let address = IpAddr::from(number.to_be_bytes());
            lookups.failed(&format!("k{number}"), address);
        }
        assert_eq!(locked(&lookups.unknown).len(), MAX_UNKNOWN.get());
        assert!(locked(&lookups.barred).len() <= MAX_ADDRESSES);
    }
}
