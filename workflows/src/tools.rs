//! The tools of a step: all at once, each observed as it ends.
//!
//! Must not be here: how an activity is called (`calls.rs`), what a batch holds (the store).

use everturn_proto::turn::{PlannedCall, RunToolRequest, SaveObserve, save_request::Batch};
use temporalio_workflow::join_all;

use crate::{
    agent_execution::Phase,
    calls::{self, CallError},
    turn::Turn,
};

impl Turn<'_> {
    /// Runs the step's tools at once; each is observed as it ends.
    pub(crate) async fn run_tools(&self, tool_calls: &[PlannedCall]) -> Result<(), CallError> {
        self.enter(Phase::RunningTools(tool_calls.iter().map(|call| call.tool_name.clone()).collect()));
        let runs = tool_calls.iter().map(|call| self.run_tool(call));
        join_all(runs).await.into_iter().collect()
    }

    async fn run_tool(&self, call: &PlannedCall) -> Result<(), CallError> {
        let request = RunToolRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message.message_id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: self.step,
            execution_id: call.execution_id.clone(),
        };
        let failure = match calls::run_tool(self.ctx, &self.cancellation, call, request).await {
            Ok(()) => String::new(),
            // The end of the turn observes what a cancel left open (invariant 6).
            Err(CallError::Cancelled) => return Ok(()),
            Err(CallError::Failed { .. }) if self.cancellation.is_cancelled() => return Ok(()),
            Err(CallError::Failed { message, .. }) => message,
        };
        let observe = SaveObserve { execution_id: call.execution_id.clone(), failure };
        self.save(Batch::Observe(observe)).await.map(drop)
    }
}
