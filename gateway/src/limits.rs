//! What one tenant may use: requests a second and open streams, counted in memory by each gateway for itself. How many
//! turns may run at once is told to the store, which counts them for all gateways.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use everturn_store::Access;
use governor::{
    DefaultKeyedRateLimiter, Quota,
    clock::{Clock, DefaultClock},
};
use tokio::sync::Notify;

use crate::config::{GatewayConfig, TenantLimits};

/// How often tenants that have sent no request lately are removed from memory. Until then each costs some hundred
/// bytes.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// The tenant sends requests faster than it may; the next one may come after `wait`.
    Requests { wait: Duration },
    /// The tenant has as many streams open at this gateway as it may.
    StreamsOfTenant { open: usize },
    /// This gateway serves as many streams as it may.
    Streams,
}

/// The counts of this gateway. Clones share them.
#[derive(Clone)]
pub(crate) struct TenantUsage {
    rate: Option<Arc<RequestRate>>,
    streams: Arc<Streams>,
}

impl TenantUsage {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let streams = Streams {
            most: config.max_streams,
            most_of_tenant: config.tenant.open_streams.map(to_usize),
            open: Mutex::default(),
            closed: Notify::new(),
        };
        Self {
            rate: RequestRate::new(&config.tenant, SWEEP_EVERY).map(Arc::new),
            streams: Arc::new(streams),
        }
    }

    /// Counts a request.
    pub(crate) fn check(&self, access: &Access) -> Result<(), LimitReached> {
        match self.rate.as_ref().and_then(|rate| rate.wait(access)) {
            Some(wait) => Err(LimitReached::Requests { wait }),
            None => Ok(()),
        }
    }

    /// Takes a place for a stream, which is held until the permit is dropped.
    pub(crate) fn open_stream(&self, access: &Access) -> Result<StreamPermit, LimitReached> {
        Streams::open(&self.streams, &access.tenant_id)
    }

    /// How many streams are open.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.lock().all
    }

    /// Waits until no stream is open. None may be opened meanwhile.
    pub(crate) async fn streams_closed(&self) {
        loop {
            let mut closed = pin!(self.streams.closed.notified());
            // From here on no end of a stream is missed.
            closed.as_mut().enable();
            if self.streams.lock().all == 0 {
                return;
            }
            closed.await;
        }
    }
}

/// Requests of each tenant.
struct RequestRate {
    limiter: DefaultKeyedRateLimiter<String>,
    clock: DefaultClock,
    sweep_every: Duration,
    swept_at: Mutex<Instant>,
}

impl RequestRate {
    fn new(limits: &TenantLimits, sweep_every: Duration) -> Option<Self> {
        let quota =
            Quota::per_second(limits.requests_per_second?).allow_burst(limits.request_burst);
        let swept_at = Mutex::new(Instant::now());
        Some(Self {
            limiter: DefaultKeyedRateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            sweep_every,
            swept_at,
        })
    }

    /// Counts a request. Returns how long to wait when it is one too many.
    fn wait(&self, access: &Access) -> Option<Duration> {
        self.forget_idle();
        let refused = self.limiter.check_key(&access.tenant_id).err()?;
        Some(refused.wait_time_from(self.clock.now()))
    }

    /// Removes the tenants that have sent no request for so long that their limit is unused again.
    fn forget_idle(&self) {
        let Ok(mut swept_at) = self.swept_at.try_lock() else {
            return;
        };
        if swept_at.elapsed() >= self.sweep_every {
            self.limiter.retain_recent();
            *swept_at = Instant::now();
        }
    }
}

/// Open streams: all, and those of each tenant who has any.
struct Streams {
    most: usize,
    /// `None`: any number.
    most_of_tenant: Option<usize>,
    open: Mutex<OpenStreams>,
    /// Notified when the last stream closes.
    closed: Notify,
}

#[derive(Default)]
struct OpenStreams {
    all: usize,
    of_tenant: HashMap<Box<str>, usize>,
}

impl Streams {
    fn open(streams: &Arc<Self>, tenant_id: &str) -> Result<StreamPermit, LimitReached> {
        let mut open = streams.lock();
        if open.all >= streams.most {
            return Err(LimitReached::Streams);
        }
        let of_tenant = open.of_tenant.get(tenant_id).copied().unwrap_or_default();
        if streams.most_of_tenant.is_some_and(|most| of_tenant >= most) {
            return Err(LimitReached::StreamsOfTenant { open: of_tenant });
        }
        open.of_tenant.insert(tenant_id.into(), of_tenant + 1);
        open.all += 1;
        Ok(StreamPermit {
            streams: Arc::clone(streams),
            tenant_id: tenant_id.into(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one open stream; dropping it gives the place back.
pub(crate) struct StreamPermit {
    streams: Arc<Streams>,
    tenant_id: Box<str>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.all -= 1;
        if open.all == 0 {
            self.streams.closed.notify_waiters();
        }
        let Some(of_tenant) = open.of_tenant.get_mut(&self.tenant_id) else {
            return;
        };
        *of_tenant -= 1;
        if *of_tenant == 0 {
            open.of_tenant.remove(&self.tenant_id);
        }
    }
}

fn to_usize(number: NonZeroU32) -> usize {
    usize::try_from(number.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_streams: usize, tenant: TenantLimits) -> TenantUsage {
        TenantUsage::new(&GatewayConfig {
            tenant,
            max_streams,
            ..GatewayConfig::default()
        })
    }

    #[test]
    fn a_tenant_has_its_burst_and_no_other_tenants() {
        let limits = limits(
            9,
            TenantLimits {
                requests_per_second: NonZeroU32::new(1),
                request_burst: NonZeroU32::new(3).unwrap(),
                ..TenantLimits::default()
            },
        );
        for _ in 0..3 {
            assert!(limits.check(&Access::tenant("a")).is_ok());
        }
        assert!(matches!(
            limits.check(&Access::tenant("a")),
            Err(LimitReached::Requests { .. })
        ));
        assert!(limits.check(&Access::tenant("b")).is_ok());
    }

    #[test]
    fn what_has_no_limit_is_not_counted() {
        let none = TenantLimits {
            requests_per_second: None,
            request_burst: NonZeroU32::MIN,
            open_streams: None,
            concurrent_turns: None,
        };
        let limits = limits(100, none);
        assert!((0..10_000).all(|_| limits.check(&Access::tenant("a")).is_ok()));
        let permits: Vec<_> = (0..100)
            .map(|_| limits.open_stream(&Access::tenant("a")).ok().unwrap())
            .collect();
        assert_eq!(
            limits.open_stream(&Access::tenant("b")).err().unwrap(),
            LimitReached::Streams
        );
        drop(permits);
    }

    #[test]
    fn idle_tenants_are_forgotten() {
        let rate = TenantLimits {
            requests_per_second: NonZeroU32::new(1000),
            request_burst: NonZeroU32::MIN,
            ..TenantLimits::default()
        };
        let rate = RequestRate::new(&rate, Duration::ZERO).unwrap();
        for number in 0..5000 {
            rate.wait(&Access::tenant(format!("t{number}")));
        }
        let begun = Instant::now();
        while rate.limiter.len() > 1 {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{} tenants are still known",
                rate.limiter.len()
            );
            rate.wait(&Access::tenant("one more"));
        }
    }

    #[test]
    fn streams_are_counted_for_the_tenant_and_for_the_gateway() {
        let limits = limits(
            3,
            TenantLimits {
                open_streams: NonZeroU32::new(2),
                ..TenantLimits::default()
            },
        );
        let open = |tenant| limits.open_stream(&Access::tenant(tenant));
        let (first, _second) = (open("a").ok().unwrap(), open("a").ok().unwrap());
        assert_eq!(
            open("a").err(),
            Some(LimitReached::StreamsOfTenant { open: 2 })
        );
        let _third = open("b").ok().unwrap();
        assert_eq!(open("b").err(), Some(LimitReached::Streams));
        drop(first);
        assert_eq!(open("a").err(), None);
        assert_eq!(
            limits.streams.lock().of_tenant.len(),
            2,
            "who has none is not kept"
        );
    }
}
