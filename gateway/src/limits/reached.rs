//! The limit that a request has reached, and the party with the limit.

use std::time::Duration;

/// A limit that a request has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// Requests come too fast. The next request is allowed after `wait`.
    Requests { of: Party, wait: Duration },
    /// The party has its full number of open streams.
    StreamsOf { of: Party, open: u32 },
    /// The gateway has its full number of open streams.
    Streams,
}

/// The party of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    Tenant,
    Owner,
}
