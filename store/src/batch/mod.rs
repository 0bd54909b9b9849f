//! Turns a save request and stored rows into the rows of one transaction.
//!
//! A back end locks the conversation, loads a [`Snapshot`] (see [`Needs`]), calls [`build`] and writes the [`Batch`].
//! The code here alone decides the content of a batch, so that two back ends cannot disagree.
//!
//! - `request.rs`: the request to save ([`BatchRequest`])
//! - `snapshot.rs`: the rows to read ([`Needs`], [`Snapshot`])
//! - `rows.rs`: the rows to write ([`Batch`])
//! - `keys.rs`: the keys of batches, which name roles (invariant 3, idempotent saves), and ids made from the keys
//! - `builder.rs`: code shared by every kind of batch: numbering events and writing messages
//! - `thought.rs`, `observe.rs`, `end.rs`: the model's tool calls, the ends of tools, the end of the agent execution
//! - `compaction.rs`: the summary in place of older messages
//! - `emitted.rs`: events from tools themselves, and the work plans that the events change
//! - `outside.rs`: requests to a person or the client, and the answers
//! - `question.rs`: questions of running tools to a person, and the answers
//! - `outcome.rs`: the outcome of a tool call, as a person says
//! - `delegation.rs`: whether a sub-agent may start, its first batch, and the result for the `delegate` call
//!
//! No I/O, no clock and no randomness may be here.

mod builder;
mod compaction;
mod delegation;
mod emitted;
mod end;
mod keys;
mod observe;
mod outcome;
mod outside;
mod question;
mod request;
mod rows;
mod snapshot;
#[cfg(test)]
mod tests;
mod thought;

pub use delegation::{Delegator, Refusal, Task, task};
use emitted::changed_plan;
pub use keys::{checkpoint_id, completion_id, end_key, event_id, key, user_message_key};
pub use outcome::shown_result;
pub use request::{AgentExecutionEnd, BatchRequest, Save};
pub use rows::{
    Batch, ContextCut, DelegateCallEnd, NewEvent, ObservedStep, ObservedTool, SavedAnswer,
    TakenMessage,
};
pub use snapshot::{
    AssistantRow, DelegateCall, Needs, Snapshot, StoredMessage, ToolRow, ToolsNeeded, Totals,
};

use everturn_proto::{
    SealedStep,
    turn::ToolCall,
    words::{EventType, ToolKind, ToolStatus},
};

use builder::Builder;

use crate::api::Result;

/// True when the batch may begin a wait for a person or a client. The end of the wait, in an event and in the call's
/// record, is one time by one clock ([`Snapshot::clock`]).
pub fn asks_outside(request: &BatchRequest, snapshot: &Snapshot) -> bool {
    let is_clients = |call: &ToolCall| call.kind() == ToolKind::Client;
    let asks = |call: &ToolCall| call.approval_timeout_s.is_some() || is_clients(call);
    match &request.save {
        Save::Thought => {
            let mut replies = snapshot.checkpoint.iter();
            replies.any(|reply| reply.tool_calls.iter().any(asks))
        }
        Save::Approval(_) => {
            let mut tools = snapshot.tools.iter();
            tools.any(|tool| is_clients(&tool.record.call))
        }
        Save::Question(_) => true,
        Save::UserMessage { .. }
        | Save::CutReply
        | Save::Compaction
        | Save::Observe { .. }
        | Save::SubAgentStart(_)
        | Save::ModelFallback(_)
        | Save::Outcome(_)
        | Save::End(_) => false,
    }
}

/// Returns the rows that a batch of the request's kind reads from the store.
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
        Save::Outcome(settled) => Needs {
            tools: ToolsNeeded::One(settled.execution_id.clone()),
            ..Needs::default()
        },
        Save::Question(asked) => Needs {
            tools: ToolsNeeded::One(asked.execution_id.clone()),
            ..Needs::default()
        },
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

/// Builds the rows of the batch for `request`. Under the conversation's lock, the caller has checked that the batch is
/// not stored and that the agent execution is running.
///
/// A batch without events means that the work was done before: the caller writes no row.
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
        Save::Question(asked) => builder.ask(asked)?,
        Save::Approval(answer) => builder.approval(answer)?,
        Save::Outcome(settled) => builder.settle(settled)?,
        Save::End(end) => builder.end(end)?,
    }
    Ok(builder.finish())
}

/// Returns the tool executions of the `delegate` calls that the batch closes, if the calls have begun and not ended.
/// Their sub-agents may still have the status running. A call without a record may have begun.
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
        | Save::Outcome(_)
        | Save::Question(_)
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

/// Returns the steps whose texts every reader replaces with the batch's events. The steps depend on the request alone.
/// A repeated save seals the steps again, because the first caller may have died before informing the stream.
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
        | Save::Outcome(_)
        | Save::Question(_)
        | Save::Approval(_)
        | Save::SubAgentStart(_) => Vec::new(),
    }
}
