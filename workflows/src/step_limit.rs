//! The end of a turn without steps left. The model is asked once more, for a summary of its work and findings, so that
//! neither the person nor the next turn has to start again from the beginning.

use everturn_proto::{
    turn::{LoadedTurn, SaveCompaction, save_request::Batch},
    words::{FailureCode, FinishReason},
};

use crate::{
    calls::{CallError, Failure},
    turn::{Ending, Next, Turn},
};

impl Turn<'_> {
    /// Ends the turn as failed. Its last step is the summary, and the store keeps the summary's text with the end. A
    /// failed summary does not prevent the end.
    pub(crate) async fn summarize(&mut self, loaded: &LoadedTurn) -> Result<Next, CallError> {
        let mut failure = step_limit(loaded.max_steps);
        let thought = self.think(loaded).await;
        if self.cancellation.is_cancelled() {
            return self.end(Ending::Cancelled).await.map(Next::End);
        }
        match thought {
            Ok(thought) if thought.finish() == FinishReason::Compacted => {
                let compaction = Batch::Compaction(SaveCompaction {});
                return self.save_and_go_on(compaction).await;
            }
            // The budget is too small for the summary.
            Err(CallError::Failed(error)) if error.code == FailureCode::BudgetExhausted => {
                failure = error;
            }
            Err(CallError::Cancelled) => {
                return self.end(Ending::Cancelled).await.map(Next::End);
            }
            Ok(_) | Err(CallError::Failed(_)) => {}
        }
        self.end(Ending::Failed(failure)).await.map(Next::End)
    }
}

fn step_limit(max_steps: u32) -> Failure {
    Failure {
        code: FailureCode::StepLimit,
        message: format!(
            "The turn was stopped after {max_steps} steps without an answer. Raise `max_steps` of the agent if the \
             task needs more."
        ),
    }
}
