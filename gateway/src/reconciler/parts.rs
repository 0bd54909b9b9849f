//! The parts of a reconciler that a look needs: the store, the engine, the options and the counters.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use everturn_proto::ids;
use everturn_store::{Reconciliation, StoreError, Unfinished};
use everturn_stream::CancelNews;

use super::counts::ReconcilerCounts;
use crate::{
    config::ReconcilerConfig,
    turns::{TurnError, TurnStarter},
};

/// The parts of a reconciler.
pub(super) struct Parts {
    pub(super) store: Arc<dyn Reconciliation>,
    pub(super) turns: Arc<dyn TurnStarter>,
    cancels: Arc<dyn CancelNews>,
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
        cancels: Arc<dyn CancelNews>,
        config: ReconcilerConfig,
    ) -> Self {
        Self {
            store,
            turns,
            cancels,
            config,
            counts: Arc::default(),
            is_blind: AtomicBool::new(false),
        }
    }

    /// Tells the workers that the workflow of a turn is gone. The turn's call then asks the engine, stores its text so
    /// far, and ends. A call without the news asks with its next heartbeat.
    pub(super) async fn stop_call(&self, unfinished: &Unfinished) {
        let Some(turn) = &unfinished.turn else {
            return;
        };
        let conversation_id = &unfinished.conversation.id;
        let id = ids::root_agent_execution_id(conversation_id, &turn.message_id);
        if let Err(error) = self.cancels.announce_cancel(&id).await {
            tracing::debug!(%error, conversation_id, "the call of a lost turn stops with its next heartbeat");
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
