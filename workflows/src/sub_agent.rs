//! How a sub-agent's workflow is started and awaited.
//!
//! The workflow has the id of the tool call that started it. After a reset or a resume, the parent finds the unchanged
//! agent execution under that id, and no LLM call is paid twice (invariant 5, paid once). A cancel of the parent is
//! passed on, and the parent waits for the sub-agent's end.

use std::time::Duration;

use everturn_proto::{
    Lenient, ids,
    turn::{PlannedCall, TurnInput},
    words::FailureCode,
};
use temporalio_common::error::IncomingError;
use temporalio_workflow::{
    ChildWorkflowCancellationType, ChildWorkflowExecutionError, ChildWorkflowOptions,
    ChildWorkflowStartError, ParentClosePolicy, StartChildWorkflowExecutionFailedCause,
    WorkflowCancellationToken, WorkflowContext,
};

use crate::{
    AgentExecution,
    calls::{CallError, Failure, TASK_TIMEOUT},
    refused::readable_child,
    timer,
};

/// The number of attempts to start a sub-agent while its earlier workflow still runs. An earlier workflow still runs
/// when its parent was terminated or reset a moment ago.
const START_ATTEMPTS: u32 = 20;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Runs the sub-agent of a call to its end. After `Ok` the store has the call's end.
pub(crate) async fn run(
    ctx: &WorkflowContext<AgentExecution>,
    cancellation: &WorkflowCancellationToken,
    input: TurnInput,
    call: &PlannedCall,
) -> Result<(), CallError> {
    let workflow_id = ids::sub_agent_workflow_id(&input.conversation_id, &call.execution_id);
    let mut wait = FIRST_WAIT;
    for _ in 0..START_ATTEMPTS {
        let options = options(&workflow_id, cancellation);
        let started = ctx
            .start_child_workflow(AgentExecution::run, Lenient::from(input.clone()), options)
            .await;
        match started {
            Ok(child) => {
                return readable_child(ctx, child.result())
                    .await
                    .map(drop)
                    .map_err(|error| ended_badly(&error, cancellation));
            }
            Err(ChildWorkflowStartError::Cancelled(_)) => return Err(CallError::Cancelled),
            Err(ChildWorkflowStartError::StartFailed {
                cause: StartChildWorkflowExecutionFailedCause::WorkflowAlreadyExists,
                ..
            }) => {}
            Err(error) => {
                return Err(failed(&format!(
                    "The sub-agent could not be started: {error}"
                )));
            }
        }
        let summary = "the sub-agent's earlier workflow still runs";
        let cancelled = timer::within(ctx, wait, summary, cancellation.cancelled());
        if cancelled.await.is_some() {
            return Err(CallError::Cancelled);
        }
        wait = (wait * 2).min(MAX_WAIT);
    }
    Err(failed(
        "The sub-agent of an earlier run of this turn did not end.",
    ))
}

fn options(workflow_id: &str, cancellation: &WorkflowCancellationToken) -> ChildWorkflowOptions {
    ChildWorkflowOptions::builder()
        .workflow_id(workflow_id.to_owned())
        .cancel_type(ChildWorkflowCancellationType::WaitCancellationCompleted)
        .cancellation_token(cancellation.clone())
        // A parent ends after its sub-agents, unless an operator terminates it. The engine then terminates the
        // sub-agents, too, so that a resume goes on with unfinished sub-agents. A cancel would end them as cancelled.
        .parent_close_policy(ParentClosePolicy::Terminate)
        .task_timeout(TASK_TIMEOUT)
        .static_summary("sub-agent".to_owned())
        .build()
}

/// Returns the text for a sub-agent that was stopped from outside. A failed sub-agent has ended its call itself,
/// without this text.
fn ended_badly(
    error: &ChildWorkflowExecutionError,
    cancellation: &WorkflowCancellationToken,
) -> CallError {
    match error.reason() {
        _ if cancellation.is_cancelled() => CallError::Cancelled,
        Some(IncomingError::Terminated(_)) => failed("The sub-agent's workflow was terminated."),
        _ => failed(&format!("The sub-agent's workflow failed: {error}")),
    }
}

fn failed(message: &str) -> CallError {
    CallError::Failed(Failure {
        code: FailureCode::SubAgentLost,
        message: message.to_owned(),
    })
}
