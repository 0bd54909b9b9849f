//! Records of an agent execution: LLM calls, checkpoints and tool calls.

use everturn_proto::{
    ids::AFTER_TURN_STEP,
    money,
    words::{ApprovalState, CheckpointType, Effect, ToolStatus},
};
use everturn_store::{Checkpoint, StepUsage, ToolExecution};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use super::{usage::UsageBody, wire::time};
use crate::schema::{Id, one_of};

/// Usage and cost of one step's LLM call.
#[derive(Serialize, ToSchema)]
#[schema(as = StepUsage)]
pub(super) struct StepUsageBody {
    /// The number of the step, from 0.
    step: u32,
    /// Number of the attempt that answered, counted from 1 over the agent execution's LLM calls. Missing numbers are failed
    /// or interrupted attempts.
    generation: u32,
    /// The model that answered.
    model: String,
    usage: UsageBody,
    /// Cost of the call, in USD; null when the model has no price.
    #[schema(required = true, example = "0.0012")]
    cost_usd: Option<String>,
    /// Time when the answer was stored.
    stored_at: String,
}

impl From<StepUsage> for StepUsageBody {
    fn from(step: StepUsage) -> Self {
        Self {
            step: step.step,
            generation: step.generation,
            model: step.model.unwrap_or_default(),
            usage: step.spent.usage.into(),
            cost_usd: step.spent.nano_usd.map(money::usd),
            stored_at: time(step.stored_at),
        }
    }
}

/// A stored point where the turn can continue.
#[derive(Serialize, ToSchema)]
#[schema(as = Checkpoint)]
pub(super) struct CheckpointBody {
    #[serde(rename = "type")]
    #[schema(schema_with = checkpoint_types)]
    checkpoint_type: String,
    /// The number of the step, from 0.
    step: u32,
    /// Tool execution that began or ended; null for a model's reply.
    #[schema(required = true, value_type = Option<Id>)]
    execution_id: Option<String>,
    /// Number of the attempt that stored the checkpoint: an LLM call's attempt or a tool's attempt. 0: hooks before the
    /// turn, which call no model.
    generation: u32,
    stored_at: String,
}

impl From<Checkpoint> for CheckpointBody {
    fn from(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint_type: checkpoint.checkpoint_type.into(),
            step: checkpoint.step,
            execution_id: checkpoint.execution_id,
            generation: checkpoint.generation,
            stored_at: time(checkpoint.stored_at),
        }
    }
}

fn checkpoint_types() -> Object {
    let types = [
        CheckpointType::LlmComplete,
        CheckpointType::ToolStart,
        CheckpointType::ToolComplete,
        CheckpointType::LlmPartial,
    ];
    one_of(&types.each_ref().map(CheckpointType::as_str))
}

/// A tool execution. The input and the result are in the events.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolExecution)]
pub(super) struct ToolExecutionBody {
    #[schema(value_type = Id)]
    execution_id: String,
    /// Id of the tool call, given by the model.
    call_id: String,
    tool_name: String,
    /// Step of the tool call, from 0; null for a hook after the turn.
    #[schema(required = true)]
    step: Option<u32>,
    #[schema(schema_with = tool_statuses)]
    status: String,
    /// Effect of the tool, which decides if an interrupted attempt may be repeated.
    #[schema(schema_with = effects)]
    effect: String,
    /// State of the approval; null when the tool needs no approval.
    #[schema(required = true, example = "approved")]
    approval: Option<String>,
    /// Number of attempts by workers; 0 for a tool that a client runs.
    attempts: u32,
    is_error: bool,
    timeout_ms: u32,
    /// Duration of the tool execution.
    duration_ms: u32,
    asked_at: String,
    /// Start of the first attempt.
    #[schema(required = true)]
    started_at: Option<String>,
    #[schema(required = true)]
    finished_at: Option<String>,
}

impl From<ToolExecution> for ToolExecutionBody {
    fn from(tool: ToolExecution) -> Self {
        let needs_approval = tool.approval != ApprovalState::NotNeeded;
        Self {
            execution_id: tool.execution_id,
            call_id: tool.call_id,
            tool_name: tool.tool_name,
            step: (tool.step != AFTER_TURN_STEP).then_some(tool.step),
            status: tool.status.into(),
            effect: tool.effect.into(),
            approval: needs_approval.then(|| tool.approval.into()),
            attempts: tool.attempts,
            is_error: tool.is_error,
            timeout_ms: tool.timeout_ms,
            duration_ms: tool.duration_ms,
            asked_at: time(tool.asked_at),
            started_at: tool.started_at.map(time),
            finished_at: tool.finished_at.map(time),
        }
    }
}

fn tool_statuses() -> Object {
    let statuses = [
        ToolStatus::Pending,
        ToolStatus::Running,
        ToolStatus::Completed,
        ToolStatus::Failed,
        ToolStatus::Cancelled,
        ToolStatus::OutcomeUnknown,
    ];
    one_of(&statuses.each_ref().map(ToolStatus::as_str))
}

fn effects() -> Object {
    let effects = [Effect::Read, Effect::Idempotent, Effect::Once];
    one_of(&effects.each_ref().map(Effect::as_str))
}
