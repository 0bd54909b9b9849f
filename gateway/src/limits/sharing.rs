//! Publishes the counts of this gateway, and learns the counts of other gateways.
//!
//! A gateway publishes its requests some times a second, because no request may wait for Redis. Before a stream opens,
//! the gateway asks Redis for the sum, because too many open streams cannot be paid back later. While Redis is away, a
//! gateway applies the limits to its own counts alone.

use std::{sync::Arc, time::Duration};

use everturn_stream::{Held, Holder, SharedCounts, Spent};
use futures::{StreamExt, stream};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use uuid::Uuid;

use super::{
    reached::{LimitReached, Party},
    requests::RequestLimits,
    streams::{Streams, Told},
};

/// The pause between two publications of counts. Within the pause, several gateways may exceed the limit
/// together. Later requests then wait longer.
const COLLECTED: Duration = Duration::from_millis(100);

/// The pause between two publications of every open stream. A published stream counts for [`LIFETIME`].
const REFRESHED: Duration = Duration::from_secs(10);

/// The time after which streams of a killed gateway stop to count.
const LIFETIME: Duration = Duration::from_secs(30);

/// Calls to Redis at a time.
const CALLS: usize = 8;

/// Owners in a call.
const OWNERS: usize = 100;

/// The connection to the shared counts. Clones share the connection.
#[derive(Clone)]
pub(super) struct Sharing {
    counts: Arc<dyn SharedCounts>,
    /// The name of this process among the gateways.
    id: Arc<str>,
}

impl Sharing {
    pub(super) fn new(counts: Arc<dyn SharedCounts>) -> Self {
        let id = Uuid::new_v4().to_string().into();
        Self { counts, id }
    }

    /// Asks whether a tenant and its owners may have these open streams.
    pub(super) async fn hold(&self, told: &Told) -> Result<(), LimitReached> {
        let held = &told.held;
        match self.counts.hold(self.holder(told.version), held).await {
            Ok(None) => Ok(()),
            Ok(Some(exceeded)) => {
                let owner = held
                    .get(exceeded.index)
                    .and_then(|it| it.of.owner_id.as_ref());
                let of = owner.map_or(Party::Tenant, |_| Party::Owner);
                // The sum includes the refused stream.
                let open = exceeded.open.saturating_sub(1);
                Err(LimitReached::StreamsOf { of, open })
            }
            Err(error) => {
                tracing::debug!(%error, "the gateway counts only the gateway's own streams now");
                Ok(())
            }
        }
    }

    fn holder(&self, version: u64) -> Holder<'_> {
        Holder {
            id: &self.id,
            version,
            lifetime: LIFETIME,
        }
    }
}

/// The task that shares counts.
pub(crate) struct Share {
    sharing: Sharing,
    requests: Arc<RequestLimits>,
    streams: Arc<Streams>,
}

impl Share {
    pub(super) fn new(
        sharing: Sharing,
        requests: Arc<RequestLimits>,
        streams: Arc<Streams>,
    ) -> Self {
        Self {
            sharing,
            requests,
            streams,
        }
    }

    /// Shares counts, and never ends.
    pub(crate) async fn run(&self) {
        let mut refresh = interval_at(Instant::now() + REFRESHED, REFRESHED);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_refresh = tokio::select! {
                _ = refresh.tick() => true,
                () = self.requests.changed() => false,
                () = self.streams.changed() => false,
            };
            if !is_refresh {
                sleep(COLLECTED).await;
            }
            self.tell_requests().await;
            self.tell_streams(is_refresh).await;
        }
    }

    /// Publishes the closed streams, so that the permits of a stopping gateway are free at once.
    pub(crate) async fn end(&self) {
        self.tell_streams(false).await;
    }

    async fn tell_requests(&self) {
        let mut calls = Vec::new();
        for of_tenant in &self.requests.unshared() {
            calls.extend(of_tenant.chunks(OWNERS).map(<[Spent]>::to_vec));
        }
        stream::iter(calls)
            .for_each_concurrent(CALLS, |call| self.spend(call))
            .await;
    }

    async fn spend(&self, spent: Vec<Spent>) {
        match self.sharing.counts.spend(&spent).await {
            Ok(left) => {
                for (spent, left) in spent.iter().zip(left) {
                    self.requests.learn(&spent.of, left);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the gateway counts only the gateway's own requests now");
                for spent in &spent {
                    self.requests.give_back(spent);
                }
            }
        }
    }

    async fn tell_streams(&self, all: bool) {
        let mut calls = Vec::new();
        for told in self.streams.to_tell(all) {
            let parts = told.held.chunks(OWNERS);
            calls.extend(parts.map(|held| (told.version, held.to_vec())));
        }
        stream::iter(calls)
            .for_each_concurrent(CALLS, |(version, held)| self.note(version, held))
            .await;
    }

    /// Publishes the number of open streams. After a failure, the next refresh publishes the number.
    async fn note(&self, version: u64, held: Vec<Held>) {
        let holder = self.sharing.holder(version);
        if let Err(error) = self.sharing.counts.hold(holder, &held).await {
            tracing::debug!(%error, "the number of open streams was not shared with the gateways");
        }
    }
}
