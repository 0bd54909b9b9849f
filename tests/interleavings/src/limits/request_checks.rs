//! Requests of a tenant while the gateway publishes its counts.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use everturn_store::Access;
use shuttle::{
    future::{block_on, spawn},
    thread,
};

use super::requests::RequestLimits;
use crate::{
    config::{GatewayConfig, RequestRate, TenantLimits},
    orders::in_many_orders,
};

/// The requests of a burst. Time stands still, so there are no others.
const BURST: u32 = 3;

fn limits() -> Arc<RequestLimits> {
    let requests = RequestRate {
        per_second: NonZeroU32::new(1),
        burst: NonZeroU32::new(BURST).unwrap(),
    };
    let config = GatewayConfig {
        tenant: TenantLimits {
            requests,
            ..TenantLimits::default()
        },
        ..GatewayConfig::default()
    };
    Arc::new(RequestLimits::new(&config, true))
}

/// Starts two callers with two requests each. The callers count the allowed requests.
fn callers(limits: &Arc<RequestLimits>, allowed: &Arc<AtomicU32>) -> [thread::JoinHandle<()>; 2] {
    [(), ()].map(|()| {
        let (limits, allowed) = (Arc::clone(limits), Arc::clone(allowed));
        thread::spawn(move || {
            for _ in 0..2 {
                if limits.check(&Access::tenant("a")).is_ok() {
                    allowed.fetch_add(1, SeqCst);
                }
            }
        })
    })
}

/// A publication that fails at first and succeeds later loses no request, and repeats no request. The publications
/// follow the notifications alone.
pub fn every_request_is_published_once() {
    in_many_orders(|| {
        let (limits, allowed) = (limits(), Arc::new(AtomicU32::new(0)));
        let publishes = Arc::clone(&limits);
        let publishes = spawn(async move {
            let (mut published, mut has_failed) = (Duration::ZERO, false);
            while published < Duration::from_secs(BURST.into()) {
                publishes.changed().await;
                let mut spent = publishes.unshared().concat();
                if !std::mem::replace(&mut has_failed, true) {
                    for unpublished in &spent {
                        publishes.give_back(unpublished);
                    }
                    // The engine publishes again after a pause.
                    spent = publishes.unshared().concat();
                }
                published += spent.iter().map(|spent| spent.refill).sum::<Duration>();
            }
            published
        });
        for caller in callers(&limits, &allowed) {
            caller.join().unwrap();
        }
        let published = block_on(publishes).unwrap();
        assert_eq!(allowed.load(SeqCst), BURST);
        assert_eq!(published, Duration::from_secs(BURST.into()));
    });
}

/// The answer to a publication forgets no request that came after the publication.
pub fn an_answer_forgets_no_request() {
    in_many_orders(|| {
        let (limits, allowed) = (limits(), Arc::new(AtomicU32::new(0)));
        let callers = callers(&limits, &allowed);
        let mut sum = Duration::ZERO;
        for _ in 0..2 {
            for spent in limits.unshared().concat() {
                thread::yield_now();
                sum += spent.refill;
                limits.learn(&spent.of, sum);
            }
        }
        for caller in callers {
            caller.join().unwrap();
        }
        assert_eq!(allowed.load(SeqCst), BURST);
    });
}
