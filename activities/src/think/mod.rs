//! `llm_thinking_activity`: one LLM call of one step (invariant 5, paid once).
//!
//! Claim the step → call the model, streaming what it says → store `llm_complete` → tell the workflow which tools
//! to run. A step whose checkpoint is stored is answered from it. When the context does not fit into the model's window,
//! the step compacts it instead, and the model thinks in the next one.
//!
//! - [`calls`]: the tool calls of a reply
//! - [`window`]: what fits, and what is compacted; [`measures`]: how many bytes a token has
//! - [`known_contexts`]: the context, and what was read of it before
//! - [`sent_files`]: the files that the context names
//! - [`compaction`]: the step that writes a summary
//! - [`budget`]: what a call may take is reserved before it is made
//! - [`background`]: a response that the provider makes in the background
//! - [`stops`]: a call that ends without a reply

mod background;
mod budget;
mod calls;
mod compaction;
mod known_contexts;
mod measures;
mod sent_files;
mod stops;
mod window;

use std::time::{Duration, Instant};

use everturn_proto::{
    LogId, Thread,
    turn::{AgentDefinition, LlmCompleteState, SentContext, ThinkRequest, ThinkResult},
    words::{FinishReason, MessageRole, OnCutReply, ToolKind, failure},
};
use everturn_store::{CompletedStep, ContextMessage, ModelContext, StepClaim, StepKey, ToolResult};
use everturn_stream::TextWriter;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use self::{
    background::Listener,
    calls::plan,
    window::{BytesPerToken, Room, Window, request_bytes, sent},
};
pub use self::{known_contexts::KnownContexts, measures::Measures};
use crate::{
    AgentActivities,
    attempt::{Attempt, Ended},
    failpoint, failure as fail,
    model::{Admission, ModelReply, ModelRequest, Parameters, Usage, signer},
    tools::{Progress, ToolSpec, builtin::read_result, delegate},
};

/// After a longer wait for a provider's limits, the claim is looked at again: the engine may have taken the attempt for dead.
const LONG_WAIT: Duration = Duration::from_secs(1);

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
    let claimed = claim(activities, attempt, &step).await?;
    let (log_id, generation, calls, has_budget, background) = match claimed {
        StepClaim::Stored(state) => return Ok(plan(&state)),
        StepClaim::Call {
            log_id,
            generation,
            calls,
            is_ahead: _,
            has_budget,
            background,
        } => (log_id, generation, calls, has_budget, background),
    };
    let call = ModelCall {
        activities,
        attempt,
        step: &step,
        agent_hash: &request.agent_hash,
        log_id: &log_id,
        generation,
        has_budget,
    };
    failpoint::reach("think.after_claim").await;
    let agent = call.agent().await?;
    call.check_here(&agent).await?;
    let text = call.text_writer(log_id.clone());
    let limit = Duration::from_millis(u64::from(agent.llm_timeout_ms));
    let mut listener = Listener::new(&call, &agent, &text, background);
    let admission = call.admission(&agent, limit, &listener).await?;
    let context = call.context().await?;
    // Heartbeats are sent from here on: a source of tools may take long, and a model does.
    let asked = call.ask(&agent, context, request.may_compact, calls, &mut listener);
    let ended = attempt.run(&Progress::default(), limit, asked).await;
    drop(admission);
    let reply = match ended {
        Ended::Done(reply) => reply?,
        Ended::Stopped => return Err(call.stopped(&listener).await),
        Ended::OutOfTime => return Err(fail::llm_timeout()),
    };
    failpoint::reach("think.before_checkpoint").await;
    let state = match reply {
        Reply::Said(said) => call.state(&agent, said).await?,
        Reply::Compacted(state) => state,
    };
    let stored = call.store(state).await?;
    failpoint::reach("think.after_checkpoint").await;
    text.finish().await;
    Ok(plan(&stored))
}

/// What a step has of its model.
enum Reply {
    /// An answer, or tools to run.
    Said(Said),
    /// The checkpoint with the summary.
    Compacted(LlmCompleteState),
}

/// What the model has said, and to what.
struct Said {
    offered: Vec<ToolSpec>,
    sent: SentContext,
    reply: ModelReply,
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
    log_id: &'a LogId,
    generation: u32,
    /// The turn has a budget, of which the call reserves a part.
    has_budget: bool,
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

    /// Waits for the limits of the provider. The wait does not count as time of the call: when so much of the attempt is
    /// over that the call would have less than its limit, the claim is given back, and the next attempt waits on. A response
    /// that the provider makes already is read at once: it was let through, and is not kept for long. If it comes to nothing,
    /// the listener waits.
    async fn admission(
        &self,
        agent: &AgentDefinition,
        limit: Duration,
        listener: &Listener<'_>,
    ) -> Result<Admission, ActivityError> {
        if listener.response_id().is_some() {
            return Ok(Admission::default());
        }
        let (turns, begun) = (&self.activities.turns, Instant::now());
        let may_wait = self.attempt.time_left().saturating_sub(limit);
        let admission = self.activities.model.admit(&agent.provider);
        let nothing = Progress::default();
        match self.attempt.run(&nothing, may_wait, admission).await {
            // Another attempt may have begun meanwhile. Both would be paid for.
            Ended::Done(_)
                if begun.elapsed() > LONG_WAIT
                    && matches!(
                        turns.holds_claim(self.step, self.generation).await,
                        Ok(false)
                    ) =>
            {
                Err(fail::superseded())
            }
            Ended::Done(admission) => Ok(admission),
            Ended::Stopped => Err(self.stopped(listener).await),
            Ended::OutOfTime => {
                self.attempt
                    .insist(|| turns.release_step(self.step, self.generation))
                    .await?;
                Err(fail::waited_for_provider(&agent.provider))
            }
        }
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

    /// Asks the model, or has it compact the context when that does not fit.
    async fn ask(
        &self,
        agent: &AgentDefinition,
        context: ModelContext,
        may_compact: bool,
        calls: u32,
        listener: &mut Listener<'_>,
    ) -> Result<Reply, ActivityError> {
        let id = &self.step.agent_execution_id;
        let measures = &self.activities.measures;
        let window = Window::of(agent, measures.of(id));
        let has_more = context.has_more;
        let mut request = self.model_request(agent, context.messages, window).await?;
        let bytes = request_bytes(&request);
        request.idempotency_key = self.idempotency_key();
        request.attached = listener.response_id();
        // A provider that makes the response already has found room for it.
        let is_full = request.attached.is_none() && window.is_full(bytes);
        if may_compact && (has_more || is_full) {
            let part = window.old_part(&request.messages, id, Room::Left { has_more });
            if let Some(part) = part {
                let compacted = self.compact(agent, request, part, window, calls).await;
                return compacted.map(Reply::Compacted);
            }
        }
        if has_more {
            return Err(fail::too_long());
        }
        // What the call that made the response has reserved is still for it.
        if request.attached.is_none() {
            self.reserve(agent, &request, window.tokens(bytes)).await?;
        }
        let (offered, sent) = (request.tools.clone(), sent(&request));
        let text = listener.text;
        let reply = tokio::select! {
            biased;
            reply = self.activities.model.complete(request, listener) => reply,
            () = self.superseded(text) => return Err(fail::superseded()),
        };
        if let Err(error) = &reply {
            self.give_back(error, Some(text)).await;
        }
        match reply {
            Ok(reply) => {
                if let Some(measured) = BytesPerToken::measured(bytes, reply.usage) {
                    measures.note(id, measured);
                }
                Ok(Reply::Said(Said {
                    offered,
                    sent,
                    reply,
                }))
            }
            // The provider knows the window better than the configuration does.
            Err(error) if may_compact && error.code == failure::LLM_CONTEXT_TOO_LONG => {
                let context = self.context().await?;
                let request = self.model_request(agent, context.messages, window).await?;
                let part = window.old_part(&request.messages, id, Room::Refused { bytes });
                let part = part.ok_or_else(|| fail::from_model(&error, calls))?;
                let compacted = self.compact(agent, request, part, window, calls).await;
                compacted.map(Reply::Compacted)
            }
            Err(error) => Err(listener.refused(&error, calls)),
        }
    }

    /// The request, with the tools of the agent that there are now.
    async fn model_request(
        &self,
        agent: &AgentDefinition,
        mut messages: Vec<ContextMessage>,
        window: Window,
    ) -> Result<ModelRequest, ActivityError> {
        let has_shortened = window.shorten_results(&mut messages);
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
        let is_summary = |message: &ContextMessage| message.role == MessageRole::Summary;
        let mut results = messages.iter().flat_map(|message| &message.tool_results);
        // What is offered once is offered on, because a request that begins otherwise is not in the provider's cache.
        if has_shortened
            || messages.first().is_some_and(is_summary)
            || results.any(ToolResult::is_cut)
        {
            tools.extend(self.activities.tools.spec(read_result::NAME));
        }
        Ok(ModelRequest {
            provider: agent.provider.clone(),
            model: self.model_of(agent)?,
            files: self.files(agent, &messages).await?,
            instructions: Some(agent.instructions.clone()).filter(|text| !text.trim().is_empty()),
            messages,
            tools,
            max_output_tokens: agent.max_output_tokens,
            parameters: Parameters::of(agent),
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
    async fn store(&self, mut state: LlmCompleteState) -> Result<LlmCompleteState, ActivityError> {
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
        said: Said,
    ) -> Result<LlmCompleteState, ActivityError> {
        let Said {
            offered,
            sent,
            reply,
        } = said;
        let mut tool_calls = self.tool_calls(agent, &offered, reply.tool_calls).await?;
        calls::sign(
            &mut tool_calls,
            &signer(&agent.provider, &self.model_of(agent)?),
        );
        let is_answer = tool_calls.is_empty();
        // A sub-agent's answer is that of its last step alone. Of a reply that is nothing but reasoning, nothing goes on.
        let goes_on = reply.is_cut
            && is_answer
            && !reply.text.trim().is_empty()
            && agent.policy_on_cut_reply() == OnCutReply::Continue
            && !self.thread().is_sub_agents();
        Ok(LlmCompleteState {
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
        })
    }

    /// The part of a checkpoint that says who has answered, and what it took.
    fn answered(
        &self,
        agent: &AgentDefinition,
        usage: Usage,
    ) -> Result<LlmCompleteState, ActivityError> {
        Ok(LlmCompleteState {
            agent_hash: self.agent_hash.to_owned(),
            generation: self.generation,
            provider: agent.provider.clone(),
            model: self.model_of(agent)?,
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

/// Replaces NUL characters: PostgreSQL cannot store them in a text.
fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}
