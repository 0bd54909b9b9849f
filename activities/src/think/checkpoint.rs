//! The checkpoint of a call: the model's reply, the name of the model, and the tokens.

use everturn_models::{Usage, signer};
use everturn_proto::{
    turn::{AgentDefinition, LlmCompleteState},
    words::{FailureCode, FinishReason, OnCutReply},
};
use everturn_store::CompletedStep;
use temporalio_common::ActivityError;

use super::{answer, call::ModelCall, calls, model_name::model_of, reply::Said};
use crate::{failure as fail, storable::without_nul};

impl ModelCall<'_> {
    /// Stores the checkpoint of a reply, and returns the stored checkpoint.
    pub(super) async fn store(
        &self,
        mut state: LlmCompleteState,
    ) -> Result<LlmCompleteState, ActivityError> {
        loop {
            let completed = self
                .claimed
                .attempt
                .insist(|| {
                    self.thinker
                        .turns
                        .complete_step(self.claimed.step, state.clone())
                })
                .await?;
            match completed {
                CompletedStep::Stored(stored) => return Ok(stored),
                CompletedStep::CallIdsUsed(used) => {
                    if !calls::rename(&mut state.tool_calls, &used) {
                        let message =
                            format!("The conversation has other calls with the ids {used:?}.");
                        return Err(fail::permanent(FailureCode::Internal, message));
                    }
                }
            }
        }
    }

    /// Returns the checkpoint of a reply.
    pub(super) async fn state(
        &self,
        agent: &AgentDefinition,
        said: Said,
    ) -> Result<LlmCompleteState, ActivityError> {
        let Said {
            offered,
            sent,
            reply,
            has_answered,
        } = said;
        let mut tool_calls = self.tool_calls(agent, &offered, reply.tool_calls).await?;
        let model = model_of(agent, self.claimed.agent_hash)?;
        calls::sign(&mut tool_calls, &signer(&agent.provider, &model));
        let is_answer = tool_calls.is_empty();
        // A sub-agent's answer is the text of its last step alone. A reply with only reasoning has no text to continue.
        let goes_on = reply.is_cut
            && is_answer
            && !reply.text.trim().is_empty()
            && agent.policy_on_cut_reply() == OnCutReply::Continue
            && !self.claimed.thread.is_sub_agents();
        let state = LlmCompleteState {
            text: without_nul(reply.text),
            reasoning: without_nul(reply.reasoning),
            finish: if is_answer {
                FinishReason::Stop
            } else {
                FinishReason::ToolCalls
            }
            .into(),
            tool_calls,
            is_cut: reply.is_cut,
            goes_on,
            sent: Some(Box::new(sent)),
            ..self.answered(agent, reply.usage)?
        };
        Ok(if self.at_step_limit {
            answer::last_summary(state)
        } else {
            answer::judged(state, agent, self.claimed.step.step, has_answered)
        })
    }

    /// Returns the part of a checkpoint about the answering model and its tokens.
    pub(super) fn answered(
        &self,
        agent: &AgentDefinition,
        usage: Usage,
    ) -> Result<LlmCompleteState, ActivityError> {
        Ok(LlmCompleteState {
            agent_hash: self.claimed.agent_hash.to_owned(),
            generation: self.claimed.generation,
            provider: agent.provider.clone(),
            model: model_of(agent, self.claimed.agent_hash)?,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_nano_usd: agent.prices.map(|prices| prices.nano_usd(&usage)),
            ..LlmCompleteState::default()
        })
    }
}
