//! The activities as the worker registers them. Every activity has a part with only the dependencies that it needs.

// The macro generates undocumented markers beside each activity.
#![allow(missing_docs)]

use std::sync::{Arc, PoisonError, RwLock};

use everturn_models::ModelClient;
use everturn_proto::{
    activities::declared,
    turn::{
        AfterTurnInput, AfterTurnPlan, AnnounceCancelRequest, ClaimedRemoteTool, Inbox,
        LoadTurnRequest, LoadedTurn, ReadInboxRequest, RecordRemoteToolRequest, RunToolRequest,
        RunToolResult, SaveRequest, SaveResult, ThinkRequest, ThinkResult,
    },
};
use everturn_store::{
    BlobFiles, EventWriter, ModelCalls, StepClaims, ToolClaims, TurnInputs, Turns, WorkerId,
};
use everturn_stream::{CancelNews, StreamWriter};
use everturn_tools::ToolRegistry;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};

use crate::{
    after_turn::AfterTurn,
    attempt::Ends,
    cancels::{self, Cancels},
    elsewhere::Peers,
    known_agents::KnownAgents,
    left_out::LeftOutTools,
    load::Loader,
    remote::RemoteTools,
    run_tool::ToolRunner,
    save::Saver,
    settings::Settings,
    stopping::Stopping,
    think::{Known, Thinker},
    tool_threads::ToolThreads,
};

/// The activities of a worker. Clones share what the activities know.
#[derive(Clone)]
pub struct AgentActivities {
    /// The parts with the present agents and tools. An activity keeps the parts of its beginning, and never mixes agents
    /// and tools of two configurations.
    parts: Arc<RwLock<Arc<Parts>>>,
    saver: Saver,
    cancel_news: Arc<dyn CancelNews>,
}

#[derive(Clone)]
struct Parts {
    loader: Loader,
    thinker: Thinker,
    runner: ToolRunner,
    remote: RemoteTools,
    after_turn: AfterTurn,
}

/// The ports of the activities.
pub struct Ports {
    /// Begins turns.
    pub turns: Arc<dyn Turns>,
    /// Reads the inputs of turns.
    pub inputs: Arc<dyn TurnInputs>,
    /// The claims and replies of steps.
    pub steps: Arc<dyn StepClaims>,
    /// Model calls until their replies.
    pub model_calls: Arc<dyn ModelCalls>,
    /// The claims and ends of tool executions.
    pub tool_claims: Arc<dyn ToolClaims>,
    /// Writes the event log.
    pub writer: Arc<dyn EventWriter>,
    /// Images and files.
    pub blobs: BlobFiles,
    /// The stream for texts while models write them.
    pub stream: Arc<dyn StreamWriter>,
    /// The channel for announcements of cancels.
    pub cancel_news: Arc<dyn CancelNews>,
    /// The client of the models.
    pub model: Arc<dyn ModelClient>,
    /// The tools for agents.
    pub tools: Arc<ToolRegistry>,
}

/// The worker of the activities.
#[derive(Debug)]
pub struct ThisWorker {
    /// The worker's name in claims of steps and tools.
    pub id: WorkerId,
    /// The running attempts, which learn of announced cancels.
    pub cancels: Cancels,
    /// The worker's shutdown, and the time limit of running attempts.
    pub stopping: Stopping,
    /// The tools that providers would refuse.
    pub left_out: LeftOutTools,
}

impl ThisWorker {
    fn ends(&self) -> Ends {
        Ends {
            cancels: self.cancels.clone(),
            stopping: self.stopping.clone(),
        }
    }
}

impl AgentActivities {
    /// Makes the activities of a worker.
    pub fn new(ports: &Ports, settings: Settings, worker: ThisWorker) -> Self {
        let (inputs, stream, tools) = (&ports.inputs, &ports.stream, &ports.tools);
        let agents = Arc::new(settings.agents);
        let ends = worker.ends();
        let peers = Peers {
            wait: settings.wait_for_peer,
        };
        let saver = saver(ports);
        let parts = Parts {
            loader: Loader {
                turns: Arc::clone(&ports.turns),
                inputs: Arc::clone(inputs),
                stream: Arc::clone(stream),
                agents: Arc::clone(&agents),
                tenant_budgets: settings.tenant_budgets,
                queues: settings.queues,
                peers,
            },
            thinker: Thinker {
                inputs: Arc::clone(inputs),
                steps: Arc::clone(&ports.steps),
                model_calls: Arc::clone(&ports.model_calls),
                stream: Arc::clone(stream),
                blobs: ports.blobs.clone(),
                model: Arc::clone(&ports.model),
                tools: Arc::clone(tools),
                agents: Arc::clone(&agents),
                known: Known::new(settings.circuit),
                left_out: worker.left_out,
                provider_waits: settings.provider_waits,
                retries: settings.retries,
                approval_answers: settings.approval_answers,
                worker: worker.id.clone(),
                peers,
                ends: ends.clone(),
            },
            runner: ToolRunner {
                tool_claims: Arc::clone(&ports.tool_claims),
                tools: Arc::clone(tools),
                agents: Arc::clone(&agents),
                inputs: Arc::clone(inputs),
                threads: ToolThreads::new(settings.max_tools),
                probes: settings.probes,
                questions: settings.questions,
                blobs: ports.blobs.clone(),
                saver: saver.clone(),
                worker: worker.id,
                peers,
                ends: ends.clone(),
            },
            remote: RemoteTools {
                tool_claims: Arc::clone(&ports.tool_claims),
                tools: Arc::clone(tools),
                saver: saver.clone(),
                peers,
            },
            after_turn: AfterTurn {
                turns: Arc::clone(&ports.turns),
                inputs: Arc::clone(inputs),
                tools: Arc::clone(tools),
                agents,
                ends,
            },
        };
        Self {
            parts: Arc::new(RwLock::new(Arc::new(parts))),
            saver,
            cancel_news: Arc::clone(&ports.cancel_news),
        }
    }

    /// Replaces the agents and the tools for activities that begin from now on. A turn keeps its agent's definition,
    /// which is stored with the turn.
    pub fn replace(&self, agents: KnownAgents, tools: Arc<ToolRegistry>) {
        let agents = Arc::new(agents);
        let mut parts = Parts::clone(&self.parts());
        parts.loader.agents = Arc::clone(&agents);
        parts.thinker.agents = Arc::clone(&agents);
        parts.thinker.left_out.forget();
        parts.runner.agents = Arc::clone(&agents);
        parts.after_turn.agents = agents;
        parts.thinker.tools = Arc::clone(&tools);
        parts.runner.tools = Arc::clone(&tools);
        parts.remote.tools = Arc::clone(&tools);
        parts.after_turn.tools = tools;
        *self.parts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(parts);
    }

    /// Closes the open connections of the present tools.
    pub async fn close_tools(&self) {
        self.parts().runner.tools.close().await;
    }

    fn parts(&self) -> Arc<Parts> {
        Arc::clone(&self.parts.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn saver(ports: &Ports) -> Saver {
    Saver {
        writer: Arc::clone(&ports.writer),
        stream: Arc::clone(&ports.stream),
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
        self.parts().loader.load_turn(&ctx, request).await
    }

    #[activity(definition = declared::ReadInbox)]
    pub async fn read_inbox(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: ReadInboxRequest,
    ) -> Result<Inbox, ActivityError> {
        self.parts().loader.read_inbox(&ctx, &request).await
    }

    #[activity(definition = declared::LlmThinking)]
    pub async fn llm_thinking(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: ThinkRequest,
    ) -> Result<ThinkResult, ActivityError> {
        self.parts().thinker.think(&ctx, request).await
    }

    #[activity(definition = declared::ToolExecution)]
    pub async fn tool_execution(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: RunToolRequest,
    ) -> Result<RunToolResult, ActivityError> {
        self.parts().runner.run_tool(&ctx, request).await
    }

    #[activity(definition = declared::ClaimRemoteTool)]
    pub async fn claim_remote_tool(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: RunToolRequest,
    ) -> Result<ClaimedRemoteTool, ActivityError> {
        self.parts().remote.claim(&ctx, request).await
    }

    #[activity(definition = declared::RecordRemoteTool)]
    pub async fn record_remote_tool(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: RecordRemoteToolRequest,
    ) -> Result<RunToolResult, ActivityError> {
        self.parts().remote.record(&ctx, request).await
    }

    #[activity(definition = declared::BeginAfterTurn)]
    pub async fn begin_after_turn(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: AfterTurnInput,
    ) -> Result<AfterTurnPlan, ActivityError> {
        self.parts().after_turn.begin(&ctx, input).await
    }

    #[activity(definition = declared::SaveEvent)]
    pub async fn save_event(
        self: Arc<Self>,
        ctx: ActivityContext,
        request: SaveRequest,
    ) -> Result<SaveResult, ActivityError> {
        let agents = Arc::clone(&self.parts().loader.agents);
        self.saver.save(&ctx, request, &agents).await
    }

    // The SDK runs an activity that is not async on a separate thread.
    #[allow(clippy::unused_async)]
    #[activity(definition = declared::AnnounceCancel)]
    pub async fn announce_cancel(
        self: Arc<Self>,
        _ctx: ActivityContext,
        request: AnnounceCancelRequest,
    ) -> Result<(), ActivityError> {
        cancels::announce(Arc::clone(&self.cancel_news), request);
        Ok(())
    }
}
