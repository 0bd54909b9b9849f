//! Puts right what was accepted and has stalled, without anyone asking: a message whose signal never arrived, and a turn
//! whose workflow is gone.
//!
//! Each gateway runs one reconciler. Every `every`, one of them gets the turn to look (a row in the store decides), and
//! it looks at conversations in which nothing has happened for `grace`: it asks the engine whether a workflow runs, and
//! does what [`decide`] says. Its calls to the engine are spaced, so that the engine is never asked for more than
//! `calls_per_second`, however much has stalled.
//!
//! Must not be here: what has not ended (`everturn_store::Reconciliation`), how a turn is started (`turns`).

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
    turns::{OnBusy, StartMessages, StartOutcome, TurnError, TurnStarter},
};

/// A message that was to run only when nothing else ran, and whose gateway did not start it.
const NOT_STARTED: TurnFailure = TurnFailure {
    code: FailureCode::TurnNotStarted,
    message: "The message was sent with `on_busy: reject`, and its turn did not start when it came. It is not started \
              later. Send it again if it still needs an answer.",
};

/// How many calls to the engine may fail one after the other before a look ends: the engine is away.
const MAX_FAILURES: u32 = 3;

/// A turn that is not resumed.
const LOST: TurnFailure = TurnFailure {
    code: FailureCode::TurnLost,
    message: "The turn's workflow is gone, and the turn could not go on. Send the message again if it still needs an \
              answer.",
};

/// Looks for what has stalled, and puts it right.
pub struct Reconciler {
    store: Arc<dyn Reconciliation>,
    turns: Arc<dyn TurnStarter>,
    config: ReconcilerConfig,
    counts: Arc<ReconcilerCounts>,
}

/// Why a look was ended early.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] TurnError),
}

impl Reconciler {
    /// Makes a reconciler, which does nothing until it runs.
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

    /// What it has found and done so far.
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
                // One message for an outage is enough.
                Err(error) if !is_away => {
                    is_away = true;
                    tracing::warn!(%error, "cannot look for turns that have stalled; trying again");
                }
                Err(error) => tracing::debug!(%error, "cannot look for turns that have stalled"),
            }
        }
    }

    /// Looks once, when it is this gateway's turn.
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
        // With a slow engine, a look does not get far. What it did not reach keeps its place. Else the same ones might be
        // reached again and again.
        let rest = due.as_slice();
        if !rest.is_empty() {
            self.store.put_back_checks(rest).await?;
        }
        looked
    }

    /// Looks at one conversation after the other, until the time of the look is over. What is left of `due` was not
    /// looked at.
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
                // One conversation that the engine does not take must not keep the others waiting.
                Err(LookError::Engine(error)) if failures < MAX_FAILURES => {
                    tracing::debug!(%error, conversation_id, "the engine did not take a turn");
                    failures += 1;
                    self.turns.prepare().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Looks at one conversation, and does what is to be done.
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

    /// Signals messages again whose signals may not have arrived, as many as there is time for. A workflow that knows
    /// them already ignores it.
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
            let on_busy = OnBusy::of_stored(&message.on_busy);
            let is_running = self.turns.signal(&conversation.id, &message.id, on_busy);
            if !is_running.await? {
                // It has ended in the meantime. The next look finds what is left.
                break;
            }
            self.counts.signalled();
            tracing::info!(
                conversation_id = conversation.id,
                message_id = message.id,
                "signalled a message that waits again"
            );
            note.signalled_until = Some(message.since);
        }
        Ok(self.store.note_check(&conversation.id, &note).await?)
    }

    /// Starts a workflow for what has not ended. The starts are counted, so that a turn that gets no further is not
    /// started for ever.
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
            "started a workflow for a turn that had none"
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
                "ended a turn that could not go on"
            );
        }
        Ok(())
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
