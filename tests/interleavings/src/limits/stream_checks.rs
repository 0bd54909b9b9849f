//! Streams of a tenant that open and close while the gateway publishes its counts.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
};

use everturn_store::Access;
use shuttle::{
    future::{block_on, spawn},
    thread,
};

use super::streams::{Streams, Told};
use crate::{
    config::{GatewayConfig, OwnerLimits, TenantLimits},
    orders::in_many_orders,
};

fn streams(of_tenant: u32) -> Arc<Streams> {
    let config = GatewayConfig {
        max_streams: 100,
        tenant: TenantLimits {
            open_streams: NonZeroU32::new(of_tenant),
            ..TenantLimits::default()
        },
        owner: OwnerLimits {
            open_streams: NonZeroU32::new(of_tenant),
            ..OwnerLimits::default()
        },
        ..GatewayConfig::default()
    };
    Arc::new(Streams::new(&config, true))
}

/// The published counts: the version and the open streams, by owner; `None` for the tenant.
#[derive(Default)]
struct Published(Mutex<HashMap<Option<String>, (u64, u32)>>);

impl Published {
    /// Notes counts as Redis does: an older version changes nothing.
    fn note(&self, told: &Told) {
        let mut counts = self.0.lock().unwrap();
        for held in &told.held {
            let known = counts.entry(held.of.owner_id.clone()).or_default();
            if told.version >= known.0 {
                *known = (told.version, held.open);
            }
        }
    }

    fn newest(&self) -> u64 {
        let counts = self.0.lock().unwrap();
        counts
            .values()
            .map(|(version, _)| *version)
            .max()
            .unwrap_or(0)
    }
}

/// No more streams are open than the limit allows, and at the end the tenant has its whole limit again.
pub fn the_limit_holds_and_comes_back() {
    in_many_orders(|| {
        let (streams, open) = (streams(2), Arc::new(AtomicU32::new(0)));
        let opens = || {
            let (streams, open) = (Arc::clone(&streams), Arc::clone(&open));
            thread::spawn(move || {
                let Ok((permit, _)) = Streams::open(&streams, &Access::owner("a", "ann")) else {
                    return;
                };
                assert!(open.fetch_add(1, SeqCst) < 2, "three streams are open");
                thread::yield_now();
                open.fetch_sub(1, SeqCst);
                drop(permit);
            })
        };
        for thread in [opens(), opens(), opens()] {
            thread.join().unwrap();
        }
        let again = [(), ()].map(|()| Streams::open(&streams, &Access::owner("a", "ann")).is_ok());
        assert_eq!(again, [true, true]);
    });
}

/// A stopping gateway learns of the end of its last stream.
pub fn the_last_stream_wakes_a_stopping_gateway() {
    in_many_orders(|| {
        let streams = streams(2);
        let permits = [(), ()].map(|()| Streams::open(&streams, &Access::tenant("a")).ok());
        let threads = permits.map(|permit| thread::spawn(move || drop(permit)));
        block_on(streams.closed());
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// The notifications alone lead to the publication of every closed stream, also when older counts arrive later.
pub fn every_closed_stream_is_published() {
    in_many_orders(|| {
        let (streams, published) = (streams(9), Arc::new(Published::default()));
        let threads = ["ann", "bob"].map(|owner| {
            let (streams, published) = (Arc::clone(&streams), Arc::clone(&published));
            thread::spawn(move || {
                let opened = Streams::open(&streams, &Access::owner("a", owner));
                let (permit, told) = opened.ok().unwrap();
                thread::yield_now();
                published.note(&told.unwrap());
                drop(permit);
            })
        });
        let publishes = (Arc::clone(&streams), Arc::clone(&published));
        let publishes = spawn(async move {
            let (streams, published) = publishes;
            // Two streams open and close.
            while published.newest() < 4 {
                streams.changed().await;
                streams
                    .to_tell(false)
                    .iter()
                    .for_each(|told| published.note(told));
            }
        });
        for thread in threads {
            thread.join().unwrap();
        }
        block_on(publishes).unwrap();
        let counts = published.0.lock().unwrap();
        assert!(
            counts.len() == 3 && counts.values().all(|(_, open)| *open == 0),
            "{counts:?}"
        );
        drop(counts);
        assert!(streams.to_tell(true).is_empty());
    });
}
