//! The loop of a turn: think → save → tools in parallel → save → … → the end (A2).

use std::{cell::Cell, rc::Rc, time::Duration};

use everturn_proto::{
    turn::{
        LoadTurnRequest, LoadedTurn, SaveEnd, SaveRequest, SaveResult, SaveSteer, SaveThought,
        Submit, ThinkRequest, TurnInput, save_request::Batch,
    },
    words::{execution_status, failure, finish},
};
use temporalio_workflow::{
    TimerOptions, TimerResult, WorkflowCancellationToken, WorkflowContext, join,
};

use crate::{
    AgentExecution,
    agent_execution::{Phase, agent_execution_id},
    calls::{self, CallError},
};

/// One running turn.
pub(crate) struct Turn<'a> {
    pub(crate) ctx: &'a WorkflowContext<AgentExecution>,
    pub(crate) cancellation: WorkflowCancellationToken,
    pub(crate) conversation_id: String,
    pub(crate) message: Submit,
    pub(crate) agent_execution_id: String,
    pub(crate) tenant_id: String,
    pub(crate) step: u32,
    /// Set when `turn_timeout` has passed: then what ends the turn is no cancel.
    is_out_of_time: Rc<Cell<bool>>,
}

/// How a turn ended, as the store has it.
pub(crate) struct TurnEnd {
    /// One of `execution_status`.
    pub(crate) status: String,
    pub(crate) steps: u32,
    /// Code and message when it failed.
    pub(crate) failure: Option<(String, String)>,
}

/// What the loop does next.
enum Next {
    Step,
    End(TurnEnd),
    /// The history is long: go on in a new run, at this step (invariant 4).
    NewRun(u32),
}

/// What the run does after the turn's part in it.
pub(crate) enum Outcome {
    Ended(TurnEnd),
    ContinueAt(u32),
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        ctx: &'a WorkflowContext<AgentExecution>,
        input: &TurnInput,
        message: Submit,
        cancellation: WorkflowCancellationToken,
    ) -> Self {
        Self {
            ctx,
            cancellation,
            conversation_id: input.conversation_id.clone(),
            agent_execution_id: agent_execution_id(input, &message),
            message,
            tenant_id: input.tenant_id.clone(),
            step: input.from_step,
            is_out_of_time: Rc::default(),
        }
    }

    /// Loads the turn: takes the message, pins the agent.
    pub(crate) async fn load(&self, input: &TurnInput) -> Result<LoadedTurn, CallError> {
        let request = LoadTurnRequest {
            conversation_id: self.conversation_id.clone(),
            tenant_id: input.tenant_id.clone(),
            agent: input.agent.clone(),
            message_id: self.message.message_id.clone(),
            content: self.message.content.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            delegation: input.delegation.clone(),
        };
        calls::load_turn(self.ctx, request).await
    }

    /// Runs the turn; when its time is over it ends like a cancelled one, with its sub-agents, but as failed.
    pub(crate) async fn run_in_time(self, loaded: &LoadedTurn) -> Result<Outcome, CallError> {
        if loaded.time_left_ms == 0 {
            return self.run(loaded).await;
        }
        let (ctx, cancellation, is_out_of_time) = (
            self.ctx,
            self.cancellation.clone(),
            self.is_out_of_time.clone(),
        );
        let over = WorkflowCancellationToken::new();
        let time_left = Duration::from_millis(u64::from(loaded.time_left_ms));
        let options = TimerOptions::builder(time_left).cancellation_token(over.clone());
        let timer = ctx.timer(options.summary("turn_timeout".to_owned()).build());
        let watch = async {
            if matches!(timer.await, TimerResult::Fired) {
                is_out_of_time.set(true);
                cancellation.cancel_with_reason("the turn ran out of time");
            }
        };
        let run = async {
            let outcome = self.run(loaded).await;
            over.cancel();
            outcome
        };
        let (outcome, ()) = join!(run, watch);
        outcome
    }

    /// Runs the turn to its end, or to a point where the run should be continued in a new one.
    async fn run(mut self, loaded: &LoadedTurn) -> Result<Outcome, CallError> {
        if !loaded.error_code.is_empty() {
            let failure = Some((loaded.error_code.clone(), loaded.error_message.clone()));
            if let Next::End(end) = self.end(execution_status::FAILED, failure).await? {
                return Ok(Outcome::Ended(end));
            }
        }
        loop {
            match self.next(loaded).await? {
                Next::Step => {}
                Next::End(end) => return Ok(Outcome::Ended(end)),
                Next::NewRun(step) => return Ok(Outcome::ContinueAt(step)),
            }
        }
    }

    async fn next(&mut self, loaded: &LoadedTurn) -> Result<Next, CallError> {
        if self.cancellation.is_cancelled() {
            return self.end(execution_status::CANCELLED, None).await;
        }
        if let Some(end) = self.take_steers().await? {
            return Ok(Next::End(end));
        }
        if self.step >= loaded.max_steps {
            return self
                .end(execution_status::FAILED, Some(step_limit(loaded.max_steps)))
                .await;
        }
        let thought = match self.think(loaded).await {
            Ok(thought) => thought,
            Err(CallError::Cancelled) => return self.end(execution_status::CANCELLED, None).await,
            // A call that failed after the cancel (its worker shut down) is a cancelled one.
            Err(CallError::Failed { .. }) if self.cancellation.is_cancelled() => {
                return self.end(execution_status::CANCELLED, None).await;
            }
            Err(CallError::Failed { code, message }) => {
                return self
                    .end(execution_status::FAILED, Some((code, message)))
                    .await;
            }
        };
        // Once an answer is in, neither a cancel nor a steer changes it (invariant 3).
        if thought.finish == finish::STOP {
            return self.end(execution_status::COMPLETED, None).await;
        }
        if self.cancellation.is_cancelled() {
            return self.end(execution_status::CANCELLED, None).await;
        }
        self.ctx
            .state_mut(|state| state.outside.begin_step(&thought.tool_calls));
        let saved = self.save_batch(Batch::Thought(SaveThought {})).await?;
        if let Some(end) = self.ended(&saved) {
            return Ok(Next::End(end));
        }
        self.run_tools(&thought.tool_calls, &saved, loaded.max_parallel_tools)
            .await?;
        self.step += 1;
        // Only here: no tool, child or approval is pending (invariant 4).
        let is_long = self.ctx.continue_as_new_suggested() && !self.cancellation.is_cancelled();
        Ok(if is_long {
            Next::NewRun(self.step)
        } else {
            Next::Step
        })
    }

    /// Messages that join the turn before its next LLM call.
    async fn take_steers(&self) -> Result<Option<TurnEnd>, CallError> {
        for steer in self.ctx.state_mut(AgentExecution::take_steers) {
            let batch = Batch::Steer(SaveSteer {
                message_id: steer.message_id,
                content: steer.content,
            });
            if let Some(end) = self.save(batch).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    async fn think(
        &self,
        loaded: &LoadedTurn,
    ) -> Result<everturn_proto::turn::ThinkResult, CallError> {
        self.enter(Phase::Thinking);
        let request = ThinkRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message.message_id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            agent_hash: loaded.agent_hash.clone(),
        };
        let timeout = Duration::from_millis(u64::from(loaded.llm_timeout_ms));
        calls::think(self.ctx, &self.cancellation, request, timeout).await
    }

    /// Ends the turn. The first end saved wins; what is stored is what happened.
    async fn end(
        &self,
        status: &str,
        failure: Option<(String, String)>,
    ) -> Result<Next, CallError> {
        self.enter(Phase::Ending);
        let (status, failure) = match status {
            execution_status::CANCELLED if self.is_out_of_time.get() => (
                execution_status::FAILED,
                Some((failure::TURN_TIMEOUT.to_owned(), OUT_OF_TIME.to_owned())),
            ),
            _ => (status, failure),
        };
        let (code, message) = match status {
            execution_status::CANCELLED => (
                String::new(),
                self.cancellation.reason().unwrap_or_default(),
            ),
            _ => failure.clone().unwrap_or_default(),
        };
        let end = self
            .save(Batch::End(SaveEnd {
                status: status.to_owned(),
                code,
                message,
            }))
            .await?;
        let stored = end.map_or_else(|| status.to_owned(), |end| end.status);
        let failure = failure.filter(|_| stored == execution_status::FAILED);
        Ok(Next::End(TurnEnd {
            status: stored,
            steps: self.step + 1,
            failure,
        }))
    }

    /// Saves one batch; `Some` when the turn has ended, now or before.
    pub(crate) async fn save(&self, batch: Batch) -> Result<Option<TurnEnd>, CallError> {
        Ok(self.ended(&self.save_batch(batch).await?))
    }

    async fn save_batch(&self, batch: Batch) -> Result<SaveResult, CallError> {
        let request = SaveRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message.message_id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            batch: Some(batch),
        };
        calls::save(self.ctx, request).await
    }

    fn ended(&self, saved: &SaveResult) -> Option<TurnEnd> {
        let has_ended = saved.status != execution_status::RUNNING;
        has_ended.then(|| TurnEnd {
            status: saved.status.clone(),
            steps: self.step + 1,
            failure: None,
        })
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.ctx.state_mut(|state| state.enter(self.step, phase));
    }
}

const OUT_OF_TIME: &str = "The turn did not end within the agent's `turn_timeout` and was stopped. Raise it if the agent needs more time.";

fn step_limit(max_steps: u32) -> (String, String) {
    let message = format!(
        "The turn was stopped after {max_steps} steps without an answer. Raise `max_steps` of the agent if it needs more."
    );
    (failure::STEP_LIMIT.to_owned(), message)
}
