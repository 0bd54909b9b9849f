//! Removes the rows of large conversations that are gone for readers.
//!
//! The deletion of a large conversation hides the conversation, and leaves the rows. Every gateway looks for such rows, so
//! a gateway that dies in the middle leaves the rest to others. `everturn retention` removes the rows, too.
//!
//! Must not be here: which rows are left, and their order (`everturn_store::Retention`).

use std::{sync::Arc, time::Duration};

use everturn_store::{BlobFiles, Retention};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The time between two looks. Without rows to remove, a look is one query of an index.
const EVERY: Duration = Duration::from_secs(5);

/// The most rows of one transaction. Removing the rows takes a few hundred milliseconds, and SQLite's other writers wait
/// meanwhile.
const MAX_ROWS: u32 = 10_000;

/// Removes the rows again and again.
pub struct Removals {
    store: Arc<dyn Retention>,
    blobs: Option<BlobFiles>,
}

impl Removals {
    /// Makes the removals. [`Self::run`] starts the looks.
    pub fn new(store: Arc<dyn Retention>) -> Self {
        Self { store, blobs: None }
    }

    /// Also removes the objects of removed files.
    #[must_use]
    pub fn with_objects(self, blobs: BlobFiles) -> Self {
        let blobs = Some(blobs);
        Self { blobs, ..self }
    }

    /// Looks again and again, until `shutdown` is cancelled.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let looking = async {
            loop {
                ticks.tick().await;
                if self.look().await {
                    self.remove_objects().await;
                }
            }
        };
        // A stop rolls back a transaction at the most, and another look removes the rows.
        let _ended: Option<()> = shutdown.run_until_cancelled(looking).await;
    }

    /// Removes rows until none are left. After an error, the next look goes on. Returns true when rows were removed.
    async fn look(&self) -> bool {
        let mut has_removed = false;
        loop {
            match self.store.remove_rest(MAX_ROWS).await {
                Ok(true) => has_removed = true,
                Ok(false) => return has_removed,
                Err(error) => {
                    tracing::warn!(%error, "cannot remove rows of a removed conversation; trying again");
                    return has_removed;
                }
            }
        }
    }

    /// Removes the objects of removed files. `everturn retention` removes the remaining objects.
    async fn remove_objects(&self) {
        if let Some(blobs) = &self.blobs
            && let Err(error) = blobs.remove_objects().await
        {
            tracing::warn!(%error, "objects of a removed conversation are not removed yet");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use chrono::{DateTime, Utc};
    use everturn_store::{Removed, RemovedBatch, Result, StoreError};

    use super::*;

    /// Answers from a list, and then stops the removals.
    struct Scripted {
        answers: Mutex<Vec<Result<bool>>>,
        shutdown: CancellationToken,
    }

    #[async_trait]
    impl Retention for Scripted {
        async fn count_expired(&self, _: DateTime<Utc>) -> Result<Removed> {
            Ok(Removed::default())
        }

        async fn remove_expired(
            &self,
            _: DateTime<Utc>,
            _: Option<&str>,
            _: u32,
        ) -> Result<RemovedBatch> {
            Ok(RemovedBatch {
                removed: Removed::default(),
                next: None,
            })
        }

        async fn next_expired(&self, _: DateTime<Utc>, _: Option<&str>) -> Result<Option<String>> {
            Ok(None)
        }

        async fn remove_rest(&self, _: u32) -> Result<bool> {
            let answer = self.answers.lock().unwrap().pop();
            answer.unwrap_or_else(|| {
                self.shutdown.cancel();
                Ok(false)
            })
        }

        async fn remove_definitions(&self, _: u32) -> Result<u64> {
            Ok(0)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_removes_every_row_and_an_error_ends_no_looks() {
        let shutdown = CancellationToken::new();
        // From the last to the first: a look with three pages, a look that fails, a look with one page.
        let away = || Err(StoreError::Unavailable("scripted".into()));
        let answers = vec![Ok(true), away(), Ok(false), Ok(true), Ok(true), Ok(true)];
        let store = Arc::new(Scripted {
            answers: Mutex::new(answers),
            shutdown: shutdown.clone(),
        });
        Removals::new(store.clone()).run(shutdown).await;
        assert!(store.answers.lock().unwrap().is_empty());
    }
}
