//! Claimed model calls until their replies: the reserved cost, the response in the background, failures, partial texts.

use async_trait::async_trait;
use everturn_proto::turn::LlmCompleteState;

use super::{
    BackgroundResponse, CutCall, Estimate, FailedCall, FailedTry, NotedFailure, Reservation,
    Result, steps::StepKey,
};

/// Keeps the facts of a claimed model call until its reply: the reserved cost, the response in the background, a
/// failure, a partial text. [`StepClaims`] has the claim and the reply. For workers: `llm_thinking_activity`.
///
/// [`StepClaims`]: super::StepClaims
#[async_trait]
pub trait ModelCalls: Send + Sync {
    /// Reserves a part of the turn's budget for a claimed call ([`has_budget`]), before the call is made.
    /// A worker may repeat the reservation of a call. `other_model` is the called model (`<provider>/<model>`), if the
    /// model is not the agent's own.
    ///
    /// [`has_budget`]: super::ClaimedCall::has_budget
    async fn reserve_call(
        &self,
        step: &StepKey,
        generation: u32,
        call: Estimate,
        other_model: Option<&str>,
    ) -> Result<Reservation>;

    /// Notes the end of a claimed call without a reply, in a turn without a budget. `None`: the call was not made, or the
    /// provider refused the call without cost. A cut call counts when the step is claimed again, or when the agent
    /// execution ends. A call without a note, as after the death of a worker, counts as cut with an estimate of the store.
    async fn note_unanswered_call(
        &self,
        step: &StepKey,
        generation: u32,
        cut: Option<&CutCall>,
    ) -> Result<()>;

    /// Gives back the reservation of a call that the provider refused without cost.
    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<()>;

    /// Stores the provider's background response of a claimed call, in place of an earlier response. The step's next
    /// claim returns the response. Returns false, and changes no row, if the call is useless: the step was claimed
    /// again, the agent execution has ended, or a newer run has taken over.
    async fn note_response(
        &self,
        step: &StepKey,
        generation: u32,
        response: &BackgroundResponse,
    ) -> Result<bool>;

    /// Notes a failed call of a model in a chain. The step's next claim returns the step's position. A switch to
    /// another model appends the switch's event in the same transaction, once, and deletes the call's background
    /// response.
    async fn note_failed_call(
        &self,
        step: &StepKey,
        generation: u32,
        failed: &FailedCall,
    ) -> Result<NotedFailure>;

    /// Notes a try of a claimed model call without a reply, once. The step keeps its newest tries.
    async fn note_try(&self, step: &StepKey, tried: &FailedTry) -> Result<()>;

    /// Stores the partial text of a stopped call, or of a call that has timed out (`llm_partial`; the newest generation
    /// wins). Only an end that cuts the turn short reads the partial text. [`claim_step`] ignores the partial text.
    ///
    /// [`claim_step`]: super::StepClaims::claim_step
    async fn save_partial(&self, step: &StepKey, state: LlmCompleteState) -> Result<()>;
}
