//! A claimed call of the model, and the dependencies of every call.

use std::{sync::Arc, time::Duration};

use everturn_models::ModelClient;
use everturn_proto::{LogId, Thread, words::AnswersFrom};
use everturn_store::{BlobFiles, StepKey, TurnStore, WorkerId};
use everturn_stream::StreamWriter;
use everturn_tools::ToolRegistry;

use super::{circuits::Circuits, known_contexts::KnownContexts, measures::Measures};
use crate::{
    attempt::{Attempt, Ends},
    elsewhere::Peers,
    files::KnownFiles,
    known_agents::KnownAgents,
};

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

/// A claimed call of the model.
pub(super) struct ModelCall<'a> {
    pub(super) thinker: &'a Thinker,
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) step: &'a StepKey,
    pub(super) agent_hash: &'a str,
    pub(super) log_id: &'a LogId,
    /// The conversation's tenant.
    pub(super) tenant_id: &'a str,
    pub(super) generation: u32,
    /// True when the turn has a budget, of which the call reserves a part.
    pub(super) has_budget: bool,
    /// True when the agent's steps are used up, and the model writes the last summary.
    pub(super) at_step_limit: bool,
}

impl ModelCall<'_> {
    /// Returns the thread whose messages are the context.
    pub(super) fn thread(&self) -> Thread {
        Thread::of(
            &self.step.conversation_id,
            &self.step.message_id,
            &self.step.agent_execution_id,
        )
    }
}
