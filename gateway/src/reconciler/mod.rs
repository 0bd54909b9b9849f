//! Puts stalled conversations right without a request of a client: a message with a lost signal, and a turn without a
//! workflow.
//!
//! Every gateway runs one reconciler. Once in every `every`, a row in the store chooses one gateway for a look. The gateway
//! looks at conversations without an event for `grace`, asks the engine for the workflow, and takes the action of
//! [`decide`]. The calls to the engine are spaced at `calls_per_second`, however many conversations have stalled.
//!
//! Must not be here: which turns have not ended (`everturn_store::Reconciliation`), how a turn is started (`turns`).

mod budget;
mod counts;
mod decide;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::FailureCode;
use everturn_store::{
    CheckNote, CheckPace, DueCheck, Reconciliation, StoreError, TurnFailure, Unfinished,
    WaitingMessage,
};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use self::counts::{ReconcilerCounts, ReconcilerNumbers};
use self::{
    budget::CallBudget,
    decide::{Decision, decide},
};
use crate::{
    config::ReconcilerConfig,
    turns::{StartMessages, StartOutcome, TurnError, TurnStarter},
};

/// The error of a message with `on_busy` = `reject` whose gateway did not start the turn.
const NOT_STARTED: TurnFailure = TurnFailure {
    code: FailureCode::TurnNotStarted,
    message: "The message was sent with `on_busy: reject`, and the turn did not start at once. The gateway does not start \
              the turn later. Send the message again if you still need an answer.",
};

/// The failed calls in a row after which the engine counts as away, and the look ends.
const MAX_FAILURES: u32 = 3;

/// The error of a turn without a workflow.
const LOST: TurnFailure = TurnFailure {
    code: FailureCode::TurnLost,
    message: "The turn's workflow is gone, and the turn could not go on. Send the message again if you still need an \
              answer.",
};

/// Finds stalled conversations, and puts them right.
pub struct Reconciler {
    store: Arc<dyn Reconciliation>,
    turns: Arc<dyn TurnStarter>,
    config: ReconcilerConfig,
    counts: Arc<ReconcilerCounts>,
}

/// Why a look ended early.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] TurnError),
}

impl Reconciler {
    /// Makes a reconciler. [`Self::run`] starts the looks.
    pub fn new(
        store: Arc<dyn Reconciliation>,
        turns: Arc<dyn TurnStarter>,
        config: ReconcilerConfig,
    ) -> Self {
        Self {
            store,
            turns,
            config,
            counts: Arc::default(),
        }
    }

    /// Returns the counters.
    pub fn counts(&self) -> Arc<ReconcilerCounts> {
        Arc::clone(&self.counts)
    }

    /// Looks again and again, until `shutdown` is cancelled.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut ticks = interval(self.config.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_away = false;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let looked = tokio::select! {
                () = shutdown.cancelled() => return,
                looked = self.look(Utc::now()) => looked,
            };
            match looked {
                Ok(()) => is_away = false,
                // An outage logs one message.
                Err(error) if !is_away => {
                    is_away = true;
                    tracing::warn!(%error, "cannot look for stalled turns; trying again");
                }
                Err(error) => tracing::debug!(%error, "cannot look for stalled turns"),
            }
        }
    }

    /// Looks once, when the store chooses this gateway.
    async fn look(&self, now: DateTime<Utc>) -> Result<(), LookError> {
        let config = &self.config;
        let pace = CheckPace {
            now,
            asked_before: now - delta(config.look_time()),
            stalled_since: now - delta(config.grace),
            again: now + delta(config.again),
            limit: config.checks_a_look(),
        };
        let mut due = self.store.due_checks(&pace).await?.into_iter();
        let looked = self.check_each(&mut due, &pace).await;
        // With a slow engine, a look checks only the first conversations. The unchecked conversations keep their rank for
        // the next look. Otherwise every look might check the same conversations.
        let rest = due.as_slice();
        if !rest.is_empty() {
            self.store.put_back_checks(rest).await?;
        }
        looked
    }

    /// Checks the conversations of `due` one after the other, until the time of the look is over. The unchecked
    /// conversations stay in `due`.
    async fn check_each(
        &self,
        due: &mut impl Iterator<Item = DueCheck>,
        pace: &CheckPace,
    ) -> Result<(), LookError> {
        let mut calls = CallBudget::new(&self.config);
        let mut failures = 0;
        while !calls.is_over()
            && let Some(check) = due.next()
        {
            let conversation_id = check.conversation_id;
            match self.check(&conversation_id, pace, &mut calls).await {
                Ok(()) => failures = 0,
                // A conversation that the engine refuses does not delay the other conversations.
                Err(LookError::Engine(error)) if failures < MAX_FAILURES => {
                    tracing::debug!(%error, conversation_id, "the engine refused a call for a turn");
                    failures += 1;
                    self.turns.prepare().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks one conversation, and puts the conversation right.
    async fn check(
        &self,
        conversation_id: &str,
        pace: &CheckPace,
        calls: &mut CallBudget,
    ) -> Result<(), LookError> {
        let Some(unfinished) = self.store.unfinished(conversation_id).await? else {
            return Ok(());
        };
        self.counts.checked();
        calls.next().await;
        let is_running = self.turns.is_running(conversation_id).await?;
        let (stored_before, lost_turns) = (pace.stalled_since, self.config.lost_turns);
        let decision = decide(&unfinished, is_running, stored_before, lost_turns);
        match decision {
            Decision::Wait => Ok(()),
            Decision::Signal(messages) => self.signal(&unfinished, messages, calls).await,
            Decision::FailRejected(message_id) => {
                self.fail(&unfinished, &message_id, NOT_STARTED).await
            }
            Decision::FailLost(message_id) => self.fail(&unfinished, &message_id, LOST).await,
            Decision::Start(messages, starts) => {
                self.start(&unfinished, messages, starts, pace.now, calls)
                    .await
            }
        }
    }

    /// Signals messages again whose signals may be lost, until the time of the look is over. A workflow ignores the signal
    /// of a known message.
    async fn signal(
        &self,
        unfinished: &Unfinished,
        messages: Vec<WaitingMessage>,
        calls: &mut CallBudget,
    ) -> Result<(), LookError> {
        let conversation = &unfinished.conversation;
        let mut note = unfinished.noted.clone();
        for message in messages {
            if calls.is_over() {
                break;
            }
            calls.next().await;
            let is_running = self.turns.signal(&conversation.id, &message.id);
            if !is_running.await? {
                // The workflow has ended in the meantime. The next look finds the remaining messages.
                break;
            }
            self.counts.signalled();
            tracing::info!(
                conversation_id = conversation.id,
                message_id = message.id,
                "repeated the signal of a waiting message"
            );
            note.signalled_until = Some(message.since);
        }
        Ok(self.store.note_check(&conversation.id, &note).await?)
    }

    /// Starts a workflow for the waiting messages. The store counts the starts, so that the reconciler gives up on a turn
    /// without progress.
    async fn start(
        &self,
        unfinished: &Unfinished,
        messages: StartMessages,
        starts: u32,
        now: DateTime<Utc>,
        calls: &mut CallBudget,
    ) -> Result<(), LookError> {
        let conversation = &unfinished.conversation;
        calls.next().await;
        if self.turns.start(conversation, messages).await? == StartOutcome::Busy {
            return Ok(());
        }
        self.counts.started();
        tracing::info!(
            conversation_id = conversation.id,
            "started a workflow for a turn without a workflow"
        );
        let note = CheckNote {
            starts,
            last_sequence: conversation.last_sequence,
            signalled_until: Some(now),
        };
        Ok(self.store.note_check(&conversation.id, &note).await?)
    }

    async fn fail(
        &self,
        unfinished: &Unfinished,
        message_id: &str,
        failure: TurnFailure,
    ) -> Result<(), LookError> {
        let conversation = &unfinished.conversation;
        let code = failure.code.clone();
        if self
            .store
            .fail_turn(conversation, message_id, failure)
            .await?
        {
            self.counts.failed();
            tracing::warn!(
                conversation_id = conversation.id,
                message_id,
                %code,
                "a turn could not go on, and the reconciler ended the turn"
            );
        }
        Ok(())
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
