//! A call's wait for a person, and the handling of the answer: the wait for an approval before the tool runs, and for the
//! answer to a question of the tool.
//!
//! Must not be here: which answers are taken (`outside.rs`), who may approve (the store).

use std::time::{Duration, SystemTime};

use everturn_proto::{
    ids,
    turn::{PlannedCall, ResolveApproval, SaveApproval, SavedApproval, save_request::Batch},
    words::ApprovalState,
};

use crate::{calls::CallError, state::show_waiting, step_calls::Rest, tools::Waited, turn::Turn};

impl Turn<'_> {
    /// Waits for the person, for days if necessary, and saves the answer. Returns false when the call must not run:
    /// the answer has observed the call, or the end of the turn will. An answer that the store refuses changes nothing,
    /// and the call waits for the rest of its time. The store may save a newer answer of a person instead, and the call
    /// runs as the store says (invariant 3, idempotent saves).
    pub(crate) async fn is_approved(
        &self,
        call: &PlannedCall,
        left: Option<Duration>,
    ) -> Result<bool, CallError> {
        let id = call.execution_id.as_str();
        let asked_for = call.approval_timeout_s.unwrap_or_default();
        let mut timeout = left.unwrap_or(Duration::from_secs(u64::from(asked_for)));
        let until = self.ctx.workflow_time().map(|now| now + timeout);
        loop {
            let Some(save) = self.answer(call, timeout).await else {
                return Ok(false);
            };
            let decision = save.decision();
            let saved = self.save_batch(Batch::Approval(save)).await?;
            let Some(why) = &saved.approval_refused else {
                let stored = saved.approval_saved.as_ref();
                let decision = stored.map_or(decision, SavedApproval::decision);
                // A declined question lets the tool go on.
                self.ctx
                    .state_mut(|state| state.outside.answer_stored(id, stored));
                return Ok(decision.lets_run() && self.ended(&saved).is_none());
            };
            self.ctx
                .state_mut(|state| state.outside.refuse(id, &why.as_str().into()));
            show_waiting(self.ctx);
            timeout = rest(until, self.ctx.workflow_time());
        }
    }

    /// Waits for an answer, and returns the approval to save; `None` when the turn was cancelled.
    async fn answer(&self, call: &PlannedCall, timeout: Duration) -> Option<SaveApproval> {
        let id = call.execution_id.as_str();
        let waited = self
            .wait(timeout, Rest::Approval, call, |state| {
                state.outside.answer(id).is_some()
            })
            .await;
        let (decision, answer, answer_id) = match waited {
            Waited::Cancelled => return None,
            Waited::Expired => {
                self.ctx.state_mut(|state| state.outside.expire(id));
                (ApprovalState::Expired, ResolveApproval::default(), None)
            }
            Waited::Done => {
                let answer = self.ctx.state(|state| state.outside.answer(id).cloned());
                let answer = answer.unwrap_or_default();
                let answer_id = ids::answer_id(&answer);
                (answer.outcome(), answer, Some(answer_id))
            }
        };
        Some(SaveApproval {
            execution_id: id.to_owned(),
            decision: (&decision).into(),
            tool_input: answer.tool_input,
            reason: answer.reason,
            remember: answer.remember,
            resolved_by: answer.resolved_by,
            answer_id,
            is_through_engine: false,
            edited_by: None,
            input_hash: self.ctx.state(|state| state.outside.awaited_hash(id)),
            answer: answer.answer,
        })
    }
}

/// Returns the rest of the waiting time, at least a millisecond, because without a time to wait no
/// timer would report the expiry.
fn rest(until: Option<SystemTime>, now: Option<SystemTime>) -> Duration {
    let left = until.zip(now);
    let left = left.and_then(|(until, now)| until.duration_since(now).ok());
    left.unwrap_or_default().max(Duration::from_millis(1))
}
