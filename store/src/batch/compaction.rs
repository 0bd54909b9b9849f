//! The batch of a step that has summarized older messages.

use everturn_proto::{
    event::ContextCompacted,
    words::{EventType, FinishReason},
};

use super::{ContextCut, builder::Builder};
use crate::{api::Result, error::StoreError};

impl Builder<'_> {
    /// Adds the event and the new start of the thread's context. The messages themselves stay.
    pub(super) fn compaction(&mut self) -> Result<()> {
        let state = self.checkpoint()?;
        let compacted = state
            .compacted
            .as_ref()
            .filter(|_| state.finish() == FinishReason::Compacted);
        let Some(compacted) = compacted else {
            return Err(StoreError::Conflict(format!(
                "a call that ended as `{}` has no compaction",
                state.finish
            )));
        };
        let event = ContextCompacted {
            agent_execution_id: self.agent_execution_id(),
            step: self.step().step,
            summary: state.text.clone(),
            from_sequence: compacted.from_sequence,
            through_sequence: compacted.through_sequence,
            messages: compacted.messages,
            input_tokens: state.input_tokens,
            output_tokens: state.output_tokens,
        };
        self.event(EventType::ContextCompacted, &event);
        self.batch.context_cut = Some(ContextCut {
            through_sequence: compacted.through_sequence,
            summary: state.text.clone(),
            kept_message_ids: compacted.kept_message_ids.clone(),
        });
        self.step_done();
        Ok(())
    }
}
