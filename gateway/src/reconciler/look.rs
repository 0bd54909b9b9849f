//! One look at stalled conversations: the running workflows, and the actions for conversations that need an action. After
//! the conversations come the hooks after turns without a workflow.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use chrono::{DateTime, Utc};
use everturn_proto::{ids, words::FailureCode};
use everturn_store::{
    CheckNote, CheckPace, DueCheck, DueHooks, TurnFailure, Unfinished, WaitingMessage,
};

use super::{
    budget::CallBudget,
    decide::{Decision, Signals, StoredCancel, decide},
    parts::{LookError, Parts},
    quiet::{ToldApart, is_stuck, tell_apart, to_list},
};
use crate::turns::{HooksOutcome, RunningWorkflow, StartMessages, StartOutcome};

/// The error of a message with `on_busy` = `reject` whose gateway did not start the turn.
const NOT_STARTED: TurnFailure = TurnFailure {
    code: FailureCode::TurnNotStarted,
    message: "The message was sent with `on_busy: reject`, and the turn did not start at once. The gateway does not start \
              the turn later. Send the message again if you still need an answer.",
};

/// The error of a turn without a workflow.
const LOST: TurnFailure = TurnFailure {
    code: FailureCode::TurnLost,
    message: "The turn's workflow is gone, and the turn could not go on. Send the message again if you still need an \
              answer.",
};

/// The failed calls in a row after which the engine counts as away, and the look ends.
const MAX_FAILURES: u32 = 3;

/// The most idle conversations that a look keeps in memory. A look has time for fewer calls.
const MAX_IDLE: usize = 1_000;

/// The most stuck workflows that a look writes to the log. A wrong deployment may make every workflow stuck, and the metric
/// counts every workflow.
const MAX_LOGGED: u32 = 10;

/// The time for the calls of lost turns to store their texts, before the turns end with an error. A call asks the engine
/// within milliseconds, and stores its text in one statement.
const CALLS_END_WITHIN: Duration = Duration::from_secs(1);

/// One look.
pub(super) struct Look<'a> {
    reconciler: &'a Parts,
    pace: &'a CheckPace,
    calls: CallBudget,
    /// Failed calls to the engine in a row.
    failures: u32,
    /// True after a list that failed: the look asks for no further list.
    is_blind: bool,
    /// Quiet conversations with a workflow that has to act and does not act.
    idle: Vec<String>,
    /// Lost turns to end with an error, whose calls have been told to stop.
    lost: Vec<(Unfinished, String)>,
    /// Stuck workflows in the log.
    logged: u32,
}

impl<'a> Look<'a> {
    /// Makes a look. The time of the look begins now.
    pub(super) fn new(reconciler: &'a Parts, pace: &'a CheckPace) -> Self {
        Self {
            reconciler,
            pace,
            calls: CallBudget::new(&reconciler.config),
            failures: 0,
            is_blind: false,
            idle: Vec::new(),
            lost: Vec::new(),
            logged: 0,
        }
    }

    /// True when the time of the look is over.
    pub(super) fn is_over(&self) -> bool {
        self.calls.is_over()
    }

    /// Checks a batch of conversations, until the budget of the look is used up. Returns the unchecked conversations, and
    /// why the look cannot go on.
    pub(super) async fn check(
        &mut self,
        due: Vec<DueCheck>,
    ) -> (Vec<DueCheck>, Result<(), LookError>) {
        let running = self.running(&due).await;
        let ToldApart {
            quiet,
            idle,
            unclear,
        } = tell_apart(due, &running);
        self.reconciler.counts.checked(quiet);
        let room = MAX_IDLE.saturating_sub(self.idle.len());
        self.idle.extend(idle.into_iter().take(room));
        let mut unclear = VecDeque::from(unclear);
        let checked = self.check_each(&mut unclear).await;
        let ended = self.end_lost().await;
        (unclear.into(), checked.and(ended))
    }

    /// Returns the conversations with a running workflow in the engine's list. While the list does not answer, the set is
    /// empty, and every conversation gets its own look.
    async fn running(&mut self, due: &[DueCheck]) -> HashSet<String> {
        let listed = to_list(due);
        if listed.is_empty() || self.is_blind {
            return HashSet::new();
        }
        self.calls.next_list().await;
        let running = self.reconciler.turns.running(&listed).await;
        self.reconciler.note_list(running.as_ref().err());
        self.is_blind = running.is_err();
        running.unwrap_or_default()
    }

    /// Checks conversations one after the other, until the budget of the look is used up. The unchecked conversations stay
    /// in `due`.
    async fn check_each(&mut self, due: &mut VecDeque<DueCheck>) -> Result<(), LookError> {
        while !due.is_empty()
            && self.calls.takes_check()
            && let Some(check) = due.pop_front()
        {
            let checked = self.check_one(&check).await;
            match checked {
                Ok(()) => self.failures = 0,
                // A conversation that the engine refuses does not delay the other conversations.
                Err(LookError::Engine(error)) if self.failures < MAX_FAILURES => {
                    let conversation_id = check.conversation_id;
                    tracing::debug!(%error, conversation_id, "the engine refused a call for a turn");
                    self.failures += 1;
                    self.reconciler.turns.prepare().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks one conversation, and puts the conversation right.
    async fn check_one(&mut self, check: &DueCheck) -> Result<(), LookError> {
        let Parts {
            store,
            turns,
            counts,
            config,
            ..
        } = self.reconciler;
        let conversation_id = &check.conversation_id;
        let Some(unfinished) = store.unfinished(conversation_id).await? else {
            return Ok(());
        };
        counts.checked(1);
        self.calls.next_call().await;
        let workflow = turns.workflow(conversation_id).await?;
        self.note_stuck(conversation_id, workflow, check.is_idle);
        let stored_before = self.pace.stalled_since;
        let is_running = workflow.is_some();
        match decide(&unfinished, is_running, stored_before, config.lost_turns) {
            Decision::Wait => Ok(()),
            Decision::Signal(signals) => self.signal(&unfinished, signals).await,
            Decision::FailRejected(message_id) => {
                self.fail(&unfinished, &message_id, NOT_STARTED).await
            }
            Decision::FailLost(message_id) => {
                self.reconciler.stop_call(&unfinished).await;
                self.lost.push((unfinished, message_id));
                Ok(())
            }
            Decision::Start(messages, starts) => {
                self.start(&unfinished, messages, starts, self.pace.now)
                    .await
            }
        }
    }

    /// Ends the lost turns of a batch with an error, after their calls had time to store their texts.
    async fn end_lost(&mut self) -> Result<(), LookError> {
        let lost = std::mem::take(&mut self.lost);
        if lost.iter().any(|(unfinished, _)| unfinished.turn.is_some()) {
            tokio::time::sleep(CALLS_END_WITHIN).await;
        }
        for (unfinished, message_id) in lost {
            self.fail(&unfinished, &message_id, LOST).await?;
        }
        Ok(())
    }

    /// Starts the workflows of the hooks after turns whose conversation's run was lost before the start, until the time of
    /// the look is over. The first hooks always get their start, because otherwise many stalled turns would keep hooks
    /// from a start for ever.
    pub(super) async fn start_hooks(&mut self) -> Result<(), LookError> {
        let Parts { store, turns, .. } = self.reconciler;
        let (due_before, limit) = (self.pace.stalled_since, self.pace.limit);
        let due = store.due_hooks(due_before, limit).await?;
        for (index, hooks) in due.iter().enumerate() {
            if index > 0 && self.is_over() {
                break;
            }
            self.calls.next_call().await;
            match turns.start_hooks(hooks).await {
                Ok(outcome) => {
                    if outcome != HooksOutcome::Started {
                        // A second call has described the workflow that the start has found.
                        self.calls.next_call().await;
                    }
                    self.note_hooks(hooks, outcome).await?;
                }
                Err(error) if self.failures < MAX_FAILURES => {
                    let agent_execution_id = &hooks.agent_execution_id;
                    tracing::debug!(%error, agent_execution_id, "the engine did not start hooks");
                    self.failures += 1;
                    // Hooks that the engine refuses do not delay the remaining hooks.
                    let again = Some(self.pace.again);
                    store.note_hooks(agent_execution_id, again).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Notes a start of hooks. Hooks with a running workflow are due again later, because the engine may lose the workflow
    /// before the hooks begin. The first activity of the workflow ends the wait.
    async fn note_hooks(&self, hooks: &DueHooks, outcome: HooksOutcome) -> Result<(), LookError> {
        let DueHooks {
            conversation_id,
            agent_execution_id,
            ..
        } = hooks;
        let due_at = match outcome {
            HooksOutcome::Started | HooksOutcome::Runs => Some(self.pace.again),
            HooksOutcome::Ended => None,
        };
        let Parts { store, counts, .. } = self.reconciler;
        let still_waits = store.note_hooks(agent_execution_id, due_at).await?;
        match outcome {
            HooksOutcome::Started => {
                counts.started();
                tracing::info!(
                    conversation_id,
                    agent_execution_id,
                    "started the hooks after a turn whose workflow is gone"
                );
            }
            HooksOutcome::Ended if still_waits => tracing::warn!(
                conversation_id,
                agent_execution_id,
                "the workflow of the hooks after a turn ended before the hooks began; the hooks do not run"
            ),
            HooksOutcome::Runs | HooksOutcome::Ended => {}
        }
        Ok(())
    }

    /// Asks the engine for the workflows that have to act and do not act, in the rest of the look's time.
    pub(super) async fn find_stuck(&mut self) -> Result<(), LookError> {
        for conversation_id in std::mem::take(&mut self.idle) {
            if self.is_over() {
                break;
            }
            self.calls.next_call().await;
            match self.reconciler.turns.workflow(&conversation_id).await {
                Ok(workflow) => self.note_stuck(&conversation_id, workflow, true),
                Err(error) if self.failures < MAX_FAILURES => {
                    tracing::debug!(%error, conversation_id, "the engine did not describe a turn");
                    self.failures += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Counts a stuck workflow, and writes the remedy to the log. The workflow goes on, because an operator may be
    /// deploying the remedy, and the turn then continues.
    fn note_stuck(
        &mut self,
        conversation_id: &str,
        workflow: Option<RunningWorkflow>,
        is_idle: bool,
    ) {
        let limit = self.reconciler.config.stuck_attempts;
        let Some(workflow) = workflow.filter(|it| is_stuck(Some(*it), is_idle, limit)) else {
            return;
        };
        self.reconciler.counts.stuck();
        self.logged += 1;
        if self.logged > MAX_LOGGED {
            return;
        }
        tracing::warn!(
            workflow_id = ids::workflow_id(conversation_id),
            attempt = workflow.task_attempt,
            "a workflow is stuck: its workflow task fails again and again. Read the reason with `temporal workflow \
             describe`, and deploy workers that can run the workflow. If no version can run the workflow, `temporal \
             workflow terminate` ends the workflow, and a gateway continues the turn in a new workflow"
        );
    }

    /// Repeats signals that may be lost.
    async fn signal(&mut self, unfinished: &Unfinished, signals: Signals) -> Result<(), LookError> {
        let Signals { cancel, messages } = signals;
        if let Some(cancel) = cancel {
            self.signal_cancel(&unfinished.conversation.id, &cancel)
                .await?;
        }
        if messages.is_empty() {
            return Ok(());
        }
        self.signal_messages(unfinished, messages).await
    }

    /// Signals the cancel of the running turn again. A workflow that has ended in the meantime needs no signal.
    async fn signal_cancel(
        &mut self,
        conversation_id: &str,
        cancel: &StoredCancel,
    ) -> Result<(), LookError> {
        let Parts { turns, counts, .. } = self.reconciler;
        let StoredCancel { message_id, reason } = cancel;
        self.calls.next_call().await;
        if turns.cancel(conversation_id, message_id, reason).await? {
            counts.signalled();
            tracing::info!(
                conversation_id,
                message_id,
                "repeated the signal of a cancel"
            );
        }
        Ok(())
    }

    /// Signals messages again whose signals may be lost, until the time of the look is over. A workflow ignores the signal
    /// of a known message.
    async fn signal_messages(
        &mut self,
        unfinished: &Unfinished,
        messages: Vec<WaitingMessage>,
    ) -> Result<(), LookError> {
        let Parts {
            store,
            turns,
            counts,
            ..
        } = self.reconciler;
        let conversation = &unfinished.conversation;
        let mut note = unfinished.noted.clone();
        for message in messages {
            if self.is_over() {
                break;
            }
            self.calls.next_call().await;
            let is_running = turns.signal(&conversation.id, &message.id);
            if !is_running.await? {
                // The workflow has ended in the meantime. The next look finds the remaining messages.
                break;
            }
            counts.signalled();
            tracing::info!(
                conversation_id = conversation.id,
                message_id = message.id,
                "repeated the signal of a waiting message"
            );
            note.signalled_until = Some(message.since);
        }
        Ok(store.note_check(&conversation.id, &note).await?)
    }

    /// Starts a workflow for the waiting messages. The store counts the starts, so that the reconciler gives up on a turn
    /// without progress.
    async fn start(
        &mut self,
        unfinished: &Unfinished,
        messages: StartMessages,
        starts: u32,
        now: DateTime<Utc>,
    ) -> Result<(), LookError> {
        let Parts {
            store,
            turns,
            counts,
            ..
        } = self.reconciler;
        let conversation = &unfinished.conversation;
        self.reconciler.stop_call(unfinished).await;
        self.calls.next_call().await;
        if turns.start(conversation, messages).await? == StartOutcome::Busy {
            return Ok(());
        }
        counts.started();
        tracing::info!(
            conversation_id = conversation.id,
            "started a workflow for a turn without a workflow"
        );
        let note = CheckNote {
            starts,
            last_sequence: conversation.last_sequence,
            signalled_until: Some(now),
        };
        Ok(store.note_check(&conversation.id, &note).await?)
    }

    async fn fail(
        &self,
        unfinished: &Unfinished,
        message_id: &str,
        failure: TurnFailure,
    ) -> Result<(), LookError> {
        let Parts { store, counts, .. } = self.reconciler;
        let conversation = &unfinished.conversation;
        let code = failure.code.clone();
        if store.fail_turn(conversation, message_id, failure).await? {
            counts.failed();
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
