//! The dependencies of a worker's LLM calls. Each stage gets the dependencies of the stage's work.
//!
//! Must not be here: the order of the stages (`mod.rs`), and the work of a stage.

use std::{sync::Arc, time::Duration};

use everturn_models::{Caller, ModelClient, WaitLimits};
use everturn_proto::{
    ConversationName,
    turn::{AgentDefinition, ThinkRequest},
    words::AnswersFrom,
};
use everturn_store::{
    BackgroundResponse, BlobFiles, ClaimedCall, ModelCalls, StepClaims, StepKey, TurnInputs,
    WorkerId,
};
use everturn_stream::{StreamWriter, TextWriter};
use everturn_tools::ToolRegistry;

use super::{
    ask::Ask, background::Listener, budget::Budget, call::Call, calls::CallPlanner,
    chain::FailedModel, checkpoint::Checkpoint, circuits::Circuits, claim::Claim, claimed::Claimed,
    compaction::Compaction, context::ContextReader, definitions::Approvals, here::Here,
    hook_step::HookStep, known_contexts::KnownContexts, measures::Measures, pick::Pick,
    provider_limits::ProviderLimits, queue::Queue, request::RequestMaker, sent_files::FileReader,
    stops::StoppedCall, store::Store, tries::Tries,
};
use crate::{
    attempt::{Attempt, Ends},
    elsewhere::{Gone, Peers},
    files::KnownFiles,
    known_agents::KnownAgents,
    left_out::LeftOutTools,
    settings::Retries,
};

/// Makes the LLM calls.
#[derive(Clone)]
pub(crate) struct Thinker {
    pub(crate) inputs: Arc<dyn TurnInputs>,
    pub(crate) steps: Arc<dyn StepClaims>,
    pub(crate) model_calls: Arc<dyn ModelCalls>,
    /// The stream for texts while models write them.
    pub(crate) stream: Arc<dyn StreamWriter>,
    pub(crate) blobs: BlobFiles,
    pub(crate) model: Arc<dyn ModelClient>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) agents: Arc<KnownAgents>,
    pub(crate) known: Known,
    /// The tools that providers would refuse.
    pub(crate) left_out: LeftOutTools,
    /// The limits of the calls that wait for the limits of a provider.
    pub(crate) provider_waits: WaitLimits,
    pub(crate) retries: Retries,
    /// The way by which answers to approvals must come.
    pub(crate) approval_answers: AnswersFrom,
    /// The worker's name in claims.
    pub(crate) worker: WorkerId,
    pub(crate) peers: Peers,
    pub(crate) ends: Ends,
}

/// The memory of a worker about earlier calls. Clones share the memory.
#[derive(Clone)]
pub(crate) struct Known {
    /// The recently read contexts.
    contexts: Arc<KnownContexts>,
    /// The files in recent requests to models.
    files: Arc<KnownFiles>,
    /// The bytes per token of agent executions.
    pub(super) measures: Arc<Measures>,
    /// The circuits of failed models, which get no calls for a while.
    pub(super) circuits: Circuits,
    /// The parts of agents that no worker has any more.
    gone: Gone,
}

impl Known {
    /// Makes an empty memory. `circuit` is the time for which a circuit stays open.
    pub(crate) fn new(circuit: Duration) -> Self {
        Self {
            contexts: Arc::default(),
            files: Arc::default(),
            measures: Arc::default(),
            circuits: Circuits::new(circuit),
            gone: Gone::new(),
        }
    }
}

/// The stages, in their order.
impl Thinker {
    pub(super) fn claim<'a>(&'a self, attempt: &'a Attempt<'a>, step: &'a StepKey) -> Claim<'a> {
        Claim {
            attempt,
            step,
            steps: &*self.steps,
            worker: &self.worker,
        }
    }

    pub(super) fn here<'a>(&'a self, claimed: &'a Claimed<'a>) -> Here<'a> {
        Here {
            claimed,
            steps: &*self.steps,
            model: &*self.model,
            tools: &self.tools,
            agents: self.agents.by_name(),
            gone: &self.known.gone,
            peers: self.peers,
        }
    }

    pub(super) fn hook_step<'a>(&'a self, claimed: &'a Claimed<'a>) -> HookStep<'a> {
        HookStep {
            claimed,
            inputs: &*self.inputs,
            tools: &self.tools,
            context: self.context(claimed),
            store: self.store(claimed),
        }
    }

    pub(super) fn context<'a>(&'a self, claimed: &'a Claimed<'a>) -> ContextReader<'a> {
        ContextReader {
            claimed,
            inputs: &*self.inputs,
            known: &self.known.contexts,
        }
    }

    pub(super) fn provider_limits<'a>(
        &'a self,
        claimed: &'a Claimed<'a>,
        limit: Duration,
    ) -> ProviderLimits<'a> {
        ProviderLimits {
            queue: self.queue(claimed),
            stopped: self.stopped(claimed),
            limit,
        }
    }

    pub(super) fn budget<'a>(&'a self, claimed: &'a Claimed<'a>, call: &ClaimedCall) -> Budget<'a> {
        Budget {
            claimed,
            model_calls: &*self.model_calls,
            is_limited: call.has_budget,
        }
    }

    pub(super) fn ask<'a>(
        &'a self,
        claimed: &'a Claimed<'a>,
        pick: &'a Pick<'a>,
        request: &ThinkRequest,
        call: &'a ClaimedCall,
    ) -> Ask<'a> {
        let model = &*self.model;
        let budget = self.budget(claimed, call);
        Ask {
            claimed,
            pick,
            measures: &self.known.measures,
            may_compact: request.may_compact,
            at_step_limit: request.at_step_limit,
            request: RequestMaker {
                caller: caller(claimed, call),
                agent_hash: claimed.agent_hash,
                tools: &self.tools,
                model,
                left_out: &self.left_out,
                agents: self.agents.by_name(),
                files: self.files(claimed),
            },
            call: Call {
                claimed,
                steps: &*self.steps,
                model,
                budget,
            },
            compaction: Compaction {
                claimed,
                model,
                budget,
                calls: call.calls,
            },
            context: self.context(claimed),
        }
    }

    pub(super) fn checkpoint<'a>(
        &'a self,
        claimed: &'a Claimed<'a>,
        at_step_limit: bool,
    ) -> Checkpoint<'a> {
        let approvals = Approvals {
            claimed,
            inputs: &*self.inputs,
            answers_from: &self.approval_answers,
        };
        Checkpoint {
            claimed,
            calls: CallPlanner { claimed, approvals },
            at_step_limit,
        }
    }

    pub(super) fn store<'a>(&'a self, claimed: &'a Claimed<'a>) -> Store<'a> {
        Store {
            claimed,
            steps: &*self.steps,
        }
    }
}

/// The parts beside the stages: the receivers of a reply, and the ends without a reply.
impl Thinker {
    pub(super) fn text_writer(&self, claimed: &Claimed<'_>) -> TextWriter {
        TextWriter::new(
            self.stream.clone(),
            claimed.log_id.clone(),
            &claimed.step.message_id,
            &claimed.step.agent_execution_id,
            claimed.step.step,
            claimed.generation,
        )
    }

    pub(super) fn listener<'a>(
        &'a self,
        claimed: &'a Claimed<'a>,
        agent: &'a AgentDefinition,
        text: &'a TextWriter,
        earlier: Option<BackgroundResponse>,
    ) -> Listener<'a> {
        let queue = self.queue(claimed);
        Listener::new(queue, &*self.model_calls, agent, text, earlier)
    }

    fn queue<'a>(&'a self, claimed: &'a Claimed<'a>) -> Queue<'a> {
        Queue {
            claimed,
            steps: &*self.steps,
            model: &*self.model,
            limits: self.provider_waits,
        }
    }

    pub(super) fn stopped<'a>(&'a self, claimed: &'a Claimed<'a>) -> StoppedCall<'a> {
        StoppedCall {
            claimed,
            model_calls: &*self.model_calls,
            model: &*self.model,
        }
    }

    pub(super) fn tries<'a>(&'a self, claimed: &'a Claimed<'a>) -> Tries<'a> {
        Tries {
            claimed,
            model_calls: &*self.model_calls,
            worker: &self.worker,
            keep: self.retries.kept_tries,
        }
    }

    pub(super) fn failed<'a>(&'a self, claimed: &'a Claimed<'a>, calls: u32) -> FailedModel<'a> {
        FailedModel {
            claimed,
            model_calls: &*self.model_calls,
            stream: &*self.stream,
            model: &*self.model,
            circuits: &self.known.circuits,
            calls,
            first_pause: self.retries.refusal_pause,
        }
    }

    fn files<'a>(&'a self, claimed: &'a Claimed<'a>) -> FileReader<'a> {
        FileReader {
            claimed,
            steps: &*self.steps,
            blobs: &self.blobs,
            known: &self.known.files,
        }
    }
}

/// Returns the facts about the caller of a call. The agent's name comes from the request.
fn caller(claimed: &Claimed<'_>, call: &ClaimedCall) -> Caller {
    let step = claimed.step;
    Caller {
        tenant_id: call.tenant_id.clone(),
        owner_id: call.owner_id.clone(),
        conversation_id: ConversationName::of_id(&step.conversation_id).to_owned(),
        message_id: step.message_id.clone(),
        agent: String::new(),
        metadata: call.metadata.clone(),
    }
}
