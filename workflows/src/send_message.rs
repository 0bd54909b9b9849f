//! Workflow `send-message`: hands a message to the workflow of a conversation (docs/operate/schedules.md). The workflow may
//! have any id. A Temporal Schedule appends a time to the ids of its workflows, and `agent-execution` takes no id but the
//! id of its conversation.
//!
//! The workflow calls no activity. It starts the conversation's workflow as an abandoned child, or signals the running
//! workflow. A repeat hands over a message with the same id, so the conversation answers once.

// The workflow macros generate undocumented markers beside each handler.
#![allow(missing_docs)]

use std::time::Duration;

use everturn_proto::{
    ConversationName, Lenient, ids,
    limits::MAX_MESSAGE_BYTES,
    turn::{SendMessageInput, SendMessageOutput, Submit, TurnInput},
    words::{FailureCode, PayloadRefusal},
};
use temporalio_common::{Priority, error::ApplicationFailure};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ChildWorkflowOptions, ChildWorkflowStartError, ParentClosePolicy, SignalWorkflowOptions,
    StartChildWorkflowExecutionFailedCause, WorkflowContext, WorkflowContextView, WorkflowResult,
    WorkflowSignalError, WorkflowTermination,
};

use crate::{AgentExecution, calls::TASK_TIMEOUT, refused::take_input, timer};

/// The number of attempts to start or to signal the conversation's workflow. A further attempt is needed only when the
/// workflow ends between the refused start and the signal.
const ATTEMPTS: u32 = 20;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

const EXAMPLE_INPUT: &str = r#"{"conversation_id":"demo","content":"Hello"}"#;

/// The workflow `send-message`.
#[workflow]
pub struct SendMessage {
    input: Result<SendMessageInput, String>,
    /// Why the run must not take its input.
    refused_input: Option<PayloadRefusal>,
}

/// A message, and the input with which the conversation's workflow starts.
#[derive(Debug, Clone, PartialEq)]
struct Handover {
    workflow_id: String,
    message_id: String,
    tenant_id: String,
    turn: TurnInput,
}

#[workflow_methods]
impl SendMessage {
    /// Takes the input unchecked. `run` reports an invalid input.
    #[init]
    pub fn new(_ctx: &WorkflowContextView, input: Lenient<SendMessageInput>) -> Self {
        let refused_input = match &input.0 {
            Ok(sent) => input.refusal(&ids::fairness_key(sent.tenant())),
            Err(_) => input.unopened(),
        };
        Self {
            refused_input,
            input: input.0,
        }
    }

    /// Hands the message over, and ends without a wait for the answer.
    #[run(name = "send-message")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<SendMessageOutput> {
        let refused = ctx.state(|state| state.refused_input.clone());
        take_input(ctx, refused).await.map_err(invalid)?;
        let input = ctx.state(|state| state.input.clone());
        let handover = input.and_then(|input| {
            let info = ctx.info();
            handover(input, ctx.workflow_id(), info.first_execution_run_id())
        });
        let handover = handover
            .map_err(|error| invalid(format!("{error}. The input looks like {EXAMPLE_INPUT}")))?;
        let has_started = hand_over(ctx, &handover).await?;
        Ok(SendMessageOutput {
            conversation_id: handover.turn.conversation_id,
            message_id: handover.message_id,
            has_started,
        })
    }
}

/// Makes the handover of an input, or says what is wrong with the input. The ids follow from the workflow, so a repeated
/// run hands over the same message.
fn handover(
    input: SendMessageInput,
    workflow_id: &str,
    first_execution_run_id: &str,
) -> Result<Handover, String> {
    let given = |text: &String| !text.is_empty();
    let tenant_id = input.tenant().to_owned();
    let content = input.content;
    if content.trim().is_empty() || content.len() > MAX_MESSAGE_BYTES || content.contains('\0') {
        return Err(format!(
            "`content` must have 1 to {MAX_MESSAGE_BYTES} bytes, and no NUL"
        ));
    }
    let conversation_id = input.conversation_id.filter(given);
    let conversation_id = conversation_id.unwrap_or_else(|| {
        let name = ids::conversation_name_of(workflow_id);
        let (tenant_id, name) = (tenant_id.as_str(), name.as_str());
        ConversationName { tenant_id, name }.id()
    });
    ConversationName::check_id(&conversation_id, &tenant_id)?;
    let message_id = input.message_id.filter(given);
    let message_id = message_id
        .unwrap_or_else(|| ids::handed_over_message_id(workflow_id, first_execution_run_id));
    ids::check(&message_id).map_err(|reason| format!("`message_id` {reason}"))?;
    Ok(Handover {
        workflow_id: ids::workflow_id(&conversation_id),
        turn: TurnInput {
            conversation_id,
            tenant_id: Some(tenant_id.clone()),
            agent: input.agent.filter(given),
            message: Some(Submit {
                message_id: Some(message_id.clone()),
                content: Some(content),
                ..Submit::default()
            }),
            ..TurnInput::default()
        },
        message_id,
        tenant_id,
    })
}

/// Starts the conversation's workflow with the message, or signals the message to the running workflow. Returns true
/// after a start.
async fn hand_over(
    ctx: &WorkflowContext<SendMessage>,
    handover: &Handover,
) -> Result<bool, WorkflowTermination> {
    let mut wait = FIRST_WAIT;
    for _ in 0..ATTEMPTS {
        let input = Lenient::from(handover.turn.clone());
        let started = ctx
            .start_child_workflow(AgentExecution::run, input, options(handover))
            .await;
        match started {
            Ok(_) => return Ok(true),
            Err(ChildWorkflowStartError::StartFailed {
                cause: StartChildWorkflowExecutionFailedCause::WorkflowAlreadyExists,
                ..
            }) => {}
            Err(ChildWorkflowStartError::Cancelled(_)) => {
                return Err(WorkflowTermination::cancelled());
            }
            Err(error) => return Err(failed(&error.to_string())),
        }
        let message = handover.turn.message.clone().unwrap_or_default();
        let signalled = ctx
            .external_workflow(handover.workflow_id.clone(), None)
            .signal(
                AgentExecution::submit,
                Lenient::from(message),
                SignalWorkflowOptions::default(),
            )
            .await;
        match signalled {
            Ok(()) => return Ok(false),
            Err(_) if ctx.cancellation_token().is_cancelled() => {
                return Err(WorkflowTermination::cancelled());
            }
            // The workflow has ended since the start was refused.
            Err(WorkflowSignalError::NotFound(_)) => {}
            Err(error) => return Err(failed(&error.to_string())),
        }
        let summary = "the conversation's workflow has just ended";
        let run = ctx.cancellation_token();
        let cancelled = timer::within(ctx, wait, summary, run.cancelled());
        if cancelled.await.is_some() {
            return Err(WorkflowTermination::cancelled());
        }
        wait = (wait * 2).min(MAX_WAIT);
    }
    Err(failed(
        "the conversation's workflow neither starts nor takes signals",
    ))
}

/// Returns the options of the conversation's workflow. The run itself sets its search attributes, with the agent from the
/// store.
fn options(handover: &Handover) -> ChildWorkflowOptions {
    let mut priority = Priority::default();
    priority.fairness_key = Some(ids::fairness_key(&handover.tenant_id));
    ChildWorkflowOptions::builder()
        .workflow_id(handover.workflow_id.clone())
        // The turn goes on after the end of this workflow.
        .parent_close_policy(ParentClosePolicy::Abandon)
        .task_timeout(TASK_TIMEOUT)
        .priority(priority)
        .build()
}

fn invalid(message: String) -> ApplicationFailure {
    failure(FailureCode::InvalidInput, message)
}

fn failed(reason: &str) -> WorkflowTermination {
    let message = format!("The message was not handed over: {reason}.");
    failure(FailureCode::Internal, message).into()
}

fn failure(code: FailureCode, message: String) -> ApplicationFailure {
    ApplicationFailure::builder(message)
        .type_name(code.into())
        .non_retryable(true)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> Result<Handover, String> {
        let input: SendMessageInput = serde_json::from_str(text).unwrap();
        handover(input, "report-2026-12-01T06:00:00Z", "run")
    }

    #[test]
    fn a_conversation_gets_the_message_with_an_id_of_the_workflow() {
        let first = sent(r#"{"conversation_id":"report","content":"Go."}"#).unwrap();
        assert_eq!(first.workflow_id, "conversation-report");
        assert_eq!(first.tenant_id, "default");
        let message = first.turn.message.clone().unwrap();
        assert_eq!(message.content.as_deref(), Some("Go."));
        assert_eq!(
            message.message_id.as_deref(),
            Some(first.message_id.as_str())
        );
        let again = sent(r#"{"conversation_id":"report","content":"Go."}"#).unwrap();
        assert_eq!(again, first, "a repeat sends one message");
        let own = sent(r#"{"conversation_id":"report","content":"Go.","message_id":"m"}"#);
        assert_eq!(own.unwrap().message_id, "m");
    }

    #[test]
    fn without_a_conversation_each_workflow_has_its_own() {
        let of = |workflow_id, tenant: &str| {
            let input = SendMessageInput {
                tenant_id: Some(tenant.to_owned()),
                content: "Go.".to_owned(),
                ..SendMessageInput::default()
            };
            handover(input, workflow_id, "run")
                .unwrap()
                .turn
                .conversation_id
        };
        assert_ne!(of("report-1", ""), of("report-2", ""));
        assert_eq!(of("report-1", ""), of("report-1", "default"));
        assert!(of("any / id", "acme").starts_with("acme~"));
    }

    #[test]
    fn an_unusable_input_is_explained() {
        for (wrong, why) in [
            (r#"{"conversation_id":"report"}"#, "content"),
            (r#"{"conversation_id":"report","content":" "}"#, "content"),
            (
                r#"{"conversation_id":"a b","content":"Go."}"#,
                "conversation_id",
            ),
            (
                r#"{"conversation_id":"report","tenant_id":"acme","content":"Go."}"#,
                "acme~report",
            ),
            (r#"{"content":"Go.","message_id":"a b"}"#, "message_id"),
        ] {
            let error = sent(wrong).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
