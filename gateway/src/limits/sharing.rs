//! Tells other gateways what this one counts, and learns what they count.
//!
//! Requests are told some times a second, so that no request waits for an answer. A stream asks before it is opened: many
//! that are opened at once at several gateways would not be paid back. While nothing can be shared, each gateway keeps
//! the limits alone.

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

/// How long counts are collected before they are told. Requests that several gateways let through within it may exceed
/// the limit together; what they exceed it by is paid back.
const COLLECTED: Duration = Duration::from_millis(100);

/// How often all streams are told again, so that they go on to count.
const REFRESHED: Duration = Duration::from_secs(10);

/// How long streams count that nobody tells of any more: those of a gateway that was killed.
const LIFETIME: Duration = Duration::from_secs(30);

/// Calls that are made at once.
const CALLS: usize = 8;

/// Owners that one call names.
const OWNERS: usize = 100;

/// What counts are shared by. Clones share it.
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

    /// Asks whether these streams may be open.
    pub(super) async fn hold(&self, told: &Told) -> Result<(), LimitReached> {
        let held = &told.held;
        match self.counts.hold(self.holder(told.version), held).await {
            Ok(None) => Ok(()),
            Ok(Some(exceeded)) => {
                let owner = held
                    .get(exceeded.place)
                    .and_then(|it| it.of.owner_id.as_ref());
                let of = owner.map_or(Party::Tenant, |_| Party::Owner);
                // The one that was asked for is not open.
                let open = exceeded.open.saturating_sub(1);
                Err(LimitReached::StreamsOf { of, open })
            }
            Err(error) => {
                tracing::debug!(%error, "streams are counted by this gateway alone");
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

/// Shares counts for as long as it runs.
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

    /// Never ends.
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

    /// Tells what has closed since then, so that the places of a gateway that stops are free at once.
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
                tracing::debug!(%error, "requests are counted by this gateway alone");
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

    /// Tells how many streams are open. What could not be told is told with everything else, at the next refresh.
    async fn note(&self, version: u64, held: Vec<Held>) {
        let holder = self.sharing.holder(version);
        if let Err(error) = self.sharing.counts.hold(holder, &held).await {
            tracing::debug!(%error, "how many streams are open was not told");
        }
    }
}
