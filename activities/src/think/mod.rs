//! `llm_thinking_activity`: one LLM call of one step (invariant 5, paid once).
//!
//! Claim the step → call the model, streaming what it says → store `llm_complete` → tell the workflow which tools
//! to run. A step whose checkpoint is stored is answered from it.

mod background;
mod calls;

use std::time::Duration;

use everturn_proto::{
    LogId, Thread,
    limits::MAX_CONTEXT_BYTES,
    turn::{AgentDefinition, LlmCompleteState, ThinkRequest, ThinkResult},
    words::{FinishReason, OnCutReply, ToolKind, failure},
};
use everturn_store::{
    BackgroundResponse, CompletedStep, ContextMessage, PageLimit, StepClaim, StepKey, ToolResult,
};
use everturn_stream::{Part, TextWriter};
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use self::{background::Listener, calls::plan};
use crate::{
    AgentActivities,
    attempt::{Attempt, Ended},
    failpoint, failure as fail,
    model::{ModelReply, ModelRequest},
    tools::{Progress, ToolSpec, builtin::read_result, delegate},
};

pub(crate) async fn think(
    activities: &AgentActivities,
    ctx: &ActivityContext,
    request: ThinkRequest,
) -> Result<ThinkResult, ActivityError> {
    let step = StepKey {
        conversation_id: request.conversation_id,
        message_id: request.message_id,
        agent_execution_id: request.agent_execution_id,
        step: request.step,
        epoch: request.epoch,
    };
    let attempt = &Attempt::begin(activities, ctx, &step.agent_execution_id);
    let (log_id, generation, calls, background) = match claim(activities, attempt, &step).await? {
        StepClaim::Stored(state) => return Ok(plan(&state)),
        StepClaim::Call {
            log_id,
            generation,
            calls,
            is_ahead: _,
            background,
        } => (log_id, generation, calls, background),
    };
    let call = ModelCall {
        activities,
        attempt,
        step: &step,
        agent_hash: &request.agent_hash,
        generation,
    };
    let agent = call.agent().await?;
    call.check_here(&agent).await?;
    let messages = call.context(&agent).await?;
    let idempotency_key = call.idempotency_key(&log_id);
    let text = call.text_writer(log_id);
    let mut listener = Listener::new(&call, &agent, &text, background);
    // Heartbeats are sent from here on: a source of tools may take long, and a model does.
    let limit = Duration::from_millis(u64::from(agent.llm_timeout_ms));
    let ended = attempt
        .run(&Progress::default(), limit, async {
            let mut request = call.model_request(&agent, messages).await?;
            request.idempotency_key = idempotency_key;
            request.attached = listener.response_id();
            let offered = request.tools.clone();
            let reply = tokio::select! {
                biased;
                reply = activities.model.complete(request, &mut listener) => reply,
                () = call.superseded(&text) => return Err(fail::superseded()),
            };
            match reply {
                Ok(reply) => Ok((offered, reply)),
                Err(error) => Err(listener.refused(&error, calls)),
            }
        })
        .await;
    let (offered, reply) = match ended {
        Ended::Done(reply) => reply?,
        Ended::Stopped => {
            let running = listener.response();
            return Err(call.stopped(&text, running).await);
        }
        Ended::OutOfTime => return Err(fail::llm_timeout()),
    };
    failpoint::reach("think.before_checkpoint").await;
    let stored = call.store(&agent, &offered, reply).await?;
    failpoint::reach("think.after_checkpoint").await;
    text.finish().await;
    Ok(plan(&stored))
}

/// Claims the step, unless it was called too often, or the store does not have the steps before.
async fn claim(
    activities: &AgentActivities,
    attempt: &Attempt<'_>,
    step: &StepKey,
) -> Result<StepClaim, ActivityError> {
    let worker = Some(&activities.worker);
    let claim = attempt
        .insist(|| activities.turns.claim_step(step, worker))
        .await?;
    match claim {
        StepClaim::Call { is_ahead: true, .. } => Err(fail::store_behind()),
        StepClaim::Call { calls, .. } if calls > fail::STEP_CALLS => Err(fail::called_too_often()),
        claim => Ok(claim),
    }
}

/// A call of the model that was claimed.
struct ModelCall<'a> {
    activities: &'a AgentActivities,
    attempt: &'a Attempt<'a>,
    step: &'a StepKey,
    agent_hash: &'a str,
    generation: u32,
}

impl ModelCall<'_> {
    /// The agent this turn is pinned to. Only that of another configuration is read from the store.
    async fn agent(&self) -> Result<AgentDefinition, ActivityError> {
        if let Some(agent) = self.activities.agents.with_hash(self.agent_hash) {
            return Ok(agent.clone());
        }
        let agent = self
            .attempt
            .insist(|| self.activities.turns.agent_definition(self.agent_hash))
            .await?;
        agent.ok_or_else(|| {
            fail::permanent(
                failure::INTERNAL,
                format!("The agent definition {} is not stored.", self.agent_hash),
            )
        })
    }

    /// Leaves the call to another worker when this one lacks what the agent needs, and gives back its claim.
    async fn check_here(&self, agent: &AgentDefinition) -> Result<(), ActivityError> {
        let (activities, ctx) = (self.activities, self.attempt.ctx);
        let missing = activities.lacks_for(agent);
        let Some(elsewhere) = missing.and_then(|it| activities.left_to_others(ctx, &it)) else {
            return Ok(());
        };
        self.attempt
            .insist(|| activities.turns.release_step(self.step, self.generation))
            .await?;
        Err(elsewhere)
    }

    fn text_writer(&self, log_id: LogId) -> TextWriter {
        TextWriter::new(
            self.activities.stream.clone(),
            log_id,
            &self.step.message_id,
            &self.step.agent_execution_id,
            self.step.step,
            self.generation,
        )
    }

    /// Whose messages are the context.
    fn thread(&self) -> Thread {
        Thread::of(
            &self.step.conversation_id,
            &self.step.message_id,
            &self.step.agent_execution_id,
        )
    }

    async fn context(&self, agent: &AgentDefinition) -> Result<Vec<ContextMessage>, ActivityError> {
        let conversation = &self.step.conversation_id;
        let limit = PageLimit {
            rows: agent.max_context_messages,
            bytes: MAX_CONTEXT_BYTES,
        };
        let thread = self.thread();
        self.attempt
            .insist(|| self.activities.turns.context(conversation, &thread, limit))
            .await
    }

    /// The request, with the tools of the agent that there are now.
    async fn model_request(
        &self,
        agent: &AgentDefinition,
        messages: Vec<ContextMessage>,
    ) -> Result<ModelRequest, ActivityError> {
        let (delegate, registered): (Vec<_>, Vec<_>) = agent
            .tools
            .iter()
            .partition(|tool| tool.kind() == ToolKind::Delegate);
        let tools = self
            .activities
            .tools
            .specs(registered.iter().map(|tool| tool.name.as_str()))
            .await;
        let mut tools =
            tools.map_err(|error| fail::permanent(failure::UNKNOWN_AGENT, error.to_string()))?;
        tools.extend(
            delegate
                .into_iter()
                .map(|tool| delegate::spec(tool, self.activities.agents.by_name())),
        );
        let results = messages.iter().flat_map(|message| &message.tool_results);
        if results.into_iter().any(ToolResult::is_cut) {
            tools.extend(self.activities.tools.spec(read_result::NAME));
        }
        Ok(ModelRequest {
            provider: agent.provider.clone(),
            model: self.model_of(agent)?,
            instructions: Some(agent.instructions.clone()).filter(|text| !text.trim().is_empty()),
            messages,
            tools,
            max_output_tokens: agent.max_output_tokens,
            ..ModelRequest::default()
        })
    }

    /// The model's name. A turn of an agent without one has ended before it thinks.
    fn model_of(&self, agent: &AgentDefinition) -> Result<String, ActivityError> {
        agent.model.clone().ok_or_else(|| {
            fail::permanent(
                failure::INTERNAL,
                format!("The agent definition {} has no model.", self.agent_hash),
            )
        })
    }

    /// Stores the checkpoint of a reply, and returns the one that is stored.
    async fn store(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        reply: ModelReply,
    ) -> Result<LlmCompleteState, ActivityError> {
        let mut state = self.state(agent, offered, reply).await?;
        loop {
            let completed = self
                .attempt
                .insist(|| {
                    self.activities
                        .turns
                        .complete_step(self.step, state.clone())
                })
                .await?;
            match completed {
                CompletedStep::Stored(stored) => return Ok(stored),
                CompletedStep::CallIdsUsed(used) => {
                    if !calls::rename(&mut state.tool_calls, &used) {
                        let message =
                            format!("The conversation has other calls with the ids {used:?}.");
                        return Err(fail::permanent(failure::INTERNAL, message));
                    }
                }
            }
        }
    }

    /// The checkpoint of a reply.
    async fn state(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        reply: ModelReply,
    ) -> Result<LlmCompleteState, ActivityError> {
        let tool_calls = self.tool_calls(agent, offered, reply.tool_calls).await?;
        let is_answer = tool_calls.is_empty();
        // A sub-agent's answer is that of its last step alone. Of a reply that is nothing but reasoning, nothing goes on.
        let goes_on = reply.is_cut
            && is_answer
            && !reply.text.trim().is_empty()
            && agent.policy_on_cut_reply() == OnCutReply::Continue
            && !self.thread().is_sub_agents();
        Ok(LlmCompleteState {
            agent_hash: self.agent_hash.to_owned(),
            text: without_nul(reply.text),
            reasoning: without_nul(reply.reasoning),
            finish: if is_answer {
                FinishReason::Stop
            } else {
                FinishReason::ToolCalls
            }
            .into(),
            tool_calls,
            input_tokens: reply.usage.input_tokens,
            output_tokens: reply.usage.output_tokens,
            cached_tokens: reply.usage.cached_tokens,
            cache_write_tokens: reply.usage.cache_write_tokens,
            reasoning_tokens: reply.usage.reasoning_tokens,
            provider: agent.provider.clone(),
            is_cut: reply.is_cut,
            goes_on,
            generation: self.generation,
            model: self.model_of(agent)?,
        })
    }

    /// Waits until this call is useless, because another call of the step has begun or the turn has ended. The stream
    /// says so at the next piece. It may have forgotten the newer call, so the store decides.
    async fn superseded(&self, text: &TextWriter) {
        text.superseded().await;
        let (turns, step) = (&self.activities.turns, self.step);
        if !matches!(turns.holds_claim(step, self.generation).await, Ok(false)) {
            // The store does not say that the call is useless, so it goes on, although its text is no longer shown
            // live.
            std::future::pending::<()>().await;
        }
    }

    /// Stores the text so far of a call that was stopped from outside. The engine does not say whether the turn was
    /// cancelled, the run was reset, or the worker shuts down, and all may happen at once. So the text is stored where
    /// only the end of a cancelled turn reads it.
    /// A response that runs in the background is cancelled if the turn was.
    async fn stopped(
        &self,
        text: &TextWriter,
        running: Option<BackgroundResponse>,
    ) -> ActivityError {
        let partial = LlmCompleteState {
            agent_hash: self.agent_hash.to_owned(),
            text: without_nul(text.text_so_far(Part::Text)),
            reasoning: without_nul(text.text_so_far(Part::Reasoning)),
            finish: FinishReason::Cancelled.into(),
            generation: self.generation,
            ..LlmCompleteState::default()
        };
        let saved = self.activities.turns.save_partial(self.step, partial);
        let (saved, ()) = tokio::join!(saved, self.cancel_if_cancelled(running));
        if let Err(error) = saved {
            tracing::warn!(%error, "the text so far of a call that was stopped could not be stored");
        }
        if self.activities.stopping.has_begun() {
            // When the turn was cancelled, the engine does not try again.
            return fail::transient(
                failure::LLM_UNAVAILABLE,
                "The worker shut down; the call is made again.",
            );
        }
        ActivityError::cancelled()
    }
}

/// Replaces NUL characters: PostgreSQL cannot store them in a text.
fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}
