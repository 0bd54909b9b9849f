//! Counts shared by the gateways of an installation, so that a limit applies to the sum over the gateways.
//!
//! The counts may be lost. A gateway then applies limits to local counts until the rest of the gateways have reported again.

use std::time::Duration;

use async_trait::async_trait;

use crate::api::StreamError;

/// The tenant or owner of a count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Counted {
    /// The tenant.
    pub tenant_id: String,
    /// The owner within the tenant; `None` counts the whole tenant.
    pub owner_id: Option<String>,
}

/// Requests that a gateway has let through since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// The sender of the requests.
    pub of: Counted,
    /// The time until the limit has recovered these requests. A limit of 10 a second recovers one request in 100 ms.
    pub refill: Duration,
}

/// Streams that a gateway has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The reader of the streams.
    pub of: Counted,
    /// The number of open streams.
    pub open: u32,
    /// The limit over all gateways together; `None` only reports the number, without a limit.
    pub most: Option<u32>,
}

/// The gateway that reports open streams, and the version of its report.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// A name unique among all processes.
    pub id: &'a str,
    /// A number that grows with every change. A report older than the stored report is ignored.
    pub version: u64,
    /// The lifetime of the report, because a killed gateway does not close its streams.
    pub lifetime: Duration,
}

/// An exceeded limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The index of the exceeded entry in the reported list.
    pub index: usize,
    /// The number of open streams at all gateways, had the report been accepted.
    pub open: u32,
}

/// Shares counts between gateways. The entries of a call belong to a single tenant.
#[async_trait]
pub trait SharedCounts: Send + Sync {
    /// Adds requests. Returns for every entry the time until its limit has recovered the requests of all gateways.
    async fn spend(&self, spent: &[Spent]) -> Result<Vec<Duration>, StreamError>;

    /// Stores the holder's numbers of open streams. If a limit would be exceeded, stores nothing and returns the
    /// limit.
    async fn hold(
        &self,
        holder: Holder<'_>,
        held: &[Held],
    ) -> Result<Option<Exceeded>, StreamError>;
}
