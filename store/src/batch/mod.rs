//! Turns what is to be saved and what is stored into the rows of one transaction.
//!
//! A back end locks the conversation, loads a [`Snapshot`] (see [`Needs`]), calls [`build`] and writes the [`Batch`].
//! Everything that decides what a batch contains is here, so that two back ends cannot disagree.
//!
//! - `request.rs`: what is to be saved ([`BatchRequest`])
//! - `snapshot.rs`: what is read ([`Needs`], [`Snapshot`])
//! - `rows.rs`: what is written ([`Batch`])
//! - `keys.rs`: the keys of batches, which name roles (invariant 3, idempotent saves), and ids made from them
//! - `builder.rs`: what all kinds of batch share: they number events and write messages
//! - `thought.rs`, `observe.rs`, `end.rs`: what the model asked for, how its tools ended, how the agent execution ended
//! - `compaction.rs`: the summary that stands for older messages
//! - `emitted.rs`: events that tools emit themselves, and the work plans they change
//! - `outside.rs`: requests to a person or the client, and their answers
//! - `delegation.rs`: whether a sub-agent may start, what starts it, what its end gives the call
//!
//! No I/O, no clock and no randomness may be here.

mod builder;
mod compaction;
mod delegation;
mod emitted;
mod end;
mod keys;
mod observe;
mod outside;
mod request;
mod rows;
mod snapshot;
#[cfg(test)]
mod tests;
mod thought;

pub use delegation::{Delegator, Refusal, Task, task};
use emitted::changed_plan;
pub use keys::{checkpoint_id, event_id, key, user_message_key};
pub use request::{AgentExecutionEnd, BatchRequest, Save};
pub use rows::{
    Batch, ContextCut, DelegateCallEnd, NewEvent, ObservedStep, ObservedTool, TakenMessage,
};
pub use snapshot::{
    AssistantRow, DelegateCall, Needs, Snapshot, StoredMessage, ToolRow, ToolsNeeded, Totals,
};

use everturn_proto::{
    SealedStep,
    words::{EventType, ToolKind, ToolStatus},
};

use builder::Builder;

use crate::api::Result;

/// Returns what a batch of this kind reads from the store.
pub fn needs(request: &BatchRequest) -> Needs {
    match &request.save {
        Save::UserMessage { message_id, .. } => Needs {
            message: Some(message_id.clone()),
            ..Needs::default()
        },
        Save::Thought | Save::CutReply | Save::Compaction => Needs {
            checkpoint: true,
            ..Needs::default()
        },
        Save::Observe { execution_id, .. } => Needs {
            tools: ToolsNeeded::One(execution_id.clone()),
            ..Needs::default()
        },
        Save::SubAgentStart(_) | Save::ModelFallback(_) => Needs::default(),
        Save::Approval(answer) => Needs {
            tools: ToolsNeeded::One(answer.execution_id.clone()),
            ..Needs::default()
        },
        Save::End(end) => Needs {
            checkpoint: true,
            partial: end.keeps_partial_text(),
            totals: true,
            tools: ToolsNeeded::Open,
            delegate_call: request.thread().sub_agent().map(str::to_owned),
            ..Needs::default()
        },
    }
}

/// Builds the rows of the batch that `request` names. The caller has checked, under the conversation's lock, that the
/// batch's key is not stored and that the agent execution is running.
///
/// A batch without events means that its work is done already: nothing is to be written.
pub fn build(request: &BatchRequest, snapshot: &Snapshot) -> Result<Batch> {
    let mut builder = Builder::new(request, snapshot);
    match &request.save {
        Save::UserMessage {
            message_id,
            content,
        } => builder.user_message(message_id, content.as_deref())?,
        Save::Thought => builder.thought()?,
        Save::CutReply => builder.cut_reply()?,
        Save::Compaction => builder.compaction()?,
        Save::ModelFallback(fallback) => {
            builder.event(EventType::ModelFallback, fallback);
        }
        Save::Observe {
            execution_id,
            failure,
        } => builder.observe_one(execution_id, failure.as_deref())?,
        Save::SubAgentStart(start) => builder.start_sub_agent(start),
        Save::Approval(answer) => builder.approval(answer)?,
        Save::End(end) => builder.end(end)?,
    }
    Ok(builder.finish())
}

/// Returns the tool executions of the `delegate` calls that the batch closes and that have begun and not ended: their
/// sub-agents may still say that they run. A call whose record is missing may have begun.
pub fn begun_delegations(request: &BatchRequest, snapshot: &Snapshot) -> Vec<String> {
    let builder = Builder::new(request, snapshot);
    let lost = match &request.save {
        Save::Observe { execution_id, .. } if snapshot.tool(execution_id).is_none() => {
            builder.lost_record(execution_id).into_iter().collect()
        }
        Save::End(_) => builder.lost_records(),
        Save::Observe { .. }
        | Save::UserMessage { .. }
        | Save::Thought
        | Save::CutReply
        | Save::Compaction
        | Save::ModelFallback(_)
        | Save::Approval(_)
        | Save::SubAgentStart(_) => Vec::new(),
    };
    let records = snapshot.tools.iter().chain(&lost).map(|tool| &tool.record);
    records
        .filter(|record| {
            record.call.kind() == ToolKind::Delegate && record.status == ToolStatus::Running
        })
        .map(|record| record.call.execution_id.clone())
        .collect()
}

/// Returns the steps whose texts the batch's events replace on every reader. They depend on the request alone, so that
/// a repeated save, whose first caller may have died before it told the stream, seals them again.
pub fn sealed(request: &BatchRequest) -> Vec<SealedStep> {
    match &request.save {
        Save::Thought | Save::CutReply | Save::End(_) => vec![SealedStep {
            agent_execution_id: request.step.agent_execution_id.clone(),
            step: request.step.step,
        }],
        Save::UserMessage { .. }
        | Save::Observe { .. }
        | Save::Compaction
        | Save::ModelFallback(_)
        | Save::Approval(_)
        | Save::SubAgentStart(_) => Vec::new(),
    }
}
