//! The agents that a caller may talk to.

use axum::{Json, extract::State};
use everturn_proto::{
    money,
    turn::{AgentDefinition, AgentTool},
    words::ToolKind,
};
use everturn_store::LeftOutTool;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    config::{OfferedAgent, Scope},
    http::{extract::Caller, openapi::problems, state::GatewayState},
};

/// The agents of the caller's tenant.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentList)]
pub(super) struct AgentListBody {
    /// The agents, ordered by name.
    agents: Vec<AgentBody>,
    /// The agent of a conversation that is created without an agent's name; null if the configuration has no such agent
    /// for the tenant.
    #[schema(required = true, example = "default")]
    default_agent: Option<String>,
}

/// An agent.
#[derive(Serialize, ToSchema)]
#[schema(as = Agent)]
pub(super) struct AgentBody {
    #[schema(example = "support")]
    name: String,
    /// The purpose of the agent; empty if the configuration has no description.
    #[schema(example = "Answers questions about orders")]
    description: String,
    /// `provider/model`; null when only workers know the model.
    #[schema(required = true, example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// The models that a message may choose, the agent's own model first; empty when only workers know the models.
    #[schema(example = json!(["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5"]))]
    models: Vec<String>,
    /// The tools, in the order of the configuration.
    tools: Vec<AgentToolBody>,
    /// The tools that a model of the agent does not get, because its provider would refuse every request with the tool.
    /// Workers note such a tool when they first make a request; the list is empty before.
    left_out_tools: Vec<LeftOutToolBody>,
    /// Messages with which a person may begin.
    #[schema(example = json!(["Where is my order 1007?"]))]
    samples: Vec<String>,
    /// The team or person that owns the agent. Only for callers with the scope `admin:all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Billing")]
    owner: Option<String>,
    /// The address of the owner. Only for callers with the scope `admin:all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "#billing-oncall")]
    contact: Option<String>,
    limits: AgentLimitsBody,
}

/// A tool of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTool)]
struct AgentToolBody {
    /// The tool's name; `server__*` stands for every tool of an MCP server.
    #[schema(example = "refund")]
    name: String,
    /// The party that runs the tool: `worker`, `client`, `remote` or `delegate`.
    #[schema(example = "worker")]
    kind: String,
    /// True if a person must approve calls of the tool: every call, or the calls that the configuration names.
    needs_approval: bool,
}

/// A tool that a model does not get.
#[derive(Serialize, ToSchema)]
#[schema(as = LeftOutTool)]
struct LeftOutToolBody {
    /// The tool's name, as models see it.
    #[schema(example = "crm__search")]
    tool: String,
    /// `provider/model`.
    #[schema(example = "openai/gpt-5-mini")]
    model: String,
    /// The reason, for the author of the tool.
    #[schema(
        example = "the schema of its input allows no JSON object, and the arguments of a call are an object"
    )]
    reason: String,
}

/// Limits of an agent's turns. Null means: no limit.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentLimits)]
struct AgentLimitsBody {
    /// The most LLM calls of an agent execution.
    #[schema(required = true)]
    max_steps: Option<u32>,
    /// The time limit of a turn, in milliseconds.
    #[schema(required = true)]
    turn_timeout_ms: Option<u32>,
    /// The most tokens of a turn, read and written.
    #[schema(required = true)]
    turn_tokens: Option<u64>,
    /// The most money of a turn, in USD.
    #[schema(required = true, example = "0.5")]
    turn_usd: Option<String>,
}

impl AgentBody {
    /// Returns the agent's body, with the owner for an admin of all tenants.
    fn of(agent: &OfferedAgent, left_out: &[LeftOutTool], is_admin_of_all: bool) -> Self {
        let definition = &agent.definition;
        let left_out = left_out.iter().filter(|tool| tool.agent == definition.name);
        let responsible = Some(&agent.responsible).filter(|_| is_admin_of_all);
        let responsible = responsible.cloned().unwrap_or_default();
        Self {
            name: definition.name.clone(),
            description: definition.description.clone(),
            model: definition.own_model(),
            models: definition.allowed_models(),
            tools: definition.tools.iter().map(AgentToolBody::from).collect(),
            left_out_tools: left_out.map(LeftOutToolBody::from).collect(),
            samples: agent.samples.clone(),
            owner: responsible.owner,
            contact: responsible.contact,
            limits: definition.into(),
        }
    }
}

impl From<&LeftOutTool> for LeftOutToolBody {
    fn from(tool: &LeftOutTool) -> Self {
        Self {
            tool: tool.tool.clone(),
            model: tool.model.clone(),
            reason: tool.reason.clone(),
        }
    }
}

impl From<&AgentTool> for AgentToolBody {
    fn from(tool: &AgentTool) -> Self {
        Self {
            name: tool.name.clone(),
            kind: match tool.kind() {
                ToolKind::Worker => "worker".to_owned(),
                kind => kind.to_string(),
            },
            needs_approval: tool.approval.is_some(),
        }
    }
}

impl From<&AgentDefinition> for AgentLimitsBody {
    fn from(agent: &AgentDefinition) -> Self {
        let budget = agent.budget.as_ref();
        let of_turn = [
            agent.turn_timeout_ms,
            budget.and_then(|budget| budget.time_ms),
        ];
        Self {
            max_steps: Some(agent.max_steps).filter(|steps| *steps > 0),
            turn_timeout_ms: of_turn.into_iter().flatten().min(),
            turn_tokens: budget.and_then(|budget| budget.tokens),
            turn_usd: budget.and_then(|budget| budget.nano_usd).map(money::usd),
        }
    }
}

problems!(Refusals:);

/// Lists the agents that conversations of the caller's tenant may have.
///
/// The list is as long as the configuration, and has no pages. An agent for other tenants is not in the list.
#[utoipa::path(
    get, path = "/agents", tag = "conversations", operation_id = "list_agents",
    responses((status = 200, body = AgentListBody, description = "The agents"), Refusals)
)]
pub(super) async fn list(State(state): State<GatewayState>, caller: Caller) -> Json<AgentListBody> {
    let left_out = state.ports.left_out.left_out(&caller.access.tenant_id);
    // The agents are known without the database.
    let left_out = left_out.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the left-out tools of agents cannot be read");
        Vec::new()
    });
    let all = state.agents.now();
    let of_tenant = |agent: &&OfferedAgent| agent.definition.serves(&caller.access.tenant_id);
    let mut agents: Vec<_> = all.iter().filter(of_tenant).collect();
    agents.sort_by_key(|agent| &agent.definition.name);
    let default_agent = &state.config.default_agent;
    let has_default = agents
        .iter()
        .any(|agent| agent.definition.name == *default_agent);
    let is_admin_of_all = caller.scopes.has(Scope::AdminAll);
    let bodies = agents
        .into_iter()
        .map(|agent| AgentBody::of(agent, &left_out, is_admin_of_all));
    Json(AgentListBody {
        default_agent: has_default.then(|| default_agent.clone()),
        agents: bodies.collect(),
    })
}
