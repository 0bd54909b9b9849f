//! Workflow `after-turn`: the hooks of an agent after its completed turn (docs/hooks.md). The hooks have a separate
//! workflow: the next turn does not wait for the hooks, and the end of the conversation's workflow does not stop them.
//!
//! The workflow appends no event, because the turn has ended. The record of a hook has the hook's result.

// The workflow macros generate undocumented markers beside each handler.
#![allow(missing_docs)]

use std::time::Duration;

use everturn_proto::{
    Lenient, ids,
    limits::{AFTER_TURN_LIMIT_S, HOOK_HEARTBEAT_TIMEOUT},
    turn::{AfterTurnInput, AfterTurnOutput, LoadedTurn, PlannedCall, RunToolRequest},
    words::{AgentExecutionStatus, FailureCode, PayloadRefusal, ToolStatus},
};
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ChildWorkflowOptions, ParentClosePolicy, WorkflowCancellationToken, WorkflowContext,
    WorkflowContextView, WorkflowResult, WorkflowTermination, join_all,
};

use crate::{
    AgentExecution,
    calls::{self, CallError, Failure, TASK_TIMEOUT},
    refused::take_input,
    turn::{Outcome, Turn},
};

/// The workflow `after-turn`.
#[workflow]
pub struct AfterTurn {
    input: Result<AfterTurnInput, String>,
    /// Why the run must not take its input. The input names no tenant, because it has only ids.
    refused_input: Option<PayloadRefusal>,
}

#[workflow_methods]
impl AfterTurn {
    /// Takes the input unchecked. `run` reports an invalid input.
    #[init]
    pub fn new(_ctx: &WorkflowContextView, input: Lenient<AfterTurnInput>) -> Self {
        Self {
            refused_input: input.unopened(),
            input: input.0,
        }
    }

    /// Runs the hooks of one turn, in parallel.
    #[run(name = "after-turn")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<AfterTurnOutput> {
        let invalid = |message| {
            let code = FailureCode::InvalidInput;
            failed(Failure { code, message })
        };
        let refused = ctx.state(|state| state.refused_input.clone());
        take_input(ctx, refused).await.map_err(invalid)?;
        let input = ctx
            .state(|state| state.input.clone())
            .map_err(|error| invalid(format!("The input is none of `after-turn`: {error}.")))?;
        let cancellation = ctx.cancellation_token();
        let planned = calls::begin_after_turn(ctx, &cancellation, input.clone()).await;
        let planned = planned.map_err(ended)?;
        let ctx = &*ctx;
        let (input, cancellation) = (&input, &cancellation);
        let hooks = planned.tool_calls.iter().map(|call| async move {
            let queue = input.tool_queue.as_deref();
            let silence = HOOK_HEARTBEAT_TIMEOUT;
            let request = request(input, call);
            let ran = calls::run_tool(ctx, cancellation, queue, silence, call, request).await;
            ran.is_ok_and(|ran| ran.status() == ToolStatus::Completed)
        });
        let completed = join_all(hooks).await.into_iter().filter(|it| *it).count();
        Ok(AfterTurnOutput {
            hooks: u32::try_from(planned.tool_calls.len()).unwrap_or(u32::MAX),
            completed: u32::try_from(completed).unwrap_or(u32::MAX),
            is_left_out: planned.is_left_out,
        })
    }
}

fn request(input: &AfterTurnInput, call: &PlannedCall) -> RunToolRequest {
    RunToolRequest {
        conversation_id: input.conversation_id.clone(),
        message_id: input.message_id.clone(),
        agent_execution_id: input.agent_execution_id.clone(),
        step: ids::AFTER_TURN_STEP,
        execution_id: call.execution_id.clone(),
        // A newer run of the conversation changes nothing for an ended turn.
        epoch: None,
        may_observe: false,
        may_ask: false,
    }
}

/// Runs a turn. When the turn has completed and its agent has hooks after it, starts the hooks' workflow and waits for
/// the engine's acceptance, for which no worker is needed. A failed start changes nothing of the turn. If the run is lost
/// before the start, a gateway's reconciler starts the hooks' workflow, because the batch of the end notes the hooks.
pub(crate) async fn run_followed(
    turn: Turn<'_>,
    loaded: &LoadedTurn,
) -> Result<Outcome, CallError> {
    if !loaded.has_after_turn {
        return turn.run_announced(loaded).await;
    }
    let ctx = turn.ctx;
    let mut input = AfterTurnInput {
        conversation_id: turn.conversation_id.clone(),
        message_id: turn.message.id.clone(),
        agent_execution_id: turn.agent_execution_id.clone(),
        agent_hash: loaded.agent_hash.clone(),
        last_step: 0,
        tool_queue: turn.tool_queue.clone(),
    };
    let outcome = turn.run_announced(loaded).await;
    if let Ok(Outcome::Ended(end)) = &outcome
        && end.status == AgentExecutionStatus::Completed
    {
        input.last_step = end.steps.saturating_sub(1);
        start(ctx, input).await;
    }
    outcome
}

async fn start(ctx: &WorkflowContext<AgentExecution>, input: AfterTurnInput) {
    let id = ids::after_turn_workflow_id(&input.conversation_id, &input.agent_execution_id);
    let options = ChildWorkflowOptions::builder()
        .workflow_id(id)
        // The hooks go on when the conversation's run ends, is cancelled or is terminated.
        .parent_close_policy(ParentClosePolicy::Abandon)
        .cancellation_token(WorkflowCancellationToken::new())
        .execution_timeout(Duration::from_secs(u64::from(AFTER_TURN_LIMIT_S)))
        .task_timeout(TASK_TIMEOUT)
        .static_summary("after the turn".to_owned())
        .build();
    // After a reset, the run may find the hooks' workflow started already. A gateway may have started the workflow, too.
    let _ = ctx
        .start_child_workflow(AfterTurn::run, Lenient::from(input), options)
        .await;
}

fn ended(error: CallError) -> WorkflowTermination {
    match error {
        CallError::Cancelled => WorkflowTermination::cancelled(),
        CallError::Failed(failure) => failed(failure).into(),
    }
}

fn failed(failure: Failure) -> ApplicationFailure {
    ApplicationFailure::builder(failure.message)
        .type_name(failure.code.into())
        .non_retryable(true)
        .build()
}
