//! What is recorded of an agent execution: its LLM calls, checkpoints and tool calls.

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

/// What the LLM call of one step took.
#[derive(Serialize, ToSchema)]
#[schema(as = StepUsage)]
pub(super) struct StepUsageBody {
    /// The number of the step, from 0.
    step: u32,
    /// Which try of the agent execution's LLM calls answered, from 1. Numbers that are left out failed or were cut.
    generation: u32,
    /// The model that answered.
    model: String,
    usage: UsageBody,
    /// What the call cost, in USD; null when the model has no price.
    #[schema(required = true, example = "0.0012")]
    cost_usd: Option<String>,
    /// When the answer was stored.
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

/// A stored point from which the turn can go on.
#[derive(Serialize, ToSchema)]
#[schema(as = Checkpoint)]
pub(super) struct CheckpointBody {
    #[serde(rename = "type")]
    #[schema(schema_with = checkpoint_types)]
    checkpoint_type: String,
    /// The number of the step, from 0.
    step: u32,
    /// The tool that began; null for a reply of a model.
    #[schema(required = true, value_type = Option<Id>)]
    execution_id: Option<String>,
    /// Which try stored it: of the agent execution's LLM calls, or of the tool. 0: the hooks before the turn, for which
    /// no model is called.
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
        CheckpointType::LlmPartial,
    ];
    one_of(&types.each_ref().map(CheckpointType::as_str))
}

/// A tool call being carried out. Its input and its result are in the events.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolExecution)]
pub(super) struct ToolExecutionBody {
    #[schema(value_type = Id)]
    execution_id: String,
    /// The model's.
    call_id: String,
    tool_name: String,
    /// The step that asked for it, from 0; null for a hook after the turn.
    #[schema(required = true)]
    step: Option<u32>,
    #[schema(schema_with = tool_statuses)]
    status: String,
    /// What may be done again when it was cut off.
    #[schema(schema_with = effects)]
    effect: String,
    /// How its approval stands; null when it needs none.
    #[schema(required = true, example = "approved")]
    approval: Option<String>,
    /// How often a worker has begun it; 0 of a tool that a client runs.
    attempts: u32,
    is_error: bool,
    timeout_ms: u32,
    /// How long it ran.
    duration_ms: u32,
    asked_at: String,
    /// When it was begun for the first time.
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
