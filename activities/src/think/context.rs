//! The context of a call, from the store and from this worker's memory.

use everturn_proto::{
    limits::{MAX_CONTEXT_BYTES, MAX_CONTEXT_MESSAGES},
    turn::AgentDefinition,
};
use everturn_store::{
    ModelContext, PageLimit, ReadBefore, TurnInputs,
    model_input::{insert_hook_results, join_retries},
};
use temporalio_common::ActivityError;

use super::{claimed::Claimed, known_contexts::KnownContexts};

/// Reads the context of a call.
pub(super) struct ContextReader<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) inputs: &'a dyn TurnInputs,
    pub(super) known: &'a KnownContexts,
}

impl ContextReader<'_> {
    /// Reads the messages that are new since this worker's last read. The results of the hooks before the turn are
    /// placed in front of the turn's task.
    pub(super) async fn read(
        &self,
        agent: &AgentDefinition,
    ) -> Result<ModelContext, ActivityError> {
        let mut context = self.joined().await?;
        let hooks = agent.hooks.as_ref();
        let max_result_bytes = hooks.map_or(0, |hooks| hooks.max_result_bytes as usize);
        let id = &self.claimed.step.agent_execution_id;
        insert_hook_results(&mut context.messages, id, max_result_bytes);
        Ok(context)
    }

    /// Reads the messages, with the steps of failed turns as steps of their retries.
    pub(super) async fn joined(&self) -> Result<ModelContext, ActivityError> {
        let mut context = self.stored().await?;
        let conversation_id = &self.claimed.step.conversation_id;
        join_retries(&mut context.messages, conversation_id);
        Ok(context)
    }

    async fn stored(&self) -> Result<ModelContext, ActivityError> {
        let thread = (self.claimed.log_id.clone(), self.claimed.thread.clone());
        let before = self.known.read(&thread);
        let read = self.read_after(before).await?;
        if let Some(context) = self.known.add(&thread, before, read) {
            return Ok(context);
        }
        self.read_after(None).await
    }

    async fn read_after(&self, before: Option<ReadBefore>) -> Result<ModelContext, ActivityError> {
        let (claimed, inputs) = (self.claimed, self.inputs);
        let conversation = &claimed.step.conversation_id;
        let limit = PageLimit {
            rows: MAX_CONTEXT_MESSAGES,
            bytes: MAX_CONTEXT_BYTES,
        };
        claimed
            .attempt
            .insist(|| inputs.context(conversation, &claimed.thread, limit, before))
            .await
    }
}
