//! Remembers that the disk is full. A full disk refuses writes and answers reads, so a check that only reads would not
//! notice.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{api::Result, error::StoreError};

/// Whether the disk has room. Clones share the knowledge.
#[derive(Debug, Clone, Default)]
pub(super) struct Room {
    is_full: Arc<AtomicBool>,
}

impl Room {
    /// Passes on the outcome of a call. The first of the calls that a full disk refuses writes an entry into the log.
    pub(super) fn note<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(error @ StoreError::DiskFull(_)) = &done
            && !self.is_full.swap(true, Ordering::AcqRel)
        {
            tracing::error!(%error, "no turn goes on until the disk has free space again");
        }
        done
    }

    /// Notes that the disk has taken a transaction.
    pub(super) fn has_written(&self) {
        if self.is_full.load(Ordering::Acquire) && self.is_full.swap(false, Ordering::AcqRel) {
            tracing::info!("the disk has free space again");
        }
    }

    /// Fails after a refused write, until the disk takes a transaction.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_full.load(Ordering::Acquire) {
            return Err(StoreError::DiskFull("the last write was refused".into()));
        }
        Ok(())
    }
}
