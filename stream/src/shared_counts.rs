//! Counts that all gateways of an installation share, so that a limit holds at all of them together.
//!
//! What is here may be lost: then each gateway's own counts hold until the others have told theirs again.

use std::time::Duration;

use async_trait::async_trait;

use crate::api::StreamError;

/// Whose a count is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Counted {
    /// The tenant.
    pub tenant_id: String,
    /// This owner of the tenant alone; `None`: the whole tenant.
    pub owner_id: Option<String>,
}

/// Requests that a gateway has let through since it told last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// Who has sent them.
    pub of: Counted,
    /// The time after which the limit gives back what they took of it. A limit of 10 in a second gives one back in 100 ms.
    pub refill: Duration,
}

/// Streams that a gateway has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Who reads them.
    pub of: Counted,
    /// How many.
    pub open: u32,
    /// The most that all gateways may have open together; `None`: it is only told how many there are.
    pub most: Option<u32>,
}

/// Who tells how many streams are open, and since when it is so.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// A name that no other process has.
    pub id: &'a str,
    /// Grows with each change. What is older than what was told already changes nothing.
    pub version: u64,
    /// How long it counts when nothing more is told: a gateway that was killed closes no streams.
    pub lifetime: Duration,
}

/// A limit that would be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The place in what was told.
    pub place: usize,
    /// Streams that would be open at all gateways.
    pub open: u32,
}

/// Shares counts. Used by gateways. All that one call names belongs to one tenant.
#[async_trait]
pub trait SharedCounts: Send + Sync {
    /// Adds requests. Returns for each how long it takes until its limit has everything back that the requests of all
    /// gateways have taken.
    async fn spend(&self, spent: &[Spent]) -> Result<Vec<Duration>, StreamError>;

    /// Notes how many streams this holder has open, unless a limit would be exceeded: then nothing is noted.
    async fn hold(
        &self,
        holder: Holder<'_>,
        held: &[Held],
    ) -> Result<Option<Exceeded>, StreamError>;
}
