//! The batch of a step that asked for tools.

use everturn_proto::{
    event::{Act, Thought},
    turn::LlmCompleteState,
    words::{CheckpointType, EventType, FinishReason, ToolStatus},
};

use super::{
    ToolRow,
    builder::{Builder, cited},
};
use crate::{
    api::Result,
    error::{Missing, StoreError},
};

impl<'a> Builder<'a> {
    /// Adds the thought (hooks have none), an act per call, the calls' records as pending, and the assistant's row.
    pub(super) fn thought(&mut self) -> Result<()> {
        let state = self.checkpoint()?;
        if state.finish() != FinishReason::ToolCalls {
            // The step is the turn's answer. The end of the turn saves its text, and a step has only one row in
            // `messages`.
            return Err(StoreError::Conflict(format!(
                "a call that ended as `{}` asked for no tools",
                state.finish
            )));
        }
        let (agent_execution_id, step) = (self.agent_execution_id(), self.step().step);
        let mut sequence = None;
        if !state.is_of_hooks() {
            let thought = Thought {
                thought: state.text.clone(),
                agent_execution_id: agent_execution_id.clone(),
                step,
                reasoning: state.reasoning.clone(),
                citations: cited(&state.citations),
            };
            sequence = Some(self.event(EventType::Thought, &thought));
        }
        for (index, call) in state.tool_calls.iter().enumerate() {
            let act = Act {
                execution_id: call.execution_id.clone(),
                tool_name: call.tool_name.clone(),
                tool_input: Some(call.tool_input.clone().unwrap_or_default()),
                call_id: call.call_id.clone(),
                status: ToolStatus::Running.into(),
                agent_execution_id: agent_execution_id.clone(),
                step,
                hook: call.hook.clone(),
                title: call.title(),
            };
            let of_act = self.event(EventType::Act, &act);
            sequence.get_or_insert(of_act);
            let row = ToolRow::pending(step, index, call.clone());
            self.batch.pending_tools.push(row);
        }
        self.ask_outside();
        let sequence = sequence.unwrap_or_default();
        self.assistant_row(&state.text, state.tool_calls.clone(), sequence);
        self.step_done();
        Ok(())
    }

    /// Returns the stored reply of the request's step. Earlier steps are saved, unless the store was restored to an
    /// earlier point after the run had saved the steps.
    pub(super) fn checkpoint(&self) -> Result<&'a LlmCompleteState> {
        let (step, saved) = (self.step(), self.snapshot.steps);
        let reply = self.snapshot.checkpoint.as_ref();
        reply.filter(|_| saved >= step.step).ok_or_else(|| {
            let (checkpoint, missing) = (CheckpointType::LlmComplete, saved.min(step.step));
            let id = format!("{checkpoint}/{}/{missing}", step.agent_execution_id);
            StoreError::not_found(Missing::Checkpoint, id)
        })
    }
}
