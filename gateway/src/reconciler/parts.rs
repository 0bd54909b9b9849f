//! The parts of a reconciler that a look needs: the store, the engine, the options and the counters.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use everturn_store::{Reconciliation, StoreError};

use super::counts::ReconcilerCounts;
use crate::{
    config::ReconcilerConfig,
    turns::{TurnError, TurnStarter},
};

/// The parts of a reconciler.
pub(super) struct Parts {
    pub(super) store: Arc<dyn Reconciliation>,
    pub(super) turns: Arc<dyn TurnStarter>,
    pub(super) config: ReconcilerConfig,
    pub(super) counts: Arc<ReconcilerCounts>,
    /// True while the engine's list does not answer.
    is_blind: AtomicBool,
}

/// Why a look ended early.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The store gave no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine gave no answer.
    #[error(transparent)]
    Engine(#[from] TurnError),
}

impl Parts {
    pub(super) fn new(
        store: Arc<dyn Reconciliation>,
        turns: Arc<dyn TurnStarter>,
        config: ReconcilerConfig,
    ) -> Self {
        Self {
            store,
            turns,
            config,
            counts: Arc::default(),
            is_blind: AtomicBool::new(false),
        }
    }

    /// Notes whether the engine's list answers. An outage of the list logs one message.
    pub(super) fn note_list(&self, failure: Option<&TurnError>) {
        let was_blind = self.is_blind.swap(failure.is_some(), Ordering::Relaxed);
        if let Some(error) = failure.filter(|_| !was_blind) {
            tracing::warn!(
                %error,
                "the list of running workflows does not answer; the gateway asks for each stalled turn alone, and is slower"
            );
        }
    }
}
