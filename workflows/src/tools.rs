//! The tools of a step. The agent limits how many run in parallel, and the turn observes each tool at its end. With a
//! long history no further tool begins, and the turn goes on from among its tools in a new run (invariant 4, linear
//! history).
//!
//! A call may wait for a person's approval before its tool runs. A worker's own tool is an activity; a client tool runs
//! at the client, and the turn waits for its result; a remote tool runs at another worker (`remote.rs`); `delegate`
//! runs a sub-agent (`sub_agent.rs`). The wait for an approval is in `approval.rs`.
//!
//! Must not be here: how an activity is called (`calls.rs`), the content of a batch (the store).

use std::time::Duration;

use everturn_proto::{
    limits::HEARTBEAT_TIMEOUT,
    turn::{
        Delegation, PlannedCall, RunToolRequest, RunToolResult, SaveObserve, SaveResult, TurnInput,
        save_request::Batch,
    },
    words::{FailureCode, ToolKind},
};
use futures::FutureExt;
use temporalio_workflow::{join_all, select};

use crate::{
    AgentExecution,
    calls::{self, CallError, Failure},
    state::{Phase, show_waiting},
    step_calls::{Rest, StepCalls, remote_slots},
    sub_agent, timer,
    turn::{StepEnd, Turn},
};

/// The end of a wait.
pub(crate) enum Waited {
    /// The awaited answer or result has arrived.
    Done,
    /// The time is over.
    Expired,
    /// The turn was cancelled.
    Cancelled,
}

/// The state of a call with a stored end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// The workflow must save the call's observe.
    Recorded,
    /// The activity that stored the end has saved the observe, too.
    Observed,
    /// The tool has asked a person, and the question is stored. The call waits for the answer for this time.
    Asks(Duration),
}

impl From<RunToolResult> for Ran {
    fn from(result: RunToolResult) -> Self {
        if let Some(asks) = result.question {
            Self::Asks(Duration::from_secs(u64::from(asks.timeout_s)))
        } else if result.observed {
            Self::Observed
        } else {
            Self::Recorded
        }
    }
}

impl Turn<'_> {
    /// Runs the step's tools, at most `max_parallel` in parallel, and observes each tool at its end. `saved` is the
    /// result of the thought's save.
    pub(crate) async fn run_tools(
        &self,
        tool_calls: &[PlannedCall],
        saved: &SaveResult,
        max_parallel: Option<u32>,
    ) -> Result<StepEnd, CallError> {
        self.enter(Phase::RunningTools(
            tool_calls
                .iter()
                .map(|call| call.tool_name.clone())
                .collect(),
        ));
        self.ctx.state_mut(|state| {
            state.step_calls = StepCalls::begin(tool_calls.len(), max_parallel);
            for left in &saved.still_waiting {
                let is_it = |call: &&PlannedCall| call.execution_id == left.execution_id;
                let call = tool_calls.iter().find(is_it);
                if let Some(call) = call.filter(|_| !left.input_hash.is_empty()) {
                    state.outside.await_person(call, left.input_hash.clone());
                }
            }
            saved
                .approvals_answered
                .iter()
                .for_each(|id| state.outside.skip_approval(id));
            saved
                .results_stored
                .iter()
                .for_each(|id| state.outside.result_stored(id.clone()));
        });
        show_waiting(self.ctx);
        let left = |call: &PlannedCall| {
            saved
                .still_waiting
                .iter()
                .find(|left| left.execution_id == call.execution_id)
        };
        let left_ms = |call| left(call).map(|left| Duration::from_millis(u64::from(left.left_ms)));
        let runs = tool_calls
            .iter()
            .map(|call| self.run_tool(call, left_ms(call)));
        let ended = select! {
            ended = join_all(runs).fuse() => ended.into_iter().collect::<Result<(), _>>(),
            () = self.may_pause().fuse() => return Ok(StepEnd::Paused),
        };
        self.ctx.state_mut(|state| state.outside.end_step());
        // After a cancel, TurnStatus may still show a wait for a person.
        show_waiting(self.ctx);
        ended.map(|()| StepEnd::Ended)
    }

    /// True when the history is too long for another tool of this step to begin in this run.
    fn is_long(&self) -> bool {
        self.ctx.continue_as_new_suggested() && !self.cancellation.is_cancelled()
    }

    /// Waits until the history is long and every remaining call only waits: for an answer from outside, or for a slot.
    async fn may_pause(&self) {
        let only_waits = |state: &AgentExecution, id: &str, rest| match rest {
            Rest::Approval => state.outside.answer(id).is_none(),
            Rest::ClientResult => !state.outside.has_result(id),
            Rest::Slot => true,
        };
        let is_resting = |state: &AgentExecution| {
            let resting = state.step_calls.all_at_rest();
            resting.is_some_and(|mut calls| calls.all(|(id, rest)| only_waits(state, id, rest)))
        };
        let paused = self
            .ctx
            .wait_condition(|state| is_resting(state) && self.is_long());
        if paused.await.is_err() {
            // The run is cancelled, and its calls end.
            std::future::pending::<()>().await;
        }
    }

    /// Runs one tool, and notes the end. `left` is the rest of the waiting time, when an earlier run of this turn asked
    /// for the call.
    async fn run_tool(&self, call: &PlannedCall, left: Option<Duration>) -> Result<(), CallError> {
        let ended = self.run_one(call, left).await;
        self.ctx.state_mut(|state| state.step_calls.end_one());
        ended
    }

    async fn run_one(
        &self,
        call: &PlannedCall,
        mut left: Option<Duration>,
    ) -> Result<(), CallError> {
        let mut waits_for_person = self
            .ctx
            .state(|state| state.outside.needs_approval(&call.execution_id));
        let ran = loop {
            if waits_for_person {
                let is_approved = self.is_approved(call, left.take()).await;
                show_waiting(self.ctx);
                if !is_approved? {
                    return Ok(());
                }
            }
            match self.run_kind(call, left).await {
                Ok(Ran::Asks(timeout)) => {
                    (waits_for_person, left) = (true, Some(timeout));
                    show_waiting(self.ctx);
                }
                ran => break ran,
            }
        };
        let failure = match ran {
            Ok(Ran::Recorded | Ran::Asks(_)) => None,
            // The end of the turn observes the calls that a cancel left open (invariant 6, done once).
            Ok(Ran::Observed) | Err(CallError::Cancelled) => return Ok(()),
            Err(CallError::Failed(_)) if self.cancellation.is_cancelled() => return Ok(()),
            Err(CallError::Failed(failure)) => Some(failure.message),
        };
        let observe = SaveObserve {
            execution_id: call.execution_id.clone(),
            failure,
        };
        self.save(Batch::Observe(observe)).await.map(drop)
    }

    /// Runs the tool of a call whose approval lets the tool run. `left` is the rest of the wait for a client.
    async fn run_kind(&self, call: &PlannedCall, left: Option<Duration>) -> Result<Ran, CallError> {
        match call.kind() {
            ToolKind::Client => self.await_client(call, left).await,
            // A sub-agent waits for tools, which take slots. A sub-agent with a slot could block its own tools.
            ToolKind::Delegate => self.delegate(call).await,
            ToolKind::Remote => self.in_slot(call, self.run_remote(call)).await,
            // For a kind from a newer version, the activity reports the problem.
            ToolKind::Worker | ToolKind::Unknown(_) => {
                self.in_slot(call, self.run_activity(call)).await
            }
        }
    }

    /// Runs a tool as soon as it has a slot: the step's limits allow another tool, and the history has room. A call
    /// that waits for an answer from outside takes no slot.
    async fn in_slot(
        &self,
        call: &PlannedCall,
        run: impl Future<Output = Result<Ran, CallError>>,
    ) -> Result<Ran, CallError> {
        let remote = remote_slots(call);
        let may_begin = |state: &AgentExecution| {
            let calls = &state.step_calls;
            calls.has_slot() && calls.has_remote_slots(remote) && !self.is_long()
        };
        // The first woken tool takes the slot, so every other tool must check again.
        while !self.ctx.state(may_begin) {
            self.rest(call, Rest::Slot);
            let woken = self.ctx.wait_condition(may_begin).await;
            self.wake(call);
            if woken.is_err() || self.cancellation.is_cancelled() {
                return Err(CallError::Cancelled);
            }
        }
        let calls = |change: fn(&mut StepCalls, u32)| {
            self.ctx
                .state_mut(|state| change(&mut state.step_calls, remote));
        };
        calls(StepCalls::take_slot);
        let ran = run.await;
        calls(StepCalls::return_slot);
        ran
    }

    fn rest(&self, call: &PlannedCall, what: Rest) {
        self.ctx
            .state_mut(|state| state.step_calls.rest(&call.execution_id, what));
    }

    fn wake(&self, call: &PlannedCall) {
        self.ctx
            .state_mut(|state| state.step_calls.wake(&call.execution_id));
    }

    async fn run_activity(&self, call: &PlannedCall) -> Result<Ran, CallError> {
        let request = RunToolRequest {
            may_ask: true,
            ..self.tool_request(call)
        };
        let queue = self.tool_queue.as_deref();
        let ran = if call.inline {
            calls::run_inline_tool(self.ctx, &self.cancellation, queue, call, request).await
        } else {
            let (token, silence) = (&self.cancellation, HEARTBEAT_TIMEOUT);
            calls::run_tool(self.ctx, token, queue, silence, call, request).await
        };
        let ran = ran?;
        if let Some(asks) = &ran.question {
            self.ctx.state_mut(|state| {
                state.outside.await_person(call, asks.input_hash.clone());
            });
        }
        Ok(Ran::from(ran))
    }

    pub(crate) fn tool_request(&self, call: &PlannedCall) -> RunToolRequest {
        RunToolRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message.id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            execution_id: call.execution_id.clone(),
            epoch: Some(self.epoch),
            may_observe: true,
            may_ask: false,
        }
    }

    /// Runs a sub-agent as a child workflow. The sub-agent's end ends the call in the store, and the observe reads the
    /// end there.
    async fn delegate(&self, call: &PlannedCall) -> Result<Ran, CallError> {
        let delegation = Delegation {
            message_id: self.message.id.clone(),
            parent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            execution_id: call.execution_id.clone(),
        };
        let input = TurnInput {
            conversation_id: self.conversation_id.clone(),
            tenant_id: self.tenant_id.clone(),
            delegation: Some(delegation),
            epoch: self.epoch,
            ..TurnInput::default()
        };
        let ran = sub_agent::run(self.ctx, &self.cancellation, input, call).await;
        ran.map(|()| Ran::Recorded)
    }

    /// Waits for the client's result. A gateway has stored the result, and the observe reads it from the store.
    async fn await_client(
        &self,
        call: &PlannedCall,
        left: Option<Duration>,
    ) -> Result<Ran, CallError> {
        let id = call.execution_id.as_str();
        let timeout = left.unwrap_or(Duration::from_millis(u64::from(call.timeout_ms)));
        match self
            .wait(timeout, Rest::ClientResult, call, |state| {
                state.outside.has_result(id)
            })
            .await
        {
            Waited::Done => Ok(Ran::Recorded),
            Waited::Cancelled => Err(CallError::Cancelled),
            Waited::Expired => Err(CallError::Failed(Failure {
                code: FailureCode::ToolUnavailable,
                message: "the client did not answer in time; whether it ran the tool is unknown"
                    .to_owned(),
            })),
        }
    }

    /// Waits until `is_there`, for `timeout` at the most, or until the turn is cancelled. The wait holds no worker.
    pub(crate) async fn wait(
        &self,
        timeout: Duration,
        what: Rest,
        call: &PlannedCall,
        is_there: impl Fn(&AgentExecution) -> bool,
    ) -> Waited {
        if self.ctx.state(&is_there) {
            return Waited::Done;
        }
        let summary = format!("{} of {}", what.as_str(), call.tool_name);
        self.rest(call, what);
        let arrived = async {
            select! {
                () = self.cancellation.cancelled() => Waited::Cancelled,
                met = self.ctx.wait_condition(|state| is_there(state)) => {
                    if met.is_ok() { Waited::Done } else { Waited::Cancelled }
                }
            }
        };
        let waited = timer::within(self.ctx, timeout, &summary, arrived).await;
        self.wake(call);
        waited.unwrap_or(Waited::Expired)
    }
}
