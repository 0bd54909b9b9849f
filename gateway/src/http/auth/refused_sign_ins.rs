//! The limit of refused sign-ins. A client's address that sent too many refused credentials (unknown, wrong, expired or
//! revoked keys, sessions and tokens) must wait before the gateway checks a further credential. A credential that the
//! gateway has accepted lately goes on. A caller therefore waits for another caller's failures only when both share an
//! address and the caller's credential is new to the gateway.

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
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::{config::ConnectionLimits, connections::client::counted};

/// The most remembered credentials that were accepted: some 100 bytes each.
const MAX_ACCEPTED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// The number of counted addresses above which the gateway forgets addresses without recent refusals: some 100 bytes
/// each.
const MAX_ADDRESSES: usize = 50_000;

/// The SHA-256 of a credential: the memory of the gateway has no secret.
type Fingerprint = [u8; 32];

/// This gateway's refused sign-ins.
pub(super) struct RefusedSignIns {
    limiter: Option<DefaultKeyedRateLimiter<IpAddr>>,
    clock: DefaultClock,
    barred: Mutex<HashMap<IpAddr, Instant>>,
    accepted: Mutex<LruCache<Fingerprint, ()>>,
}

impl RefusedSignIns {
    pub(super) fn new(limits: &ConnectionLimits) -> Self {
        let limiter = limits.refused_sign_ins_per_second.map(|rate| {
            let quota = Quota::per_second(rate).allow_burst(limits.refused_sign_in_burst);
            DefaultKeyedRateLimiter::keyed(quota)
        });
        Self {
            limiter,
            clock: DefaultClock::default(),
            barred: Mutex::default(),
            accepted: Mutex::new(LruCache::new(MAX_ACCEPTED)),
        }
    }

    /// Returns how long the address must wait before the gateway checks the credential. `None`: no wait.
    pub(super) fn wait(&self, credential: &str, address: IpAddr) -> Option<Duration> {
        let wait = self.bar_of(counted(address))?;
        let is_known = locked(&self.accepted).contains(&fingerprint(credential));
        (!is_known).then_some(wait)
    }

    /// Notes that the gateway accepted the credential.
    pub(super) fn accepted(&self, credential: &str) {
        if self.limiter.is_some() {
            locked(&self.accepted).put(fingerprint(credential), ());
        }
    }

    /// Notes that the gateway refused the credential, after a request from the address.
    pub(super) fn refused(&self, credential: &str, address: IpAddr) {
        let Some(limiter) = &self.limiter else { return };
        locked(&self.accepted).pop(&fingerprint(credential));
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

    fn bar_of(&self, address: IpAddr) -> Option<Duration> {
        let mut barred = locked(&self.barred);
        let until = *barred.get(&address)?;
        let wait = until.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            barred.remove(&address);
            return None;
        }
        Some(wait)
    }
}

fn fingerprint(credential: &str) -> Fingerprint {
    Sha256::digest(credential).into()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn sign_ins() -> RefusedSignIns {
        RefusedSignIns::new(&ConnectionLimits {
            refused_sign_ins_per_second: NonZeroU32::new(1),
            refused_sign_in_burst: NonZeroU32::new(3).unwrap(),
            ..ConnectionLimits::default()
        })
    }

    #[test]
    fn whoever_is_refused_too_often_waits_and_nobody_else() {
        let sign_ins = sign_ins();
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        sign_ins.accepted("good");
        for _ in 0..3 {
            assert_eq!(sign_ins.wait("new", one), None);
            sign_ins.refused("bad", one);
        }
        sign_ins.refused("bad", one);
        let wait = sign_ins.wait("new", one).unwrap();
        assert!(wait <= Duration::from_secs(1));
        assert_eq!(sign_ins.wait("new", other), None);
        assert_eq!(sign_ins.wait("good", one), None);
        // A credential that is refused after all waits, too.
        sign_ins.refused("good", one);
        assert!(sign_ins.wait("good", one).is_some());
    }

    #[test]
    fn made_up_credentials_and_addresses_do_not_pile_up() {
        let sign_ins = sign_ins();
        for number in 0..200_000_u32 {
            sign_ins.refused("bad", IpAddr::from(number.to_be_bytes()));
        }
        assert!(locked(&sign_ins.barred).len() <= MAX_ADDRESSES);
        for number in 0..20_000_u32 {
            sign_ins.accepted(&number.to_string());
        }
        assert_eq!(locked(&sign_ins.accepted).len(), MAX_ACCEPTED.get());
    }
}
