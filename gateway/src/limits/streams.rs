//! Open streams of this gateway, and of its tenants and owners.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    pin::pin,
    sync::{Arc, PoisonError},
};

use everturn_store::Access;
use everturn_stream::{Counted, Held};
use tokio::sync::Notify;

use super::reached::{LimitReached, Party};
use crate::{
    config::GatewayConfig,
    sync::{Mutex, MutexGuard},
};

pub(super) struct Streams {
    most: usize,
    /// The streams of a tenant; `None` for any number.
    most_of_tenant: Option<u32>,
    most_of_owner: Option<u32>,
    is_shared: bool,
    open: Mutex<OpenStreams>,
    /// Notified when the last stream closes.
    all_closed: Notify,
    /// Notified when the gateway must publish a closed stream.
    changed: Notify,
}

#[derive(Default)]
struct OpenStreams {
    all: usize,
    /// The number of changes.
    version: u64,
    tenants: HashMap<Box<str>, OfTenant>,
}

#[derive(Default)]
struct OfTenant {
    open: u32,
    /// The open streams by owner, where owners have a limit.
    owners: HashMap<Box<str>, u32>,
    /// True while the gateway has not published closed streams yet. A tenant without open streams leaves the table after the
    /// publication.
    is_changed: bool,
}

/// The counts of a tenant that other gateways learn.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) version: u64,
    /// The open streams of the tenant and of its owners.
    pub(super) held: Vec<Held>,
}

impl Streams {
    pub(super) fn new(config: &GatewayConfig, is_shared: bool) -> Self {
        Self {
            most: config.max_streams,
            most_of_tenant: config.tenant.open_streams.map(NonZeroU32::get),
            most_of_owner: config.owner.open_streams.map(NonZeroU32::get),
            is_shared,
            open: Mutex::default(),
            all_closed: Notify::new(),
            changed: Notify::new(),
        }
    }

    /// Takes a permit. Also returns the counts that Redis has to allow, where a limit exists.
    pub(super) fn open(
        streams: &Arc<Self>,
        access: &Access,
    ) -> Result<(StreamPermit, Option<Told>), LimitReached> {
        let (tenant_id, owner_id) = (access.tenant_id.as_str(), access.owner_id.as_deref());
        let owner_id = owner_id.filter(|_| streams.most_of_owner.is_some());
        let mut open = streams.lock();
        if open.all >= streams.most {
            return Err(LimitReached::Streams);
        }
        let known = open.tenants.get(tenant_id);
        let of_tenant = known.map_or(0, |tenant| tenant.open);
        refuse(Party::Tenant, of_tenant, streams.most_of_tenant)?;
        if let Some(owner_id) = owner_id {
            let owner = known.and_then(|tenant| tenant.owners.get(owner_id));
            let of_owner = owner.copied().unwrap_or(0);
            refuse(Party::Owner, of_owner, streams.most_of_owner)?;
        }
        open.all += 1;
        open.version += 1;
        let version = open.version;
        let tenant = open.tenants.entry(tenant_id.into()).or_default();
        tenant.open += 1;
        if let Some(owner_id) = owner_id {
            *tenant.owners.entry(owner_id.into()).or_default() += 1;
        }
        let told = streams.is_shared.then(|| Told {
            version,
            held: streams.held(tenant_id, tenant, owner_id),
        });
        drop(open);
        let permit = StreamPermit {
            streams: Arc::clone(streams),
            tenant_id: tenant_id.into(),
            owner_id: owner_id.map(Into::into),
        };
        Ok((permit, told.filter(|told| !told.held.is_empty())))
    }

    /// Returns the counts of the tenant and of the owner, where a limit exists.
    fn held(&self, tenant_id: &str, tenant: &OfTenant, owner_id: Option<&str>) -> Vec<Held> {
        let held = |owner_id: Option<&str>, open, most: Option<u32>| {
            most.map(|_| Held {
                of: Counted {
                    tenant_id: tenant_id.to_owned(),
                    owner_id: owner_id.map(ToOwned::to_owned),
                },
                open,
                most,
            })
        };
        let of_owner = owner_id.map(|id| tenant.owners.get(id).copied().unwrap_or(0));
        let of_owner = of_owner.and_then(|open| held(owner_id, open, self.most_of_owner));
        let of_tenant = held(None, tenant.open, self.most_of_tenant);
        of_tenant.into_iter().chain(of_owner).collect()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().all
    }

    pub(super) async fn closed(&self) {
        loop {
            let mut closed = pin!(self.all_closed.notified());
            // From here on the end of a stream wakes the future.
            closed.as_mut().enable();
            if self.lock().all == 0 {
                return;
            }
            closed.await;
        }
    }

    /// Waits until a published stream has closed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the counts to publish, grouped by tenant: of tenants with a closed stream, or of `all` tenants. The counts have no
    /// limits, because no stream is opened.
    pub(super) fn to_tell(&self, all: bool) -> Vec<Told> {
        let mut open = self.lock();
        let OpenStreams {
            version, tenants, ..
        } = &mut *open;
        let mut told = Vec::new();
        tenants.retain(|tenant_id, tenant| {
            if all || tenant.is_changed {
                tenant.is_changed = false;
                let owners = tenant.owners.keys();
                let mut held = self.held(tenant_id, tenant, None);
                held.extend(owners.filter_map(|owner| {
                    let mut both = self.held(tenant_id, tenant, Some(owner));
                    both.pop()
                }));
                for held in &mut held {
                    held.most = None;
                }
                told.push(Told {
                    version: *version,
                    held,
                });
            }
            tenant.owners.retain(|_, open| *open > 0);
            tenant.open > 0
        });
        told
    }

    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse(of: Party, open: u32, most: Option<u32>) -> Result<(), LimitReached> {
    match most {
        Some(most) if open >= most => Err(LimitReached::StreamsOf { of, open }),
        _ => Ok(()),
    }
}

/// The permit of an open stream. A drop gives the permit back.
pub(crate) struct StreamPermit {
    streams: Arc<Streams>,
    tenant_id: Box<str>,
    /// Set where owners have a limit.
    owner_id: Option<Box<str>>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.all -= 1;
        open.version += 1;
        if open.all == 0 {
            self.streams.all_closed.notify_waiters();
        }
        let Some(tenant) = open.tenants.get_mut(&self.tenant_id) else {
            return;
        };
        tenant.open -= 1;
        let of_owner = self.owner_id.as_ref().and_then(|owner_id| {
            let of_owner = tenant.owners.get_mut(owner_id)?;
            *of_owner -= 1;
            Some((owner_id, *of_owner))
        });
        if self.streams.is_shared {
            // A tenant without open streams leaves the table after the publication.
            tenant.is_changed = true;
            self.streams.changed.notify_one();
            return;
        }
        if let Some((owner_id, 0)) = of_owner {
            tenant.owners.remove(owner_id);
        }
        if tenant.open == 0 {
            open.tenants.remove(&self.tenant_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{OwnerLimits, TenantLimits};

    fn streams(most: [u32; 3], is_shared: bool) -> Arc<Streams> {
        let [all, tenant, owner] = most;
        let config = GatewayConfig {
            max_streams: usize::try_from(all).unwrap(),
            tenant: TenantLimits {
                open_streams: NonZeroU32::new(tenant),
                ..TenantLimits::default()
            },
            owner: OwnerLimits {
                open_streams: NonZeroU32::new(owner),
                ..OwnerLimits::default()
            },
            ..GatewayConfig::default()
        };
        Arc::new(Streams::new(&config, is_shared))
    }

    fn open(
        streams: &Arc<Streams>,
        tenant: &str,
        owner: &str,
    ) -> Result<StreamPermit, LimitReached> {
        Streams::open(streams, &Access::owner(tenant, owner)).map(|(permit, _)| permit)
    }

    #[test]
    fn streams_are_counted_for_owner_tenant_and_gateway() {
        let streams = streams([4, 3, 2], false);
        let ann = [(); 2].map(|()| open(&streams, "a", "ann").ok().unwrap());
        let of = |of, open| Some(LimitReached::StreamsOf { of, open });
        assert_eq!(open(&streams, "a", "ann").err(), of(Party::Owner, 2));
        let bob = open(&streams, "a", "bob").ok().unwrap();
        assert_eq!(open(&streams, "a", "bob").err(), of(Party::Tenant, 3));
        let other = open(&streams, "b", "ann").ok().unwrap();
        assert_eq!(
            open(&streams, "c", "ann").err(),
            Some(LimitReached::Streams)
        );
        drop(ann);
        assert_eq!(open(&streams, "a", "bob").err(), None);
        drop((bob, other));
        assert_eq!(streams.count(), 0);
        assert!(
            streams.lock().tenants.is_empty(),
            "a party without open streams is removed"
        );
    }

    #[test]
    fn without_a_limit_nobody_is_told() {
        let streams = streams([9, 0, 0], true);
        let (permit, told) = Streams::open(&streams, &Access::owner("a", "ann"))
            .ok()
            .unwrap();
        assert!(told.is_none());
        drop(permit);
        assert!(
            streams
                .to_tell(true)
                .iter()
                .all(|told| told.held.is_empty())
        );
        assert!(streams.lock().tenants.is_empty());
    }

    #[test]
    fn that_streams_close_is_told_once() {
        let streams = streams([9, 5, 2], true);
        let (permit, told) = Streams::open(&streams, &Access::owner("a", "ann"))
            .ok()
            .unwrap();
        let told = told.unwrap();
        let counts = |told: &Told| -> Vec<_> {
            let count = |held: &Held| (held.of.owner_id.clone(), held.open, held.most);
            told.held.iter().map(count).collect()
        };
        let ann = || Some("ann".to_owned());
        assert_eq!(counts(&told), [(None, 1, Some(5)), (ann(), 1, Some(2))]);
        assert!(
            streams.to_tell(false).is_empty(),
            "the count was shared when the stream opened"
        );
        assert_eq!(
            streams.to_tell(true).len(),
            1,
            "every count is shared again at intervals"
        );
        drop(permit);
        let closed = streams.to_tell(false);
        assert_eq!(counts(&closed[0]), [(None, 0, None), (ann(), 0, None)]);
        assert!(closed[0].version > told.version);
        assert!(streams.to_tell(true).is_empty());
        assert!(streams.lock().tenants.is_empty());
    }
}
