//! The activities as the worker registers them. Each calls the function of its module.

// The macro generates undocumented markers beside each activity.
#![allow(missing_docs)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

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
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};

use crate::{
    Cancels, KnownAgents, Stopping, ToolThreads, after_turn, cancels,
    files::KnownFiles,
    load,
    model::ModelClient,
    remote, run_tool, save,
    think::{self, Circuits, KnownContexts, Measures},
    tools::ToolRegistry,
};

/// Everything the activities work with. One for the life of a worker; its clones share it.
#[derive(Clone)]
pub struct AgentActivities {
    /// Where turns are kept.
    pub turns: Arc<dyn TurnStore>,
    /// Where texts go while they are written.
    pub stream: Arc<dyn StreamWriter>,
    /// Where cancels are announced.
    pub cancel_news: Arc<dyn CancelNews>,
    /// The attempts that are told of announced cancels.
    pub cancels: Cancels,
    /// The client of the models.
    pub model: Arc<dyn ModelClient>,
    /// The contexts that were read last.
    pub known_contexts: Arc<KnownContexts>,
    /// Images and files.
    pub blobs: BlobFiles,
    /// The files that models were sent last.
    pub known_files: Arc<KnownFiles>,
    /// How many bytes a token has.
    pub measures: Arc<Measures>,
    /// The models that are left alone, because they have failed.
    pub circuits: Circuits,
    /// The tools that agents can use.
    pub tools: Arc<ToolRegistry>,
    /// The threads that tools run on.
    pub tool_threads: ToolThreads,
    /// The agents this worker knows.
    pub agents: Arc<KnownAgents>,
    /// What tenants may take of models on a day.
    pub tenant_budgets: TenantBudgets,
    /// Which answers to approvals are taken.
    pub approval_answers: AnswersFrom,
    /// How long an attempt that needs what this worker does not know is left to other workers.
    pub wait_for_peer: Duration,
    /// This process, for its claims.
    pub worker: WorkerId,
    /// Where the activities of the turns run that this worker begins.
    pub queues: TurnQueues,
    /// Whether this worker stops, and until when its attempts may go on.
    pub stopping: Stopping,
}

/// The task queues on which the activities of a turn run. Without one they run on that of its workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnQueues {
    /// The queue of LLM calls.
    pub models: Option<String>,
    /// The queue of tools.
    pub tools: Option<String>,
}

/// What each tenant may take of models on a day (UTC).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantBudgets {
    /// The budget of a tenant that has none of its own.
    pub each: DayBudget,
    /// The budgets of single tenants.
    pub own: BTreeMap<String, DayBudget>,
}

impl TenantBudgets {
    /// The budget of a tenant.
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

    // The SDK runs an activity that is not async on a thread of its own.
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
