//! The loop of a turn: think → save → tools in parallel → save → … → the end.
//!
//! Must not be here: how the tools of a step run (`tools.rs`), how an activity is called (`calls.rs`).

use std::{cell::Cell, rc::Rc, time::Duration};

use everturn_proto::{
    turn::{
        LoadTurnRequest, LoadedTurn, SaveCompaction, SaveCutReply, SaveEnd, SaveRequest,
        SaveResult, SaveSteer, SaveThought, ThinkRequest, ThinkResult, TurnInput, WaitingHooks,
        save_request::Batch,
    },
    words::{AgentExecutionStatus, FailureCode, FinishReason},
};
use temporalio_workflow::{WorkflowCancellationToken, WorkflowContext, join, select};

use crate::{
    AgentExecution,
    calls::{self, CallError, Failure},
    cut_calls::CutReplies,
    inbox::Message,
    state::{BY_ENGINE, Phase, agent_execution_id},
    timer,
};

/// The end of a step's tools in this run.
pub(crate) enum StepEnd {
    /// Every call has ended.
    Ended,
    /// The history is long, and the remaining calls only wait: the next run goes on with them.
    Paused,
}

/// One running turn.
pub(crate) struct Turn<'a> {
    pub(crate) ctx: &'a WorkflowContext<AgentExecution>,
    pub(crate) cancellation: WorkflowCancellationToken,
    pub(crate) conversation_id: String,
    pub(crate) message: Message,
    pub(crate) agent_execution_id: String,
    pub(crate) tenant_id: Option<String>,
    pub(crate) step: u32,
    /// The turn's epoch in this run (invariant 11, one run).
    pub(crate) epoch: u32,
    /// The task queue of the turn's tool workers; `None`: the workflow's own queue.
    pub(crate) tool_queue: Option<String>,
    /// The agent's hooks after the turn; `None` without hooks.
    hooks: Option<WaitingHooks>,
    /// True until the turn has returned to its unfinished tools from an earlier run.
    goes_on_among_tools: bool,
    /// True after `turn_timeout` has passed: the turn then ends as failed, not as cancelled.
    is_out_of_time: Rc<Cell<bool>>,
    /// True when `turn_timeout` is the time of the turn's budget.
    is_time_of_budget: bool,
    cut_replies: CutReplies,
}

/// The stored end of a turn.
pub(crate) struct TurnEnd {
    pub(crate) status: AgentExecutionStatus,
    pub(crate) steps: u32,
    /// The reason of a failed turn, when this run knows the reason.
    pub(crate) failure: Option<Failure>,
}

/// The run's requested end of the turn.
pub(crate) enum Ending {
    Completed,
    Cancelled,
    Failed(Failure),
}

/// The next action of the loop.
pub(crate) enum Next {
    Step,
    End(TurnEnd),
    /// The history is long: the turn goes on in a new run (invariant 4, linear history).
    NewRun(NextRun),
}

/// The point from which the turn's next run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextRun {
    pub(crate) step: u32,
    /// The step's thought is saved, and some of its tools have not ended.
    pub(crate) among_tools: bool,
}

/// How this run's part of the turn ended: with the end of the turn, or with a new run to come.
pub(crate) enum Outcome {
    Ended(TurnEnd),
    ContinueAt(NextRun),
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        ctx: &'a WorkflowContext<AgentExecution>,
        input: &TurnInput,
        message: Message,
        from_step: u32,
        cancellation: WorkflowCancellationToken,
    ) -> Self {
        Self {
            ctx,
            cancellation,
            conversation_id: input.conversation_id.clone(),
            agent_execution_id: agent_execution_id(input, &message.id),
            message,
            tenant_id: input.tenant_id.clone(),
            step: from_step,
            epoch: 0,
            goes_on_among_tools: input.among_tools && input.goes_on,
            is_out_of_time: Rc::default(),
            tool_queue: None,
            hooks: None,
            is_time_of_budget: false,
            cut_replies: CutReplies::default(),
        }
    }

    /// Loads the turn: takes the message and pins the agent. When the turn runs already, the store gives this run an
    /// epoch, and the run asks again with the new epoch (invariant 11, one run).
    pub(crate) async fn load(&mut self, input: &TurnInput) -> Result<LoadedTurn, CallError> {
        let mut request = LoadTurnRequest {
            conversation_id: self.conversation_id.clone(),
            tenant_id: input.tenant_id.clone(),
            agent: input.agent.clone(),
            message_id: self.message.id.clone(),
            content: self.message.content.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            delegation: input.delegation.clone(),
            epoch: match input.delegation {
                // A sub-agent's workflow has the epoch of its parent's run.
                Some(_) => input.epoch,
                // The run of a turn has no epoch yet.
                None => 0,
            },
        };
        let mut loaded = calls::load_turn(self.ctx, request.clone()).await?;
        for _ in 0..MAX_EPOCHS {
            let Some(epoch) = loaded.ask_again else {
                self.epoch = loaded.epoch;
                self.tool_queue.clone_from(&loaded.tool_queue);
                self.hooks = loaded.has_after_turn.then(|| WaitingHooks {
                    tool_queue: loaded.tool_queue.clone(),
                });
                self.is_time_of_budget = loaded.is_time_of_budget;
                return Ok(loaded);
            };
            request.epoch = epoch;
            loaded = calls::load_turn_again(self.ctx, request.clone()).await?;
        }
        Err(CallError::Failed(Failure {
            code: FailureCode::RunReplaced,
            message: "Other runs of this conversation take over again and again.".to_owned(),
        }))
    }

    /// Runs the turn, and announces a cancel of the turn, because only the workflow sees the cancels of every source.
    pub(crate) async fn run_announced(self, loaded: &LoadedTurn) -> Result<Outcome, CallError> {
        // A turn that is cancelled before its start calls no model and no tool.
        if self.cancellation.is_cancelled() {
            return self.run_in_time(loaded).await;
        }
        let (ctx, id) = (self.ctx, self.agent_execution_id.clone());
        let (cancellation, over) = (self.cancellation.clone(), WorkflowCancellationToken::new());
        let announce = async {
            select! {
                () = over.cancelled() => return,
                () = cancellation.cancelled() => {}
            }
            calls::announce_cancel(ctx, id).await;
        };
        let watch = self.watch_inbox(over.clone());
        let run = async {
            let outcome = self.run_in_time(loaded).await;
            over.cancel();
            outcome
        };
        let (outcome, (), ()) = join!(run, announce, watch);
        outcome
    }

    /// Looks at the inbox at every ring, until `over`. A cancel in the store and a waiting message with `interrupt` end
    /// the turn.
    fn watch_inbox(&self, over: WorkflowCancellationToken) -> impl Future<Output = ()> + use<'a> {
        let (ctx, cancellation) = (self.ctx, self.cancellation.clone());
        let (conversation_id, message_id) = (self.conversation_id.clone(), self.message.id.clone());
        async move {
            while calls::rung(ctx, over.clone()).await {
                let reason = calls::look(ctx, &conversation_id, Some(&message_id)).await;
                if let Some(reason) = reason {
                    cancellation.cancel_with_reason(&reason);
                }
            }
        }
    }

    /// Runs the turn. At its time limit, the turn's work and sub-agents are cancelled, and the turn ends as failed.
    async fn run_in_time(self, loaded: &LoadedTurn) -> Result<Outcome, CallError> {
        let Some(time_left_ms) = loaded.time_left_ms else {
            return self.run(loaded).await;
        };
        let (ctx, cancellation, is_out_of_time) = (
            self.ctx,
            self.cancellation.clone(),
            self.is_out_of_time.clone(),
        );
        let over = WorkflowCancellationToken::new();
        let time_left = Duration::from_millis(u64::from(time_left_ms));
        let watch = async {
            let ended = timer::within(ctx, time_left, "turn_timeout", over.cancelled());
            if ended.await.is_none() {
                is_out_of_time.set(true);
                cancellation.cancel_with_reason("the turn ran out of time");
            }
        };
        let run = async {
            let outcome = self.run(loaded).await;
            over.cancel();
            outcome
        };
        // The watch comes second, because the end of `run` does not poll the watch again.
        let (outcome, ()) = join!(run, watch);
        outcome
    }

    /// Runs the turn to its end, or to the point where it must go on in a new run.
    async fn run(mut self, loaded: &LoadedTurn) -> Result<Outcome, CallError> {
        if let Some(code) = &loaded.error_code {
            let code = code.as_str().into();
            let message = loaded.error_message.clone().unwrap_or_default();
            let end = self.end(Ending::Failed(Failure { code, message })).await?;
            return Ok(Outcome::Ended(end));
        }
        loop {
            match self.next(loaded).await {
                Ok(Next::Step) => {}
                Ok(Next::End(end)) => return Ok(Outcome::Ended(end)),
                Ok(Next::NewRun(next)) => return Ok(Outcome::ContinueAt(next)),
                Err(error) => return self.end_after(error).await,
            }
        }
    }

    /// Ends a turn after a failed save, so that readers of the event log learn of the failure. When the save of the end
    /// fails, too, the run fails, and a gateway's reconciler ends the turn.
    async fn end_after(&self, error: CallError) -> Result<Outcome, CallError> {
        let ending = match &error {
            CallError::Cancelled => Ending::Cancelled,
            CallError::Failed(failure) => Ending::Failed(failure.clone()),
        };
        self.end(ending).await.map(Outcome::Ended).or(Err(error))
    }

    async fn next(&mut self, loaded: &LoadedTurn) -> Result<Next, CallError> {
        if !self.cancellation.is_cancelled() {
            // Before each step, the run knows every message and every cancel that somebody has rung for.
            calls::looked(self.ctx).await;
        }
        if self.cancellation.is_cancelled() {
            return self.end(Ending::Cancelled).await.map(Next::End);
        }
        let goes_on_among_tools = std::mem::take(&mut self.goes_on_among_tools);
        if !goes_on_among_tools && let Some(end) = self.take_steers().await? {
            return Ok(Next::End(end));
        }
        if self.step >= loaded.step_limit() {
            return self.summarize(loaded).await;
        }
        let thought = match self.think(loaded).await {
            Ok(thought) => thought,
            Err(CallError::Failed(failure)) if !self.cancellation.is_cancelled() => {
                return self.end(Ending::Failed(failure)).await.map(Next::End);
            }
            // A call that failed after the cancel (its worker shut down) counts as cancelled.
            Err(CallError::Cancelled | CallError::Failed(_)) => {
                return self.end(Ending::Cancelled).await.map(Next::End);
            }
        };
        // After the model's answer, neither a cancel nor a steer changes the answer (invariant 3, idempotent saves).
        if thought.finish() == FinishReason::Stop {
            let has_step_left = self.step.saturating_add(1) < loaded.step_limit();
            if thought.goes_on && has_step_left && !self.cancellation.is_cancelled() {
                return self.save_and_go_on(Batch::CutReply(SaveCutReply {})).await;
            }
            return self.end(answered(&thought)).await.map(Next::End);
        }
        if self.cancellation.is_cancelled() {
            return self.end(Ending::Cancelled).await.map(Next::End);
        }
        if let Some(failure) = self.cut_replies.note(&thought) {
            return self.end(Ending::Failed(failure)).await.map(Next::End);
        }
        if thought.finish() == FinishReason::Compacted {
            return self
                .save_and_go_on(Batch::Compaction(SaveCompaction {}))
                .await;
        }
        self.ctx
            .state_mut(|state| state.outside.begin_step(&thought.tool_calls));
        let saved = self.save_batch(Batch::Thought(SaveThought {})).await?;
        if let Some(end) = self.ended(&saved) {
            return Ok(Next::End(end));
        }
        let max_parallel = loaded.max_parallel_tools;
        let ended = self.run_tools(&thought.tool_calls, &saved, max_parallel);
        Ok(match ended.await? {
            StepEnd::Ended => self.next_step(),
            StepEnd::Paused => Next::NewRun(NextRun {
                step: self.step,
                among_tools: true,
            }),
        })
    }

    /// Saves the result of the step: an answer that the provider cut, or a summary of older messages. The model goes on
    /// from it in the next step.
    pub(crate) async fn save_and_go_on(&mut self, batch: Batch) -> Result<Next, CallError> {
        let ended = self.save(batch).await?;
        Ok(match ended {
            Some(end) => Next::End(end),
            None => self.next_step(),
        })
    }

    /// Goes to the next step. With a long history, the step begins in a new run (invariant 4, linear history).
    fn next_step(&mut self) -> Next {
        self.step = self.step.saturating_add(1);
        let is_long = self.ctx.continue_as_new_suggested() && !self.cancellation.is_cancelled();
        if is_long {
            Next::NewRun(NextRun {
                step: self.step,
                among_tools: false,
            })
        } else {
            Next::Step
        }
    }

    /// Saves the messages that join the turn before its next LLM call. Returns the end when the turn has ended; the
    /// messages then get their own turns.
    async fn take_steers(&self) -> Result<Option<TurnEnd>, CallError> {
        for message_id in self.ctx.state_mut(|state| state.inbox.take_steers()) {
            let steer = Batch::Steer(SaveSteer { message_id });
            if let Some(end) = self.save(steer).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    pub(crate) async fn think(&self, loaded: &LoadedTurn) -> Result<ThinkResult, CallError> {
        self.enter(Phase::Thinking);
        let request = ThinkRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message.id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            agent_hash: loaded.agent_hash.clone(),
            epoch: self.epoch,
            // Allows one more compaction, because the summary at the step limit needs room.
            may_compact: self.step <= loaded.step_limit(),
            at_step_limit: self.step >= loaded.step_limit(),
            before_turn: loaded.has_before_turn && self.step == 0,
        };
        let timeout = Duration::from_millis(u64::from(loaded.llm_total_timeout_ms));
        let queue = loaded.model_queue.as_deref();
        let thought = calls::think(self.ctx, &self.cancellation, queue, request, timeout).await?;
        if thought.finish() == FinishReason::Cancelled {
            let reason = thought.cancel_reason.as_deref().unwrap_or_default();
            self.cancellation.cancel_with_reason(reason);
            return Err(CallError::Cancelled);
        }
        Ok(thought)
    }

    /// Ends the turn. The first saved end wins, so the result is the stored end and not always the requested one.
    pub(crate) async fn end(&self, ending: Ending) -> Result<TurnEnd, CallError> {
        self.enter(Phase::Ending);
        let ending = match ending {
            Ending::Cancelled if self.is_out_of_time.get() => {
                Ending::Failed(out_of_time(self.is_time_of_budget))
            }
            other => other,
        };
        let (status, code, message) = match &ending {
            Ending::Completed => (AgentExecutionStatus::Completed, None, None),
            Ending::Cancelled => (
                AgentExecutionStatus::Cancelled,
                None,
                Some(self.cancel_reason()),
            ),
            Ending::Failed(Failure { code, message }) => (
                AgentExecutionStatus::Failed,
                Some(code.into()),
                Some(message.clone()),
            ),
        };
        let end = SaveEnd {
            status: (&status).into(),
            code,
            message,
            hooks: match &ending {
                Ending::Completed => self.hooks.clone(),
                Ending::Cancelled | Ending::Failed(_) => None,
            },
        };
        let ended = self.save(Batch::End(end)).await?;
        let stored = ended.map_or(status, |end| end.status);
        let failure = match ending {
            Ending::Failed(failure) if stored == AgentExecutionStatus::Failed => Some(failure),
            _ => None,
        };
        Ok(TurnEnd {
            status: stored,
            steps: self.step.saturating_add(1),
            failure,
        })
    }

    /// Returns who has cancelled the turn, or why.
    fn cancel_reason(&self) -> String {
        let reason = self.cancellation.reason();
        let told = reason.filter(|reason| !reason.is_empty());
        let is_sub_agent = self.ctx.state(|state| {
            let input = state.input.as_ref();
            input.is_ok_and(|input| input.delegation.is_some())
        });
        told.unwrap_or_else(|| {
            if is_sub_agent {
                "cancelled with the turn of the parent agent".to_owned()
            } else {
                BY_ENGINE.to_owned()
            }
        })
    }

    /// Saves one batch. Returns the end when the turn has ended, now or before.
    pub(crate) async fn save(&self, batch: Batch) -> Result<Option<TurnEnd>, CallError> {
        Ok(self.ended(&self.save_batch(batch).await?))
    }

    pub(crate) async fn save_batch(&self, batch: Batch) -> Result<SaveResult, CallError> {
        let request = SaveRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message.id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            epoch: Some(self.epoch),
            batch: Some(batch),
        };
        calls::save(self.ctx, request).await
    }

    pub(crate) fn ended(&self, saved: &SaveResult) -> Option<TurnEnd> {
        let status = saved.status();
        (status != AgentExecutionStatus::Running).then(|| TurnEnd {
            status,
            steps: self.step.saturating_add(1),
            failure: None,
        })
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.ctx.state_mut(|state| state.enter(self.step, phase));
    }
}

/// The number of times a run loads its turn again with a new epoch. One time is enough, unless another run began in
/// between; only the newest run gets as far as a second answer.
const MAX_EPOCHS: u32 = 5;

/// Returns the turn's end for the model's answer.
fn answered(thought: &ThinkResult) -> Ending {
    match &thought.invalid_output {
        Some(problem) => Ending::Failed(Failure {
            code: FailureCode::LlmOutputInvalid,
            message: problem.clone(),
        }),
        None => Ending::Completed,
    }
}

const OUT_OF_TIME: &str = "The turn did not end within the agent's `turn_timeout` and was stopped. Raise it if the agent needs more time.";

const BUDGET_OUT_OF_TIME: &str = "The turn did not end within the `budget.time` of its agent and was stopped. Raise it if the agent needs more time.";

fn out_of_time(is_time_of_budget: bool) -> Failure {
    let (code, message) = if is_time_of_budget {
        (FailureCode::BudgetExhausted, BUDGET_OUT_OF_TIME)
    } else {
        (FailureCode::TurnTimeout, OUT_OF_TIME)
    };
    Failure {
        code,
        message: message.to_owned(),
    }
}
