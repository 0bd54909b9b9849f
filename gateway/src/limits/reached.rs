//! Which limit is reached, and whose it is.

use std::time::Duration;

/// A limit that a request has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// Requests come faster than they may; the next one may come after `wait`.
    Requests { of: Party, wait: Duration },
    /// The party has as many streams open as it may have.
    StreamsOf { of: Party, open: u32 },
    /// This gateway serves as many streams as it may.
    Streams,
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    Tenant,
    Owner,
}
