//! What a tenant and each of its owners may use: requests a second, open streams, and memory.
//!
//! A gateway counts in memory, and shares what it counts with the other gateways ([`sharing`]), so that the limits hold
//! at all of them together. Memory is each gateway's own. How many turns may run at once is told to the store, which
//! counts them.

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
    /// Counts for these limits; with other gateways, if there is something to share counts by.
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

    /// Takes a place for a stream, which is held until the permit is dropped.
    pub(crate) async fn open_stream(&self, access: &Access) -> Result<StreamPermit, LimitReached> {
        let (permit, told) = Streams::open(&self.streams, access)?;
        if let (Some(sharing), Some(told)) = (&self.sharing, told) {
            // Refused: the permit is dropped.
            sharing.hold(&told).await?;
        }
        Ok(permit)
    }

    /// What tenants hold.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// How many streams are open.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.count()
    }

    /// Waits until no stream is open. None may be opened meanwhile.
    pub(crate) async fn streams_closed(&self) {
        self.streams.closed().await;
    }

    /// What shares the counts with other gateways while it runs; `None` when there is nothing to share them by.
    pub(crate) fn share(&self) -> Option<Share> {
        let sharing = self.sharing.clone()?;
        Some(Share::new(
            sharing,
            Arc::clone(&self.requests),
            Arc::clone(&self.streams),
        ))
    }
}
