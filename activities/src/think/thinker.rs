//! The dependencies of all LLM calls of a worker, and the parts of them that each stage gets.
//!
//! Must not be here: the order of the stages (`mod.rs`), and the work of a stage.

use std::{sync::Arc, time::Duration};

use everturn_models::ModelClient;
use everturn_proto::{turn::AgentDefinition, words::AnswersFrom};
use everturn_store::{BackgroundResponse, BlobFiles, TurnStore, WorkerId};
use everturn_stream::{StreamWriter, TextWriter};
use everturn_tools::ToolRegistry;

use super::{
    background::Listener, chain::FailedModel, circuits::Circuits, claimed::Claimed,
    context::ContextReader, here::Here, known_contexts::KnownContexts, measures::Measures,
    provider_limits::ProviderLimits, sent_files::FileReader, stops::StoppedCall,
};
use crate::{attempt::Ends, elsewhere::Peers, files::KnownFiles, known_agents::KnownAgents};

/// Makes the LLM calls.
#[derive(Clone)]
pub(crate) struct Thinker {
    pub(crate) turns: Arc<dyn TurnStore>,
    /// The stream for texts while models write them.
    pub(crate) stream: Arc<dyn StreamWriter>,
    pub(crate) blobs: BlobFiles,
    pub(crate) model: Arc<dyn ModelClient>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) agents: Arc<KnownAgents>,
    pub(crate) known: Known,
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
    pub(super) contexts: Arc<KnownContexts>,
    /// The files in recent requests to models.
    pub(super) files: Arc<KnownFiles>,
    /// The bytes per token of agent executions.
    pub(super) measures: Arc<Measures>,
    /// The circuits of failed models, which get no calls for a while.
    pub(super) circuits: Circuits,
}

impl Known {
    /// Makes an empty memory. `circuit` is the time for which a circuit stays open.
    pub(crate) fn new(circuit: Duration) -> Self {
        Self {
            contexts: Arc::default(),
            files: Arc::default(),
            measures: Arc::default(),
            circuits: Circuits::new(circuit),
        }
    }
}

/// The stages, in their order.
impl Thinker {
    pub(super) fn here<'a>(&'a self, claimed: &'a Claimed<'a>) -> Here<'a> {
        Here {
            claimed,
            turns: &*self.turns,
            model: &*self.model,
            tools: &self.tools,
            peers: self.peers,
        }
    }

    pub(super) fn context<'a>(&'a self, claimed: &'a Claimed<'a>) -> ContextReader<'a> {
        ContextReader {
            claimed,
            turns: &*self.turns,
            known: &self.known.contexts,
        }
    }

    pub(super) fn provider_limits<'a>(
        &'a self,
        claimed: &'a Claimed<'a>,
        limit: Duration,
    ) -> ProviderLimits<'a> {
        ProviderLimits {
            claimed,
            turns: &*self.turns,
            model: &*self.model,
            stopped: self.stopped(claimed),
            limit,
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
        Listener::new(claimed, &*self.turns, &*self.model, agent, text, earlier)
    }

    pub(super) fn stopped<'a>(&'a self, claimed: &'a Claimed<'a>) -> StoppedCall<'a> {
        StoppedCall {
            claimed,
            turns: &*self.turns,
            model: &*self.model,
        }
    }

    pub(super) fn failed<'a>(&'a self, claimed: &'a Claimed<'a>, calls: u32) -> FailedModel<'a> {
        FailedModel {
            claimed,
            turns: &*self.turns,
            stream: &*self.stream,
            model: &*self.model,
            circuits: &self.known.circuits,
            calls,
        }
    }

    pub(super) fn files<'a>(&'a self, claimed: &'a Claimed<'a>) -> FileReader<'a> {
        FileReader {
            claimed,
            turns: &*self.turns,
            blobs: &self.blobs,
            known: &self.known.files,
        }
    }
}
