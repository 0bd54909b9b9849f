//! Pure: turns a `SaveRequest` and what is stored into the rows of one transaction.
//!
//! A back end locks the conversation, loads a [`Snapshot`] (see [`Needs`]), calls [`build`] and writes the
//! [`Batch`]. Everything that decides what a batch contains is here, so that two back ends cannot disagree.
//!
//! - `batch/rows.rs`: what goes in ([`Snapshot`]) and comes out ([`Batch`])
//! - `batch/keys.rs`: the role-naming keys of batches (invariant 3)
//! - `batch/delegation.rs`: sub-agents: whether one may start, what starts it, what its end gives its parent
//! - `batch/outside.rs`: asking a person or the client, and their answers
//! - `batch/builder.rs`: the steps all kinds of batch share: number an event, observe a tool, apply plan events
//!
//! No I/O, no clock, no randomness.

mod builder;
mod delegation;
mod keys;
mod outside;
mod rows;
#[cfg(test)]
mod tests;

use everturn_proto::{
    event::{Act, Cancelled, Complete, Error, Thought},
    ids,
    turn::{LlmCompleteState, SaveApproval, SaveEnd, SaveObserve, SaveRequest, save_request},
    words::{approval, checkpoint, event_type, execution_status, failure, finish, tool_status},
};

pub use delegation::{Delegator, Task, task};
pub use keys::{checkpoint_id, event_id, key, user_message_key};
pub use rows::{
    AssistantRow, Batch, Delegation, End, Needs, NewEvent, Snapshot, StepResults, TakenMessage,
    ToolRow, ToolsNeeded, Totals, WaitingMessage,
};

use crate::{
    api::{Result, ToolRecord},
    error::StoreError,
};
use builder::{Builder, Closing};

/// Codes of ends from outside: the text so far is all there is, as after a cancel.
const CUT_SHORT: [&str; 3] = [
    failure::TURN_LOST,
    failure::SUB_AGENT_LOST,
    failure::TURN_TIMEOUT,
];

/// What a batch of this kind reads from the store.
pub fn needs(request: &SaveRequest) -> Result<Needs> {
    Ok(match kind(request)? {
        save_request::Batch::Steer(steer) => Needs {
            message: Some(steer.message_id.clone()),
            ..Needs::default()
        },
        save_request::Batch::Thought(_) => Needs {
            checkpoint: true,
            ..Needs::default()
        },
        save_request::Batch::Observe(observe) => Needs {
            tools: ToolsNeeded::One(observe.execution_id.clone()),
            ..Needs::default()
        },
        save_request::Batch::SubAgent(_) => Needs::default(),
        save_request::Batch::Approval(approval) => Needs {
            tools: ToolsNeeded::One(approval.execution_id.clone()),
            ..Needs::default()
        },
        save_request::Batch::End(end) => Needs {
            checkpoint: true,
            // Of a failed call the text so far is not what the model said.
            partial: end.status == execution_status::CANCELLED
                || end
                    .code
                    .as_deref()
                    .is_some_and(|code| CUT_SHORT.contains(&code)),
            totals: end.status == execution_status::COMPLETED,
            tools: ToolsNeeded::Open,
            delegation: is_sub_agent(request).then(|| request.agent_execution_id.clone()),
            ..Needs::default()
        },
    })
}

/// The rows of the batch that `request` names. The caller has checked, under the conversation's lock, that the
/// batch's key is not stored and that the execution is running.
///
/// A batch without events is one whose work is already done: nothing is to be written.
pub fn build(request: &SaveRequest, snapshot: &Snapshot) -> Result<Batch> {
    let mut builder = Builder::new(request, snapshot)?;
    match kind(request)? {
        save_request::Batch::Steer(steer) => {
            builder.user_message(&steer.message_id, &steer.content)?
        }
        save_request::Batch::Thought(_) => save_thought(&mut builder)?,
        save_request::Batch::Observe(observe) => save_observe(&mut builder, observe)?,
        save_request::Batch::SubAgent(start) => builder.start_sub_agent(start),
        save_request::Batch::Approval(approval) => save_approval(&mut builder, approval)?,
        save_request::Batch::End(end) => save_end(&mut builder, end)?,
    }
    Ok(builder.finish())
}

/// True when the execution is a sub-agent's and not the turn's own.
fn is_sub_agent(request: &SaveRequest) -> bool {
    !ids::thread(
        &request.conversation_id,
        &request.message_id,
        &request.agent_execution_id,
    )
    .is_empty()
}

/// Texts the batch's events replace on every reader: (agent execution, step). A function of the request alone,
/// so that a repeated save, whose first caller may have died before telling the stream, seals them again.
pub fn sealed(request: &SaveRequest) -> Vec<(String, u32)> {
    match request.batch {
        Some(save_request::Batch::Thought(_) | save_request::Batch::End(_)) => {
            vec![(request.agent_execution_id.clone(), request.step)]
        }
        _ => Vec::new(),
    }
}

fn kind(request: &SaveRequest) -> Result<&save_request::Batch> {
    request
        .batch
        .as_ref()
        .ok_or_else(|| StoreError::Conflict("the save names no batch".into()))
}

/// thought + an act for each call, their records as pending (D2), and the assistant's row.
fn save_thought(builder: &mut Builder) -> Result<()> {
    let state = checkpoint_of(builder)?;
    if state.finish != finish::TOOL_CALLS {
        // The step is the turn's answer; its text belongs to the end, and a step has one row in `messages`.
        return Err(StoreError::Conflict(format!(
            "a call that ended as `{}` asked for no tools",
            state.finish
        )));
    }
    let (agent_execution_id, step) = builder.place();
    let thought = [state.reasoning.as_str(), state.text.as_str()]
        .into_iter()
        .filter(|text| !text.is_empty());
    let thought = thought.collect::<Vec<_>>().join("\n\n");
    let sequence = builder.event(
        event_type::THOUGHT,
        &Thought {
            thought,
            agent_execution_id: agent_execution_id.clone(),
            step,
        },
    );
    for (index, call) in state.tool_calls.iter().enumerate() {
        builder.event(
            event_type::ACT,
            &Act {
                execution_id: call.execution_id.clone(),
                tool_name: call.tool_name.clone(),
                tool_input: Some(call.tool_input.clone().unwrap_or_default()),
                call_id: call.call_id.clone(),
                status: tool_status::RUNNING.into(),
                agent_execution_id: agent_execution_id.clone(),
                step,
            },
        );
        builder.batch.pending_tools.push(ToolRow {
            step,
            call_index: u32::try_from(index).unwrap_or(u32::MAX),
            record: ToolRecord {
                call: call.clone(),
                status: tool_status::PENDING.into(),
                ..ToolRecord::default()
            },
            ..ToolRow::default()
        });
    }
    builder.ask_outside();
    builder.assistant_row(&state.text, state.tool_calls.clone(), sequence);
    builder.step_done();
    Ok(())
}

/// The answer to an approval. What was denied or has expired is observed at once: the model is told why.
fn save_approval(builder: &mut Builder, answer: &SaveApproval) -> Result<()> {
    let tool = builder
        .snapshot
        .tools
        .iter()
        .find(|tool| tool.record.call.execution_id == answer.execution_id);
    let tool = tool.ok_or_else(|| StoreError::not_found("tool execution", &answer.execution_id))?;
    if tool.record.approval != approval::PENDING {
        return Ok(());
    }
    match answer.decision.as_str() {
        approval::APPROVED => builder.approve(tool, answer),
        approval::DENIED | approval::EXPIRED => {
            builder.approval_resolved(tool, answer, false);
            let mut tool = tool.clone();
            tool.record.approval.clone_from(&answer.decision);
            let error = match (answer.decision.as_str(), answer.reason.as_str()) {
                (approval::EXPIRED, _) => {
                    "nobody approved this call in time; it was not run".to_owned()
                }
                (_, "") => "a person denied this call; it was not run".to_owned(),
                (_, reason) => {
                    format!("a person denied this call; it was not run. They said: {reason}")
                }
            };
            builder.observe(
                &tool,
                &Closing {
                    status: tool_status::FAILED,
                    error: &error,
                },
            )?;
        }
        other => {
            return Err(StoreError::Conflict(format!(
                "`{other}` is no answer to an approval"
            )));
        }
    }
    Ok(())
}

fn save_observe(builder: &mut Builder, observe: &SaveObserve) -> Result<()> {
    let tool = builder
        .snapshot
        .tools
        .iter()
        .find(|tool| tool.record.call.execution_id == observe.execution_id);
    let tool = tool.ok_or_else(|| {
        StoreError::Corrupt(format!(
            "tool execution `{}` has an act but no record",
            observe.execution_id
        ))
    })?;
    let failure = observe
        .failure
        .as_deref()
        .unwrap_or("the tool ended without a result");
    builder.close(
        tool,
        &Closing {
            status: tool_status::FAILED,
            error: failure,
        },
    )
}

/// The end of the turn. Whatever is still open is closed first: every act gets its observe (invariant 6).
fn save_end(builder: &mut Builder, end: &SaveEnd) -> Result<()> {
    let closing = Closing {
        status: tool_status::CANCELLED,
        error: "the turn ended before this tool did",
    };
    for tool in &builder.snapshot.tools {
        builder.close(tool, &closing)?;
    }
    let (agent_execution_id, step) = builder.place();
    let mut error_code = None;
    match end.status.as_str() {
        execution_status::COMPLETED => {
            answer(builder)?;
            let Totals {
                calls: steps,
                input_tokens,
                output_tokens,
            } = builder.snapshot.totals;
            builder.event(
                event_type::COMPLETE,
                &Complete {
                    agent_execution_id,
                    steps,
                    input_tokens,
                    output_tokens,
                },
            );
        }
        execution_status::CANCELLED => {
            unsaved_text(builder);
            builder.event(
                event_type::CANCELLED,
                &Cancelled {
                    agent_execution_id,
                    reason: end.message.clone().unwrap_or_default(),
                },
            );
        }
        execution_status::FAILED => {
            unsaved_text(builder);
            let code = end.code.clone().unwrap_or_default();
            let message = end.message.clone().unwrap_or_default();
            error_code = Some(code.clone());
            builder.event(
                event_type::ERROR,
                &Error {
                    code,
                    message,
                    agent_execution_id,
                    step,
                },
            );
        }
        other => {
            return Err(StoreError::Conflict(format!(
                "`{other}` is no way for a turn to end"
            )));
        }
    }
    builder.batch.end = Some(End {
        status: end.status.clone(),
        error_code,
    });
    builder.end_delegation(end);
    Ok(())
}

/// The model's answer, with the reasoning before it as a thought.
fn answer(builder: &mut Builder) -> Result<()> {
    let state = checkpoint_of(builder)?;
    if state.finish != finish::STOP {
        return Err(StoreError::Conflict(format!(
            "a turn cannot complete on a call that ended as `{}`",
            state.finish
        )));
    }
    if !state.reasoning.is_empty() {
        let (agent_execution_id, step) = builder.place();
        builder.event(
            event_type::THOUGHT,
            &Thought {
                thought: state.reasoning.clone(),
                agent_execution_id,
                step,
            },
        );
    }
    builder.assistant_message(&state.text, false);
    builder.step_done();
    Ok(())
}

/// Keeps the text of a step that was cut short: the text so far of a stopped call, or of a call that ended but
/// whose own batch was never saved (its tools then never ran).
fn unsaved_text(builder: &mut Builder) {
    let (agent_execution_id, step) = builder.place();
    let row_id = ids::assistant_message_id(&agent_execution_id, step);
    let snapshot = builder.snapshot;
    if snapshot.assistants.iter().any(|row| row.id == row_id) {
        return;
    }
    if snapshot.checkpoint.is_some() {
        builder.step_done();
    }
    if let Some(state) = snapshot.checkpoint.as_ref().or(snapshot.partial.as_ref())
        && !state.text.is_empty()
    {
        builder.assistant_message(&state.text, true);
    }
}

fn checkpoint_of<'a>(builder: &Builder<'a>) -> Result<&'a LlmCompleteState> {
    let (agent_execution_id, step) = builder.place();
    builder.snapshot.checkpoint.as_ref().ok_or_else(|| {
        let what = checkpoint::LLM_COMPLETE;
        StoreError::Corrupt(format!(
            "execution `{agent_execution_id}` has no {what} of step {step} to save"
        ))
    })
}
