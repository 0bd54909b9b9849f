//! `save_event_activity`: persists a batch, then notifies the readers.

use std::sync::Arc;

use everturn_proto::{
    turn::{
        AskedQuestion, SaveObserve, SaveQuestion, SaveRequest, SaveResult, save_request::Batch,
    },
    words::AgentExecutionStatus,
};
use everturn_store::{AgentEnd, EventWriter, Saved, StoreError, ToolKey};
use everturn_stream::{Announcement, StreamWriter};
use everturn_supervisor::failpoint;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::{
    failure::{self as fail, Tries},
    known_agents::KnownAgents,
    readers,
    store_call::counted,
};

/// Saves batches of events.
#[derive(Clone)]
pub(crate) struct Saver {
    pub(crate) writer: Arc<dyn EventWriter>,
    pub(crate) stream: Arc<dyn StreamWriter>,
}

impl Saver {
    /// Saves a batch. `agents` are the present agents, with their owners for the log.
    pub(crate) async fn save(
        &self,
        ctx: &ActivityContext,
        request: SaveRequest,
        agents: &KnownAgents,
    ) -> Result<SaveResult, ActivityError> {
        let saved = self.persist(&request).await;
        let saved = saved.map_err(|error| fail::from_store(&error, Tries::of(ctx)))?;
        if let Some(ended) = &saved.ended {
            log_end(&request, ended, agents);
        }
        // The workflow needs no sequence number, and every field of the result would fill its history.
        Ok(SaveResult {
            last_sequence: 0,
            ..saved.result
        })
    }

    /// Saves the question of a running tool. A question of an older attempt, or of an ended turn, is not stored: the engine
    /// drops the result of such an attempt.
    pub(crate) async fn ask(
        &self,
        key: &ToolKey,
        attempt: u32,
        question: &AskedQuestion,
    ) -> Result<(), StoreError> {
        let asked = SaveQuestion {
            execution_id: key.execution_id.clone(),
            attempt,
            question: Some(question.clone()),
        };
        let request = request(key.clone(), Batch::Question(asked));
        self.persist(&request).await.map(drop)
    }

    /// Saves the observe of a tool whose end this activity has just stored. The save has a single attempt, because the
    /// workflow saves a missing observe. A success saves the history a marker, and the turn a workflow task.
    pub(crate) async fn observe(&self, key: ToolKey) -> bool {
        let observe = SaveObserve {
            execution_id: key.execution_id.clone(),
            failure: None,
        };
        let request = request(key, Batch::Observe(observe));
        let saved = self.persist(&request).await;
        saved
            .inspect_err(|error| tracing::debug!(%error, "the workflow saves the observe"))
            .is_ok()
    }

    async fn persist(&self, request: &SaveRequest) -> Result<Saved, StoreError> {
        let (before, after) = failpoints(request);
        failpoint::reach(before).await;
        let saved = counted(self.writer.save(request)).await?;
        failpoint::reach(after).await;
        let announcement = Announcement {
            last_sequence: saved.result.last_sequence,
            sealed: saved.sealed.clone(),
        };
        readers::announce(&*self.stream, &saved.log_id, announcement).await;
        Ok(saved)
    }
}

/// Returns the request of the call's activity to save a batch.
fn request(key: ToolKey, batch: Batch) -> SaveRequest {
    SaveRequest {
        conversation_id: key.conversation_id,
        message_id: key.message_id,
        agent_execution_id: key.agent_execution_id,
        step: key.step,
        epoch: key.epoch,
        batch: Some(batch),
    }
}

/// Logs a line for every end, with the cost. The line of a failure names the agent's owner.
fn log_end(request: &SaveRequest, ended: &AgentEnd, agents: &KnownAgents) {
    let has_failed = ended.status == AgentExecutionStatus::Failed;
    let responsible = agents.responsible(&ended.agent).filter(|_| has_failed);
    tracing::info!(
        conversation_id = request.conversation_id,
        message_id = request.message_id,
        agent_execution_id = request.agent_execution_id,
        agent = ended.agent,
        owner = responsible.and_then(|it| it.owner.as_deref()),
        contact = responsible.and_then(|it| it.contact.as_deref()),
        status = ended.status.as_str(),
        code = ended.error_code,
        llm_calls = ended.calls,
        input_tokens = ended.input_tokens,
        output_tokens = ended.output_tokens,
        "an agent has ended"
    );
}

fn failpoints(request: &SaveRequest) -> (&'static str, &'static str) {
    match &request.batch {
        Some(Batch::Steer(_)) => ("save.steer.before", "save.steer.after"),
        Some(Batch::Thought(_)) => ("save.thought.before", "save.thought.after"),
        Some(Batch::CutReply(_)) => ("save.cut_reply.before", "save.cut_reply.after"),
        Some(Batch::Compaction(_)) => ("save.compaction.before", "save.compaction.after"),
        Some(Batch::Observe(_)) => ("save.observe.before", "save.observe.after"),
        Some(Batch::Question(_)) => ("save.question.before", "save.question.after"),
        Some(Batch::Approval(_)) => ("save.approval.before", "save.approval.after"),
        Some(Batch::SubAgent(_)) => ("save.sub_agent.before", "save.sub_agent.after"),
        Some(Batch::End(_)) => ("save.end.before", "save.end.after"),
        None => ("save.none.before", "save.none.after"),
    }
}
