//! The limits of a tenant and of its owners: requests a second, open streams, and memory.
//!
//! A gateway counts in memory, and shares its counts with the other gateways ([`sharing`]), so that the limits hold for the gateways
//! together. The memory limit is local to a gateway. The store counts running turns; the gateway passes the limit to the store.

pub(crate) mod memory;
mod reached;
mod requests;
mod sharing;
mod streams;

use std::sync::Arc;

use everturn_store::Access;
use everturn_stream::SharedCounts;

use self::{memory::Memory, requests::RequestLimits, sharing::Sharing, streams::Streams};
pub(crate) use self::{
    reached::{LimitReached, Party},
    sharing::Share,
    streams::StreamPermit,
};
use crate::config::GatewayConfig;

/// The counts of this gateway. Clones share them.
#[derive(Clone)]
pub(crate) struct Limiter {
    requests: Arc<RequestLimits>,
    streams: Arc<Streams>,
    memory: Arc<Memory>,
    sharing: Option<Sharing>,
}

impl Limiter {
    /// Makes a limiter with these limits. `shared` shares the counts with other gateways.
    pub(crate) fn new(config: &GatewayConfig, shared: Option<Arc<dyn SharedCounts>>) -> Self {
        Self {
            requests: Arc::new(RequestLimits::new(config, shared.is_some())),
            streams: Arc::new(Streams::new(config, shared.is_some())),
            memory: Memory::new(config),
            sharing: shared.map(Sharing::new),
        }
    }

    /// Counts a request.
    pub(crate) fn check(&self, access: &Access) -> Result<(), LimitReached> {
        self.requests.check(access)
    }

    /// Takes a permit for a stream. The stream counts until the permit is dropped.
    pub(crate) async fn open_stream(&self, access: &Access) -> Result<StreamPermit, LimitReached> {
        let (permit, told) = Streams::open(&self.streams, access)?;
        if let (Some(sharing), Some(told)) = (&self.sharing, told) {
            // A refusal drops the permit.
            sharing.hold(&told).await?;
        }
        Ok(permit)
    }

    /// Returns the memory of the tenants.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Returns the number of open streams.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.count()
    }

    /// Waits until the last stream is closed. The caller must open no stream meanwhile.
    pub(crate) async fn streams_closed(&self) {
        self.streams.closed().await;
    }

    /// Returns the task that shares counts with other gateways; `None` without shared counts.
    pub(crate) fn share(&self) -> Option<Share> {
        let sharing = self.sharing.clone()?;
        Some(Share::new(
            sharing,
            Arc::clone(&self.requests),
            Arc::clone(&self.streams),
        ))
    }
}
