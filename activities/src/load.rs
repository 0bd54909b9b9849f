//! `load_turn_activity`: takes the message into its turn, or begins the sub-agent of a tool call, and pins the agent.

use std::sync::Arc;

use everturn_proto::{
    turn::{AgentDefinition, Inbox, LoadTurnRequest, LoadedTurn, ReadInboxRequest},
    words::{DEFAULT_AGENT, DEFAULT_TENANT, FailureCode},
};
use everturn_store::{
    BeginTurn, BegunTurn, Missing, PinnedAgent, StoreError, ToolKey, TurnInputs, TurnStart, Turns,
};
use everturn_stream::{Announcement, StreamWriter};
use everturn_supervisor::failpoint;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::{
    elsewhere::Peers,
    failure::{self as fail, Tries},
    known_agents::KnownAgents,
    readers,
    settings::{TenantBudgets, TurnQueues},
    store_call::{counted, once},
};

/// Begins turns and sub-agents.
#[derive(Clone)]
pub(crate) struct Loader {
    pub(crate) turns: Arc<dyn Turns>,
    pub(crate) inputs: Arc<dyn TurnInputs>,
    pub(crate) stream: Arc<dyn StreamWriter>,
    pub(crate) agents: Arc<KnownAgents>,
    pub(crate) tenant_budgets: TenantBudgets,
    /// The task queues for turns that start on this worker.
    pub(crate) queues: TurnQueues,
    pub(crate) peers: Peers,
}

impl Loader {
    pub(crate) async fn load_turn(
        &self,
        ctx: &ActivityContext,
        request: LoadTurnRequest,
    ) -> Result<LoadedTurn, ActivityError> {
        if let Some(delegation) = request.delegation {
            let call = ToolKey {
                conversation_id: request.conversation_id,
                message_id: delegation.message_id,
                agent_execution_id: delegation.parent_execution_id,
                step: delegation.step,
                execution_id: delegation.execution_id,
                epoch: Some(request.epoch),
            };
            return self.load_sub_agent(ctx, call).await;
        }
        let name = self.agent_name(ctx, &request).await?;
        let known = self.agents.by_name().get(&name).cloned();
        let unknown_agent = self.unknown_agent(&name);
        let tenant_id = request.tenant_id.filter(|tenant| !tenant.is_empty());
        let tenant_id = tenant_id.unwrap_or_else(|| DEFAULT_TENANT.to_owned());
        let begin = BeginTurn {
            conversation_id: request.conversation_id,
            tenant_budget: self.tenant_budgets.of(&tenant_id),
            tenant_id,
            message_id: request.message_id,
            content: request.content,
            agent_execution_id: request.agent_execution_id,
            // A turn without a usable agent begins, too: the message was accepted, and readers must see the error.
            agent: known.unwrap_or_else(|| AgentDefinition::only_a_name(name)),
            on_unknown_agent: self.peers.on_unknown_agent(ctx),
            epoch: Some(request.epoch),
        };
        let log_begin = begin_line(&begin);
        failpoint::reach("load.turn.before").await;
        let begun = counted(self.turns.begin_turn(begin)).await;
        let begun = match begun.map_err(|error| self.failed(ctx, &error))? {
            TurnStart::Begun(begun) => {
                if begun.is_new {
                    log_begin();
                }
                *begun
            }
            TurnStart::AskAgain { epoch } => {
                return Ok(LoadedTurn {
                    ask_again: Some(epoch),
                    ..LoadedTurn::default()
                });
            }
        };
        // A turn may be pinned to an agent of an older configuration, unknown to this worker.
        let agent = begun.agent.as_ref();
        let agent = agent.map(|agent| &agent.definition);
        let error = agent.and_then(|agent| cannot_run(agent, unknown_agent));
        let (error_code, error_message) = error.unzip();
        let cancel_reason = begun.cancel_reason.clone();
        let loaded = self.loaded(begun, true).await;
        Ok(LoadedTurn {
            error_code: error_code.map(Into::into),
            error_message,
            cancel_reason,
            ..loaded
        })
    }

    /// `read_inbox_activity`: stores the messages and cancels of signals, and reads the waiting messages.
    pub(crate) async fn read_inbox(
        &self,
        ctx: &ActivityContext,
        request: &ReadInboxRequest,
    ) -> Result<Inbox, ActivityError> {
        failpoint::reach("inbox.before").await;
        once(ctx, self.turns.read_inbox(request)).await
    }

    /// Begins a sub-agent. Its agent and task are in the record of the delegating call. A forbidden delegation ends in the
    /// call's record.
    async fn load_sub_agent(
        &self,
        ctx: &ActivityContext,
        call: ToolKey,
    ) -> Result<LoadedTurn, ActivityError> {
        let (agents, on_unknown) = (self.agents.by_name(), self.peers.on_unknown_agent(ctx));
        let begun = counted(self.turns.begin_sub_agent(&call, agents, on_unknown)).await;
        let begun = begun.map_err(|error| self.failed(ctx, &error))?;
        failpoint::reach("load.sub_agent.after").await;
        Ok(self.loaded(begun, false).await)
    }

    /// Makes the failure of a begin. Other workers get an attempt with an unknown agent.
    fn failed(&self, ctx: &ActivityContext, error: &StoreError) -> ActivityError {
        let elsewhere = match error {
            StoreError::NotFound {
                what: Missing::Agent,
                id,
            } => self.peers.left_to_others(ctx, &format!("agent `{id}`")),
            _ => None,
        };
        elsewhere.unwrap_or_else(|| fail::from_store(error, Tries::of(ctx)))
    }

    /// Announces the saved events to readers, and makes the result for the workflow.
    async fn loaded(&self, begun: BegunTurn, is_turn: bool) -> LoadedTurn {
        let announcement = Announcement {
            last_sequence: begun.last_sequence,
            sealed: begun.sealed,
        };
        readers::announce(&*self.stream, &begun.log_id, announcement).await;
        let (status, epoch) = (begun.status.into(), begun.epoch);
        let Some(PinnedAgent { definition, hash }) = begun.agent else {
            return LoadedTurn {
                status,
                epoch,
                ..LoadedTurn::default()
            };
        };
        let age_ms = u32::try_from(begun.age.as_millis()).unwrap_or(u32::MAX);
        let limit = time_limit(&definition, is_turn);
        let (timeout_ms, is_time_of_budget) = limit.unzip();
        let hooks = definition.hooks.as_ref();
        LoadedTurn {
            status,
            epoch,
            agent: definition.name,
            agent_hash: hash,
            max_steps: definition.max_steps,
            max_parallel_tools: definition.max_parallel_tools,
            llm_total_timeout_ms: definition.llm_total_timeout_ms,
            model_queue: self.queues.models.clone(),
            tool_queue: self.queues.tools.clone(),
            has_before_turn: hooks.is_some_and(|hooks| !hooks.before_turn.is_empty()),
            has_after_turn: hooks.is_some_and(|hooks| !hooks.after_turn.is_empty()),
            is_time_of_budget: is_time_of_budget.unwrap_or_default(),
            time_left_ms: timeout_ms.map(|timeout_ms| timeout_ms.saturating_sub(age_ms).max(1)),
            ..LoadedTurn::default()
        }
    }

    /// Returns the requested agent, otherwise the conversation's agent, otherwise the default agent.
    async fn agent_name(
        &self,
        ctx: &ActivityContext,
        request: &LoadTurnRequest,
    ) -> Result<String, ActivityError> {
        if let Some(agent) = request.agent.as_ref().filter(|agent| !agent.is_empty()) {
            return Ok(agent.clone());
        }
        let stored = once(ctx, self.inputs.agent_of(&request.conversation_id)).await?;
        Ok(stored.unwrap_or_else(|| DEFAULT_AGENT.to_owned()))
    }

    /// Returns the message about an unknown agent. The message omits agents with a list of tenants, because the names are
    /// secret for other tenants.
    fn unknown_agent(&self, name: &str) -> String {
        let agents = self.agents.by_name().values();
        let known: Vec<_> = agents
            .filter(|agent| agent.tenants.is_empty())
            .map(|agent| agent.name.as_str())
            .collect();
        format!(
            "The worker's configuration has no agent `{name}`; the agents are: {}.",
            known.join(", ")
        )
    }
}

/// Returns the error of a turn whose agent, or whose chosen model, this worker does not know; `None` for a turn that can
/// run.
fn cannot_run(agent: &AgentDefinition, unknown_agent: String) -> Option<(FailureCode, String)> {
    let Some(model) = &agent.unknown_model else {
        let is_unknown = agent.is_only_a_name();
        return is_unknown.then_some((FailureCode::UnknownAgent, unknown_agent));
    };
    let message = format!(
        "The agent `{}` no longer has the model `{model}`. Send the message again with another model.",
        agent.name
    );
    Some((FailureCode::UnknownModel, message))
}

/// Returns a function that logs the start of a turn. The log line of the turn's end has equal ids, and the cost.
fn begin_line(begin: &BeginTurn) -> impl FnOnce() + Send + use<> {
    let tenant_id = begin.tenant_id.clone();
    let conversation_id = begin.conversation_id.clone();
    let message_id = begin.message_id.clone();
    let agent_execution_id = begin.agent_execution_id.clone();
    let agent = begin.agent.name.clone();
    move || {
        tracing::info!(
            tenant_id,
            conversation_id,
            message_id,
            agent_execution_id,
            agent,
            "a turn has begun"
        );
    }
}

/// Returns the time limit of an agent execution, and whether the limit comes from its turn's budget. A sub-agent has no
/// budget time, because the end of its turn's time cancels the sub-agent.
fn time_limit(agent: &AgentDefinition, is_turn: bool) -> Option<(u32, bool)> {
    let of_budget = agent.budget.and_then(|budget| budget.time_ms);
    let of_budget = of_budget.filter(|_| is_turn).map(|time_ms| (time_ms, true));
    let own = agent.turn_timeout_ms.map(|time_ms| (time_ms, false));
    own.into_iter().chain(of_budget).min()
}
