//! The tree of agent executions: turns and their sub-agents. A sub-agent has the tool call that started the sub-agent.

use axum::{Json, extract::State};
use everturn_proto::{ids, money};
use everturn_store::{AgentExecution, AgentExecutionCursor, PageLimit, ParentCall};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema, openapi::schema::Object};

use super::execution_records::{CheckpointBody, StepUsageBody, ToolExecutionBody};
use super::usage::UsageBody;
use super::wire::{bytes_of, checked_limit, cut, page_cursor, parse_page_cursor, time};
use crate::{
    config::TemporalUi,
    http::{
        extract::{Caller, ConversationId, ExecutionPath, Params, checked_id},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::{Id, one_of},
};

/// Agent executions of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 200;
/// Maximum number of LLM calls, of checkpoints and of tool calls in the details of one agent execution.
const MAX_RECORDS: u32 = 1000;

/// An agent execution: an agent's work on a turn, or on a task from a parent agent.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentExecution)]
pub(super) struct AgentExecutionBody {
    #[schema(value_type = Id)]
    id: String,
    /// Message of the agent execution's turn.
    #[schema(value_type = Id)]
    message_id: String,
    agent: String,
    #[schema(schema_with = statuses)]
    status: String,
    /// 0 for a turn's own agent.
    depth: u32,
    #[schema(required = true)]
    parent_execution_id: Option<String>,
    #[schema(value_type = Id)]
    root_execution_id: String,
    /// Number of LLM calls so far.
    steps: u32,
    #[schema(required = true)]
    error_code: Option<String>,
    /// Equal to `input_tokens` in `usage`, for clients of the first version.
    input_tokens: u32,
    /// Equal to `output_tokens` in `usage`, for clients of the first version.
    output_tokens: u32,
    /// Usage of the agent execution's own LLM calls, without the calls of its sub-agents.
    usage: UsageBody,
    /// Cost of the LLM calls, in USD; null when the model has no price.
    #[schema(required = true, example = "0.0421")]
    cost_usd: Option<String>,
    /// LLM calls without a stored answer that the provider probably billed; not included in `usage`.
    cut_calls: u32,
    /// Maximum tokens used by the cut calls.
    cut_tokens: u32,
    /// Maximum cost of the cut calls, in USD; not included in `cost_usd`.
    #[schema(example = "0.04")]
    cut_cost_usd: String,
    started_at: String,
    #[schema(required = true)]
    finished_at: Option<String>,
    /// Tool call that started the sub-agent; null for a turn.
    #[serde(rename = "parentActToolCall")]
    #[schema(required = true)]
    parent_call: Option<ParentCallBody>,
    /// Workflow of the agent execution. A conversation's turns share one workflow id.
    workflow_id: String,
    /// URL of the workflow's page in the Temporal UI; null when the configuration has no Temporal UI.
    #[schema(required = true)]
    workflow_url: Option<String>,
}

/// An agent execution with its LLM calls, checkpoints and tool calls.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentExecutionDetail)]
pub(super) struct AgentExecutionDetailBody {
    #[serde(flatten)]
    execution: AgentExecutionBody,
    /// Newest 1000 LLM calls with a stored answer, in the order of their steps.
    step_usage: Vec<StepUsageBody>,
    /// The newest 1000 checkpoints, in the order of their steps.
    checkpoints: Vec<CheckpointBody>,
    /// Newest 1000 tool calls, in the order of the model's requests.
    tool_executions: Vec<ToolExecutionBody>,
}

/// The tool call that started a sub-agent.
#[derive(Serialize, ToSchema)]
#[schema(as = ParentCall)]
struct ParentCallBody {
    #[schema(value_type = Id)]
    execution_id: String,
    call_id: String,
    /// Name of the tool.
    name: String,
    /// Input of the tool call, as the model wrote it.
    #[schema(value_type = serde_json::Value)]
    parameters: everturn_proto::Json,
    /// Equal to `name`, for clients of the first version.
    tool_name: String,
    /// Equal to `parameters`, for clients of the first version.
    #[schema(value_type = serde_json::Value)]
    tool_input: everturn_proto::Json,
}

fn statuses() -> Object {
    one_of(&["running", "completed", "cancelled", "failed"])
}

impl AgentExecutionBody {
    fn new(conversation_id: &str, execution: AgentExecution, ui: Option<&TemporalUi>) -> Self {
        let workflow_id = execution.parent_call.as_ref().map_or_else(
            || ids::workflow_id(conversation_id),
            |call| ids::sub_agent_workflow_id(conversation_id, &call.execution_id),
        );
        let call = |call: ParentCall| ParentCallBody {
            execution_id: call.execution_id,
            call_id: call.call_id,
            name: call.tool_name.clone(),
            parameters: call.tool_input.clone(),
            tool_name: call.tool_name,
            tool_input: call.tool_input,
        };
        Self {
            id: execution.id,
            message_id: execution.message_id,
            agent: execution.agent,
            status: execution.status.into(),
            depth: execution.depth,
            parent_execution_id: execution.parent_execution_id,
            root_execution_id: execution.root_execution_id,
            steps: execution.steps,
            error_code: execution.error_code,
            input_tokens: execution.spent.usage.input_tokens,
            output_tokens: execution.spent.usage.output_tokens,
            usage: execution.spent.usage.into(),
            cost_usd: execution.spent.nano_usd.map(money::usd),
            cut_calls: execution.spent.cut.calls,
            cut_tokens: execution.spent.cut.tokens,
            cut_cost_usd: money::usd(execution.spent.cut.nano_usd),
            started_at: time(execution.started_at),
            finished_at: execution.finished_at.map(time),
            parent_call: execution.parent_call.map(call),
            workflow_url: ui.map(|ui| ui.page_of(&workflow_id)),
            workflow_id,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Maximum number of agent executions of the page.
    #[param(minimum = 1, maximum = 200, default = 100)]
    limit: Option<u32>,
    /// `next_after` of the page before. Treat the value as opaque, because its format may change.
    #[param(example = "2026-11-21T12:21:46.160000000Z~run_6884324520321083")]
    after: Option<String>,
    /// Only agent executions of the turn of the given message. Events of the turn carry the message's id.
    #[param(value_type = Option<Id>, example = "msg_01a1fe08c7b6750e8e4df871584c7f43")]
    message_id: Option<String>,
}

/// A page of agent executions.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentExecutions)]
pub(super) struct AgentExecutionPageBody {
    /// Agent executions, ordered by their start.
    executions: Vec<AgentExecutionBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

problems!(ListRefusals: InvalidId, InvalidParameter, ConversationNotFound);

/// Lists the conversation's agent executions, turns and sub-agents, ordered by their start.
#[utoipa::path(
    get, path = "/conversations/{id}/executions", tag = "executions", operation_id = "list_executions",
    params(ConversationId, ListQuery), responses((status = 200, body = AgentExecutionPageBody, description = "A page"), ListRefusals)
)]
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    Params(query): Params<ListQuery>,
) -> Result<Json<AgentExecutionPageBody>, Problem> {
    let limit = checked_limit(query.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let after = query.after.as_deref().map(parse_after).transpose()?;
    let turn = query.message_id.map(|id| checked_id("message id", id));
    let turn = turn.transpose()?;
    let id = state.conversation(&caller, &name).await?.id;
    let _room = state
        .room(&caller, bytes_of(PageLimit::rows(limit)))
        .await?;
    // An extra row beyond `limit` shows that a next page exists.
    let mut page = state
        .ports
        .executions
        .agent_executions(&caller.access, &id, turn.as_deref(), after, limit + 1)
        .await?;
    let ui = state.config.temporal_ui.as_ref();
    let body = |row| AgentExecutionBody::new(&id, row, ui);
    let next_after = cut(&mut page, limit).map(|row| page_cursor(row.started_at, &row.id));
    Ok(Json(AgentExecutionPageBody {
        executions: page.into_iter().map(body).collect(),
        next_after,
    }))
}

fn parse_after(token: &str) -> Result<AgentExecutionCursor, Problem> {
    let detail = "`after` must be the `next_after` of the previous page.";
    let (started_at, id) = parse_page_cursor(token, detail)?;
    Ok(AgentExecutionCursor { started_at, id })
}

problems!(Refusals: InvalidId, ConversationNotFound, AgentExecutionNotFound);

/// Shows an agent execution with the usage of LLM calls, checkpoints and tool calls.
#[utoipa::path(
    get, path = "/conversations/{id}/executions/{execution_id}", tag = "executions", operation_id = "show_execution",
    params(ExecutionPath),
    responses((status = 200, body = AgentExecutionDetailBody, description = "The agent execution"), Refusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ExecutionPath {
        conversation,
        execution_id,
    }: ExecutionPath,
) -> Result<Json<AgentExecutionDetailBody>, Problem> {
    let conversation_id = state.conversation(&caller, &conversation).await?.id;
    let executions = &state.ports.executions;
    let found = executions
        .agent_execution(&caller.access, &conversation_id, &execution_id)
        .await?;
    let found = found.ok_or_else(|| {
        let detail = format!("The conversation has no agent execution `{execution_id}`.");
        Problem::new(Code::AgentExecutionNotFound, detail)
    })?;
    let (access, limit) = (&caller.access, MAX_RECORDS);
    let steps = executions.step_usage(access, &conversation_id, &execution_id, limit);
    let checkpoints = executions.checkpoints(access, &conversation_id, &execution_id, limit);
    let tools = executions.tool_executions(access, &conversation_id, &execution_id, limit);
    let (steps, checkpoints, tools) = futures::try_join!(steps, checkpoints, tools)?;
    let ui = state.config.temporal_ui.as_ref();
    Ok(Json(AgentExecutionDetailBody {
        execution: AgentExecutionBody::new(&conversation_id, found, ui),
        step_usage: steps.into_iter().map(StepUsageBody::from).collect(),
        checkpoints: checkpoints.into_iter().map(CheckpointBody::from).collect(),
        tool_executions: tools.into_iter().map(ToolExecutionBody::from).collect(),
    }))
}
