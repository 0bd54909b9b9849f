//! The audit trail, as configured. `config/src/audit.rs` checks the values.

use std::num::NonZeroU32;

use everturn_store::NewAuditEntry;

/// The limits of the audit trail: how long entries stay, and how many refusals are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditConfig {
    /// The number of days for which an entry cannot be removed. Default 400: a year, and the month of the review.
    pub keep_days: u32,
    /// The most entries per minute about refused credentials of one address. Default 5.
    pub refused_of_address: NonZeroU32,
    /// The most entries per minute about refused credentials of every address together. Default 60: some 40 MB a day
    /// during a flood.
    pub refused: NonZeroU32,
}

impl Default for AuditConfig {
    fn default() -> Self {
        const OF_ADDRESS: NonZeroU32 = NonZeroU32::new(5).unwrap();
        const OF_ALL: NonZeroU32 = NonZeroU32::new(60).unwrap();
        Self {
            keep_days: NewAuditEntry::DEFAULT_KEEP_DAYS,
            refused_of_address: OF_ADDRESS,
            refused: OF_ALL,
        }
    }
}
