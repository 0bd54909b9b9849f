//! `llm_thinking_activity`: one LLM call of one step (invariant 5, paid once).
//!
//! Claim the step → call the model, streaming what it says → store `llm_complete` → tell the workflow which tools
//! to run. A step whose checkpoint is stored is answered from it.

mod calls;

use std::time::Duration;

use everturn_proto::{
    Thread,
    limits::MAX_CONTEXT_BYTES,
    turn::{AgentDefinition, LlmCompleteState, ThinkRequest, ThinkResult},
    words::{FinishReason, ToolKind, failure},
};
use everturn_store::{ContextMessage, PageLimit, StepClaim, StepKey, ToolResult};
use everturn_stream::{Part, TextWriter};
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use self::calls::plan;
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
    let attempt = &Attempt::begin(ctx);
    let claim = attempt
        .insist(|| activities.turns.claim_step(&step))
        .await?;
    let (log_id, generation) = match claim {
        StepClaim::Stored(state) => return Ok(plan(&state)),
        StepClaim::Call { log_id, generation } => (log_id, generation),
    };
    let call = ModelCall {
        activities,
        attempt,
        step: &step,
        agent_hash: &request.agent_hash,
        generation,
    };
    let agent = call.agent().await?;
    let messages = call.context(&agent).await?;
    let text = TextWriter::new(
        activities.stream.clone(),
        log_id,
        &step.message_id,
        &step.agent_execution_id,
        step.step,
        generation,
    );
    let mut emit_delta = |part: Part, piece: &str| text.push(part, piece);
    // Heartbeats are sent from here on: a source of tools may take long, and a model does.
    let limit = Duration::from_millis(u64::from(agent.llm_timeout_ms));
    let ended = attempt
        .run(&Progress::default(), limit, async {
            let request = call.model_request(&agent, messages).await?;
            let offered = request.tools.clone();
            let reply = tokio::select! {
                biased;
                reply = activities.model.complete(request, &mut emit_delta) => reply,
                () = call.superseded(&text) => return Err(fail::superseded()),
            };
            reply
                .map(|reply| (offered, reply))
                .map_err(|error| fail::from_model(&error, ctx.info().attempt))
        })
        .await;
    let (offered, reply) = match ended {
        Ended::Done(reply) => reply?,
        Ended::Stopped => return Err(call.stopped(&text).await),
        Ended::OutOfTime => return Err(fail::llm_timeout()),
    };
    let state = call.state(&agent, &offered, reply).await?;
    failpoint::reach("think.before_checkpoint").await;
    let stored = attempt
        .insist(|| activities.turns.complete_step(&step, state.clone()))
        .await?;
    failpoint::reach("think.after_checkpoint").await;
    text.finish().await;
    Ok(plan(&stored))
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
    /// The agent this turn is pinned to.
    async fn agent(&self) -> Result<AgentDefinition, ActivityError> {
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
                .map(|tool| delegate::spec(tool, &self.activities.agents)),
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

    /// The checkpoint of a reply.
    async fn state(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        reply: ModelReply,
    ) -> Result<LlmCompleteState, ActivityError> {
        let tool_calls = self.tool_calls(agent, offered, reply.tool_calls).await?;
        Ok(LlmCompleteState {
            agent_hash: self.agent_hash.to_owned(),
            text: without_nul(reply.text),
            reasoning: without_nul(reply.reasoning),
            finish: if tool_calls.is_empty() {
                FinishReason::Stop
            } else {
                FinishReason::ToolCalls
            }
            .into(),
            tool_calls,
            input_tokens: reply.input_tokens,
            output_tokens: reply.output_tokens,
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
    /// cancelled or the run was reset, so the text is stored where only the end of a cancelled turn reads it.
    async fn stopped(&self, text: &TextWriter) -> ActivityError {
        if self.activities.shutdown.is_cancelled() {
            return fail::transient(
                failure::LLM_UNAVAILABLE,
                "The worker shut down; the call is made again.",
            );
        }
        let partial = LlmCompleteState {
            agent_hash: self.agent_hash.to_owned(),
            text: without_nul(text.text_so_far(Part::Text)),
            reasoning: without_nul(text.text_so_far(Part::Reasoning)),
            finish: FinishReason::Cancelled.into(),
            generation: self.generation,
            ..LlmCompleteState::default()
        };
        if let Err(error) = self.activities.turns.save_partial(self.step, partial).await {
            tracing::warn!(%error, "the text so far of a cancelled turn could not be stored");
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
