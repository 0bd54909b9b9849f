//! The checkpoint of a reply: the model's text and tool calls, the name of the model, and the tokens.
//!
//! Must not be here: storing the checkpoint (`store`).

use std::time::{SystemTime, UNIX_EPOCH};

use everturn_models::{ModelReply, Usage, signer};
use everturn_proto::{
    turn::{AgentDefinition, LlmCompleteState},
    words::{FinishReason, OnCutReply},
};
use temporalio_common::ActivityError;

use super::{
    answer,
    calls::{self, CallPlanner},
    claimed::Claimed,
    model_name::model_of,
    reply::Said,
};
use crate::storable::without_nul;

/// Makes the checkpoint of a reply.
pub(super) struct Checkpoint<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) calls: CallPlanner<'a>,
    /// True when the agent's steps are used up, and the reply is the last summary.
    pub(super) at_step_limit: bool,
}

impl Checkpoint<'_> {
    /// Returns the checkpoint of a reply.
    pub(super) async fn of(
        &self,
        agent: &AgentDefinition,
        said: Said,
    ) -> Result<LlmCompleteState, ActivityError> {
        let Said {
            offered,
            mut sent,
            reply,
            has_answered,
        } = said;
        sent.received_characters = received(&reply);
        let claimed = self.claimed;
        let mut tool_calls = self.calls.plan(agent, &offered, reply.tool_calls).await?;
        let model = model_of(agent, claimed.agent_hash)?;
        calls::sign(&mut tool_calls, &signer(&agent.provider, &model));
        let is_answer = tool_calls.is_empty();
        // A sub-agent's answer is the text of its last step alone. A reply with only reasoning has no text to continue.
        let goes_on = reply.is_cut
            && is_answer
            && !reply.text.trim().is_empty()
            && agent.policy_on_cut_reply() == OnCutReply::Continue
            && !claimed.thread.is_sub_agents();
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
            citations: reply.citations,
            sent: Some(Box::new(sent)),
            ..answered(claimed, agent, reply.usage)?
        };
        Ok(if self.at_step_limit {
            answer::last_summary(state)
        } else {
            answer::judged(state, agent, claimed.step.step, has_answered)
        })
    }
}

/// Returns the characters of a reply.
pub(super) fn received(reply: &ModelReply) -> u32 {
    let inputs = reply.tool_calls.iter().map(|call| call.arguments.as_str());
    let texts = [reply.text.as_str(), reply.reasoning.as_str()];
    let characters = texts.into_iter().chain(inputs);
    let characters: usize = characters.map(|text| text.chars().count()).sum();
    u32::try_from(characters).unwrap_or(u32::MAX)
}

/// Returns the part of a checkpoint about the answering model and its tokens.
pub(super) fn answered(
    claimed: &Claimed<'_>,
    agent: &AgentDefinition,
    usage: Usage,
) -> Result<LlmCompleteState, ActivityError> {
    Ok(LlmCompleteState {
        agent_hash: claimed.agent_hash.to_owned(),
        generation: claimed.generation,
        provider: agent.provider.clone(),
        model: model_of(agent, claimed.agent_hash)?,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        is_estimated: usage.estimated,
        cost_nano_usd: agent.prices.map(|prices| prices.nano_usd(&usage)),
        started_ms: milliseconds(claimed.started_at),
        ..LlmCompleteState::default()
    })
}

/// Returns the milliseconds of the Unix epoch until `time`.
fn milliseconds(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
