//! The context of a call, from the store and from this worker's memory.

use everturn_proto::{
    Thread,
    limits::{MAX_CONTEXT_BYTES, MAX_CONTEXT_MESSAGES},
    turn::AgentDefinition,
};
use everturn_store::{ModelContext, PageLimit, ReadBefore};
use temporalio_common::ActivityError;

use super::call::ModelCall;
use crate::hooks;

impl ModelCall<'_> {
    /// Reads the messages that are new since this worker's last read. The results of the hooks before the turn are
    /// placed in front of the turn's task.
    pub(super) async fn context(
        &self,
        agent: &AgentDefinition,
    ) -> Result<ModelContext, ActivityError> {
        let mut context = self.stored_context().await?;
        let hooks = agent.hooks.as_ref();
        let max_result_bytes = hooks.map_or(0, |hooks| hooks.max_result_bytes as usize);
        let id = &self.step.agent_execution_id;
        hooks::insert(&mut context.messages, id, max_result_bytes);
        Ok(context)
    }

    async fn stored_context(&self) -> Result<ModelContext, ActivityError> {
        let known = &self.thinker.known.contexts;
        let thread = (self.log_id.clone(), self.thread());
        let before = known.read(&thread);
        let read = self.read_context(&thread.1, before).await?;
        if let Some(context) = known.add(&thread, before, read) {
            return Ok(context);
        }
        self.read_context(&thread.1, None).await
    }

    async fn read_context(
        &self,
        thread: &Thread,
        before: Option<ReadBefore>,
    ) -> Result<ModelContext, ActivityError> {
        let (conversation, turns) = (&self.step.conversation_id, &self.thinker.turns);
        let limit = PageLimit {
            rows: MAX_CONTEXT_MESSAGES,
            bytes: MAX_CONTEXT_BYTES,
        };
        self.attempt
            .insist(|| turns.context(conversation, thread, limit, before))
            .await
    }
}
