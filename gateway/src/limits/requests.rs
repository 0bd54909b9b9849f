//! Requests a second, of tenants and of their owners.
//!
//! The state of a limit is a time: the time at which the whole burst is free again (the generic cell rate algorithm). A
//! request moves the time by an interval. The gateway refuses a request that would move the time further away than the
//! burst. Requests at other gateways move the time, too, as soon as this gateway learns of the requests. Therefore a
//! request never waits for another process. When several gateways allow too many requests in the same moment, later
//! requests wait longer.

use std::{collections::HashMap, sync::PoisonError, time::Duration};

use everturn_store::Access;
use everturn_stream::{Counted, Spent};
use tokio::sync::Notify;

use super::reached::{LimitReached, Party};
use crate::{
    config::{GatewayConfig, RequestRate},
    sync::{Instant, Mutex, MutexGuard},
};

/// The pause between two sweeps, which remove tenants and owners without recent requests. An entry costs some hundred bytes.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// The limits, and the requests of tenants and owners.
pub(super) struct RequestLimits {
    tenant: Option<Rate>,
    owner: Option<Rate>,
    is_shared: bool,
    sweep_every: Duration,
    taken: Mutex<Taken>,
    /// Notified when a gateway has new counts to share.
    changed: Notify,
}

#[derive(Clone, Copy)]
struct Rate {
    /// The time after which the limit allows another request.
    interval: Duration,
    /// The time after which the limit allows a whole burst.
    burst: Duration,
}

struct Taken {
    tenants: HashMap<Box<str>, OfTenant>,
    swept_at: Instant,
}

struct OfTenant {
    own: Bucket,
    owners: HashMap<Box<str>, Bucket>,
}

#[derive(Clone, Copy)]
struct Bucket {
    /// The time at which the whole burst is free again.
    full_at: Instant,
    /// The requests of this gateway that are not shared yet, as a multiple of the interval.
    unshared: Duration,
}

impl Rate {
    fn new(limit: RequestRate) -> Option<Self> {
        let interval = Duration::from_secs(1) / limit.per_second?.get();
        Some(Self {
            interval,
            burst: interval.saturating_mul(limit.burst.get()),
        })
    }

    /// Returns the wait of a request; `None` without a wait.
    fn wait(self, bucket: Bucket, now: Instant) -> Option<Duration> {
        let left = bucket.full_at.saturating_duration_since(now) + self.interval;
        left.checked_sub(self.burst).filter(|wait| !wait.is_zero())
    }
}

impl Bucket {
    fn full(now: Instant) -> Self {
        Self {
            full_at: now,
            unshared: Duration::ZERO,
        }
    }

    fn take(&mut self, rate: Rate, now: Instant, is_shared: bool) {
        self.full_at = self.full_at.max(now) + rate.interval;
        if is_shared {
            // At most a burst, which is the most that a gateway shares. The sum stays bounded while Redis is away.
            self.unshared = (self.unshared + rate.interval).min(rate.burst);
        }
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.full_at <= now && self.unshared.is_zero()
    }
}

impl RequestLimits {
    pub(super) fn new(config: &GatewayConfig, is_shared: bool) -> Self {
        Self {
            tenant: Rate::new(config.tenant.requests),
            owner: Rate::new(config.owner.requests),
            is_shared,
            sweep_every: SWEEP_EVERY,
            taken: Mutex::new(Taken {
                tenants: HashMap::new(),
                swept_at: Instant::now(),
            }),
            changed: Notify::new(),
        }
    }

    /// Counts a request, or refuses a request over the limit.
    pub(super) fn check(&self, access: &Access) -> Result<(), LimitReached> {
        let of_owner = self.owner.zip(access.owner_id.as_deref());
        if self.tenant.is_none() && of_owner.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        let mut taken = self.lock();
        taken.forget_idle(now, self.sweep_every);
        let tenant = taken.tenant(&access.tenant_id, now);
        if let Some(wait) = self.tenant.and_then(|rate| rate.wait(tenant.own, now)) {
            let of = Party::Tenant;
            return Err(LimitReached::Requests { of, wait });
        }
        if let Some((rate, owner)) = of_owner {
            let bucket = tenant.owner(owner, now);
            if let Some(wait) = rate.wait(*bucket, now) {
                let of = Party::Owner;
                return Err(LimitReached::Requests { of, wait });
            }
            bucket.take(rate, now, self.is_shared);
        }
        if let Some(rate) = self.tenant {
            tenant.own.take(rate, now, self.is_shared);
        }
        drop(taken);
        if self.is_shared {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Waits for new counts to share.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes the counts to share, grouped by tenant. After a failure, the caller gives counts back with [`Self::give_back`].
    pub(super) fn unshared(&self) -> Vec<Vec<Spent>> {
        let mut taken = self.lock();
        let mut all = Vec::new();
        for (tenant_id, tenant) in &mut taken.tenants {
            let mut spent = Vec::new();
            let mut note = |owner_id: Option<&str>, bucket: &mut Bucket| {
                let refill = std::mem::take(&mut bucket.unshared);
                if refill.is_zero() {
                    return;
                }
                let of = Counted {
                    tenant_id: tenant_id.to_string(),
                    owner_id: owner_id.map(ToOwned::to_owned),
                };
                spent.push(Spent { of, refill });
            };
            note(None, &mut tenant.own);
            for (owner_id, bucket) in &mut tenant.owners {
                note(Some(owner_id), bucket);
            }
            if !spent.is_empty() {
                all.push(spent);
            }
        }
        all
    }

    /// Notes the sum of the gateways: the whole burst is free again after `left`.
    pub(super) fn learn(&self, of: &Counted, left: Duration) {
        let now = Instant::now();
        self.change(of, now, |bucket| {
            bucket.full_at = now + left + bucket.unshared;
        });
    }

    /// Takes back counts that were not shared because of a failure.
    pub(super) fn give_back(&self, spent: &Spent) {
        let rate = match &spent.of.owner_id {
            None => self.tenant,
            Some(_) => self.owner,
        };
        let most = rate.map_or(Duration::ZERO, |rate| rate.burst);
        self.change(&spent.of, Instant::now(), |bucket| {
            bucket.unshared = (bucket.unshared + spent.refill).min(most);
        });
    }

    fn change(&self, of: &Counted, now: Instant, change: impl FnOnce(&mut Bucket)) {
        let mut taken = self.lock();
        let tenant = taken.tenant(&of.tenant_id, now);
        change(match &of.owner_id {
            None => &mut tenant.own,
            Some(owner_id) => tenant.owner(owner_id, now),
        });
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn tenant(&mut self, id: &str, now: Instant) -> &mut OfTenant {
        if !self.tenants.contains_key(id) {
            self.tenants.insert(id.into(), OfTenant::new(now));
        }
        // The entry exists by now, so the look-up makes no new entry.
        self.tenants
            .entry(id.into())
            .or_insert_with(|| OfTenant::new(now))
    }

    /// Removes tenants and owners whose whole burst is free.
    fn forget_idle(&mut self, now: Instant, every: Duration) {
        if now.saturating_duration_since(self.swept_at) < every {
            return;
        }
        self.swept_at = now;
        self.tenants.retain(|_, tenant| {
            tenant.owners.retain(|_, owner| !owner.is_idle(now));
            !tenant.owners.is_empty() || !tenant.own.is_idle(now)
        });
    }
}

impl OfTenant {
    fn new(now: Instant) -> Self {
        Self {
            own: Bucket::full(now),
            owners: HashMap::new(),
        }
    }

    fn owner(&mut self, id: &str, now: Instant) -> &mut Bucket {
        self.owners
            .entry(id.into())
            .or_insert_with(|| Bucket::full(now))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::config::{OwnerLimits, TenantLimits};

    fn rate(per_second: u32, burst: u32) -> RequestRate {
        RequestRate {
            per_second: NonZeroU32::new(per_second),
            burst: NonZeroU32::new(burst).unwrap(),
        }
    }

    fn limits(tenant: RequestRate, owner: RequestRate, is_shared: bool) -> RequestLimits {
        let config = GatewayConfig {
            tenant: TenantLimits {
                requests: tenant,
                ..TenantLimits::default()
            },
            owner: OwnerLimits {
                requests: owner,
                ..OwnerLimits::default()
            },
            ..GatewayConfig::default()
        };
        RequestLimits::new(&config, is_shared)
    }

    fn refused(checked: Result<(), LimitReached>) -> Option<Party> {
        match checked {
            Ok(()) => None,
            Err(LimitReached::Requests { of, wait }) => {
                assert!(!wait.is_zero());
                Some(of)
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tenant_has_its_burst_and_no_other_tenants() {
        let limits = limits(rate(1, 3), rate(0, 1), false);
        for _ in 0..3 {
            assert_eq!(limits.check(&Access::tenant("a")), Ok(()));
        }
        assert_eq!(
            refused(limits.check(&Access::tenant("a"))),
            Some(Party::Tenant)
        );
        assert_eq!(limits.check(&Access::tenant("b")), Ok(()));
    }

    #[test]
    fn an_owner_has_a_part_of_the_tenants_limit() {
        let limits = limits(rate(1, 3), rate(1, 2), false);
        let [ann, bob] = ["ann", "bob"].map(|owner| Access::owner("a", owner));
        assert_eq!([&ann, &ann].map(|access| limits.check(access)), [Ok(()); 2]);
        assert_eq!(refused(limits.check(&ann)), Some(Party::Owner));
        assert_eq!(
            limits.check(&bob),
            Ok(()),
            "refused requests are not counted"
        );
        assert_eq!(refused(limits.check(&bob)), Some(Party::Tenant));
        assert_eq!(
            limits.check(&Access::owner("b", "ann")),
            Ok(()),
            "of another tenant"
        );
    }

    #[test]
    fn what_has_no_limit_is_not_counted() {
        let limits = limits(rate(0, 1), rate(0, 1), true);
        assert!((0..10_000).all(|_| limits.check(&Access::owner("a", "ann")).is_ok()));
        assert!(limits.lock().tenants.is_empty());
    }

    #[test]
    fn who_is_idle_is_forgotten() {
        let mut limits = limits(rate(1_000_000, 1), rate(1_000_000, 1), false);
        limits.sweep_every = Duration::ZERO;
        for number in 0..5000 {
            assert_eq!(
                limits.check(&Access::owner(format!("t{number}"), "ann")),
                Ok(())
            );
        }
        let begun = Instant::now();
        while limits.lock().tenants.len() > 1 {
            assert!(begun.elapsed() < Duration::from_secs(30));
            let _ = limits.check(&Access::tenant("one more"));
        }
    }

    #[test]
    fn what_other_gateways_let_through_counts() {
        let limits = limits(rate(1, 10), rate(0, 1), true);
        let access = Access::tenant("a");
        assert_eq!([limits.check(&access), limits.check(&access)], [Ok(()); 2]);
        let spent = limits.unshared().concat();
        assert_eq!(spent[0].refill, Duration::from_secs(2));
        assert!(limits.unshared().is_empty(), "it is told once");
        // Two requests of this gateway, and seven requests of another gateway.
        limits.learn(&spent[0].of, Duration::from_secs(9));
        assert_eq!(limits.check(&access), Ok(()));
        assert_eq!(refused(limits.check(&access)), Some(Party::Tenant));
        // The one since then is not told yet, and stays when the next answer comes.
        limits.learn(&spent[0].of, Duration::from_secs(8));
        assert_eq!(limits.check(&access), Ok(()));
        assert_eq!(refused(limits.check(&access)), Some(Party::Tenant));
    }

    #[test]
    fn what_could_not_be_shared_is_told_later_and_stays_bounded() {
        let limits = limits(rate(1000, 3), rate(0, 1), true);
        let access = Access::tenant("a");
        for _ in 0..5 {
            while limits.check(&access).is_err() {}
            for spent in limits.unshared().concat() {
                limits.give_back(&spent);
            }
        }
        assert_eq!(
            limits.unshared().concat()[0].refill,
            Duration::from_millis(3)
        );
    }
}
