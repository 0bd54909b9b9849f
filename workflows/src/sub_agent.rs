//! How a sub-agent's workflow is started and awaited.
//!
//! It has the id of the tool call that started it, so that a parent that was reset or resumed finds the same one: its
//! agent execution is where it was, and no LLM call of it is paid twice (invariant 5, paid once). A cancel of the
//! parent is passed on, and waited for.

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
    TimerOptions, TimerResult, WorkflowCancellationToken, WorkflowContext,
};

use crate::{
    AgentExecution,
    calls::{CallError, Failure, TASK_TIMEOUT},
};

/// How often the start is tried while an earlier workflow of the same sub-agent still runs. That happens when its
/// parent was terminated or reset a moment ago.
const START_ATTEMPTS: u32 = 20;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Runs the sub-agent of a call to its end. After `Ok` the store says how the call ended.
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
                return child
                    .result()
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
        let timer = TimerOptions::builder(wait).cancellation_token(cancellation.clone());
        let timer = timer
            .summary("the sub-agent's earlier workflow still runs".to_owned())
            .build();
        if !matches!(ctx.timer(timer).await, TimerResult::Fired) {
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
        // A parent ends after its sub-agents, unless it is terminated. Then they are terminated, too, so that a resume
        // finds them unfinished and goes on with them. If they were cancelled instead, they would end as cancelled.
        .parent_close_policy(ParentClosePolicy::Terminate)
        .task_timeout(TASK_TIMEOUT)
        .static_summary("sub-agent".to_owned())
        .build()
}

/// Returns the text for a sub-agent that was stopped from outside. A sub-agent that failed has ended its call itself,
/// and then this text is not used.
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
