//! The activities as the worker registers them. Every activity calls the function of a module.

// The macro generates undocumented markers beside each activity.
#![allow(missing_docs)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use everturn_models::ModelClient;
use everturn_proto::{
    activities::declared,
    turn::{
        AfterTurnInput, AfterTurnPlan, AnnounceCancelRequest, ClaimedRemoteTool, LoadTurnRequest,
        LoadedTurn, RecordRemoteToolRequest, RunToolRequest, RunToolResult, SaveRequest,
        SaveResult, ThinkRequest, ThinkResult,
    },
    words::AnswersFrom,
};
use everturn_store::{BlobFiles, DayBudget, TurnStore, WorkerId};
use everturn_stream::{CancelNews, StreamWriter};
use everturn_tools::ToolRegistry;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};

use crate::{
    Cancels, KnownAgents, Stopping, ToolThreads, after_turn, cancels,
    files::KnownFiles,
    load, remote, run_tool, save,
    think::{self, Circuits, KnownContexts, Measures},
};

/// The dependencies of the activities, for the life of a worker. Clones share the dependencies.
#[derive(Clone)]
pub struct AgentActivities {
    /// The store of turns.
    pub turns: Arc<dyn TurnStore>,
    /// The stream for texts while models write them.
    pub stream: Arc<dyn StreamWriter>,
    /// The channel for announcements of cancels.
    pub cancel_news: Arc<dyn CancelNews>,
    /// The running attempts, which learn of announced cancels.
    pub cancels: Cancels,
    /// The client of the models.
    pub model: Arc<dyn ModelClient>,
    /// The recently read contexts.
    pub known_contexts: Arc<KnownContexts>,
    /// Images and files.
    pub blobs: BlobFiles,
    /// The files in recent requests to models.
    pub known_files: Arc<KnownFiles>,
    /// The bytes per token of agent executions.
    pub measures: Arc<Measures>,
    /// The circuits of failed models, which get no calls for a while.
    pub circuits: Circuits,
    /// The tools for agents.
    pub tools: Arc<ToolRegistry>,
    /// The threads for tools.
    pub tool_threads: ToolThreads,
    /// The agents in the worker's configuration.
    pub agents: Arc<KnownAgents>,
    /// The daily budgets of tenants for models.
    pub tenant_budgets: TenantBudgets,
    /// The way by which answers to approvals must come.
    pub approval_answers: AnswersFrom,
    /// The time for which an attempt is left to other workers when this worker lacks an agent, a tool or a provider.
    pub wait_for_peer: Duration,
    /// The worker's name in claims of steps and tools.
    pub worker: WorkerId,
    /// The task queues for turns that start on this worker.
    pub queues: TurnQueues,
    /// The worker's shutdown, and the time limit of running attempts.
    pub stopping: Stopping,
}

/// The task queues for the activities of a turn. Without a queue, the activities run on the workflow's queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnQueues {
    /// The queue of LLM calls.
    pub models: Option<String>,
    /// The queue of tools.
    pub tools: Option<String>,
}

/// The budgets of tenants for models, per day (UTC).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantBudgets {
    /// The budget of a tenant without its own budget.
    pub each: DayBudget,
    /// The budgets of single tenants.
    pub own: BTreeMap<String, DayBudget>,
}

impl TenantBudgets {
    /// Returns the budget of a tenant.
    pub fn of(&self, tenant_id: &str) -> DayBudget {
        self.own.get(tenant_id).copied().unwrap_or(self.each)
    }
}

#[activities]
impl AgentActivities {
    #[activity(definition = declared::LoadTurn)]
    pub async fn load_turn(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: LoadTurnRequest,
    ) -> Result<LoadedTurn, ActivityError> {
        load::load_turn(&self, &ctx, request).await
    }

    #[activity(definition = declared::LlmThinking)]
    pub async fn llm_thinking(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: ThinkRequest,
    ) -> Result<ThinkResult, ActivityError> {
        think::think(&self, &ctx, request).await
    }

    #[activity(definition = declared::ToolExecution)]
    pub async fn tool_execution(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: RunToolRequest,
    ) -> Result<RunToolResult, ActivityError> {
        run_tool::run_tool(&self, &ctx, request).await
    }

    #[activity(definition = declared::ClaimRemoteTool)]
    pub async fn claim_remote_tool(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: RunToolRequest,
    ) -> Result<ClaimedRemoteTool, ActivityError> {
        remote::claim(&self, &ctx, request).await
    }

    #[activity(definition = declared::RecordRemoteTool)]
    pub async fn record_remote_tool(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: RecordRemoteToolRequest,
    ) -> Result<RunToolResult, ActivityError> {
        remote::record(&self, &ctx, request).await
    }

    #[activity(definition = declared::BeginAfterTurn)]
    pub async fn begin_after_turn(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: AfterTurnInput,
    ) -> Result<AfterTurnPlan, ActivityError> {
        after_turn::begin(&self, &ctx, input).await
    }

    #[activity(definition = declared::SaveEvent)]
    pub async fn save_event(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: SaveRequest,
    ) -> Result<SaveResult, ActivityError> {
        save::save(&self, &ctx, request).await
    }

    // The SDK runs an activity that is not async on a separate thread.
    #[allow(clippy::unused_async)]
    #[activity(definition = declared::AnnounceCancel)]
    pub async fn announce_cancel(
        self: Arc<Self>,
        _ctx: ActivityContext,
        request: AnnounceCancelRequest,
    ) -> Result<(), ActivityError> {
        cancels::announce(&self, request);
        Ok(())
    }
}
