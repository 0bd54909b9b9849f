//! `llm_thinking_activity`: one LLM call of one step, paid once (invariant 5).
//!
//! Claim the step → call the model, streaming what it says → store `llm_complete` → tell the workflow which tools
//! to run. A step whose checkpoint is stored is answered from it.

use everturn_proto::{
    Thread, ids,
    turn::{AgentDefinition, LlmCompleteState, PlannedCall, ThinkRequest, ThinkResult, ToolCall},
    words::{FinishReason, ToolKind, failure},
};
use everturn_store::{ContextMessage, StepClaim, StepKey};
use everturn_stream::{Part, TextWriter};
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::{
    AgentActivities, approval,
    attempt::{self, Ended},
    failpoint, failure as fail,
    model::{ModelReply, ModelRequest, ModelToolCall},
    tools::{Effect, Progress, ToolSpec, delegate, names},
};

/// Time-out of a tool the agent does not have: it only says so.
const UNKNOWN_TOOL_TIMEOUT_MS: u32 = 10_000;

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
    };
    let generation = match attempt::insist(ctx, || activities.turns.claim_step(&step)).await? {
        StepClaim::Stored(state) => return Ok(plan(&state)),
        StepClaim::Call { generation } => generation,
    };
    let call = Call {
        activities,
        ctx,
        step: &step,
        agent_hash: &request.agent_hash,
        generation,
    };
    let agent = call.agent().await?;
    let messages = call.context(&agent).await?;
    let text = TextWriter::new(
        activities.stream.clone(),
        &step.conversation_id,
        &step.message_id,
        &step.agent_execution_id,
        step.step,
        generation,
    );
    let mut emit_delta = |part: Part, piece: &str| text.push(part, piece);
    // With heartbeats from here on: a source of tools may take its time, and a model does.
    let ended = attempt::run(ctx, &Progress::default(), async {
        let request = call.model_request(&agent, messages).await?;
        let offered = request.tools.clone();
        let reply = activities.model.complete(request, &mut emit_delta).await;
        reply
            .map(|reply| (offered, reply))
            .map_err(|error| fail::from_model(&error))
    })
    .await;
    let (offered, reply) = match ended {
        Ended::Done(reply) => reply?,
        Ended::Stopped => return Err(call.stopped(&text).await),
        Ended::OutOfTime => {
            return Err(fail::permanent(
                failure::LLM_TIMEOUT,
                "The model did not finish within `llm_timeout`.",
            ));
        }
    };
    let state = call.state(&agent, &offered, reply).await?;
    failpoint::reach("think.before_checkpoint").await;
    let stored =
        attempt::insist(ctx, || activities.turns.complete_step(&step, state.clone())).await?;
    failpoint::reach("think.after_checkpoint").await;
    text.finish().await;
    Ok(plan(&stored))
}

/// A claimed call.
struct Call<'a> {
    activities: &'a AgentActivities,
    ctx: &'a ActivityContext,
    step: &'a StepKey,
    agent_hash: &'a str,
    generation: u32,
}

impl Call<'_> {
    /// The agent this turn is pinned to.
    async fn agent(&self) -> Result<AgentDefinition, ActivityError> {
        let agent = attempt::insist(self.ctx, || {
            self.activities.turns.agent_definition(self.agent_hash)
        })
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
        let (conversation, limit) = (&self.step.conversation_id, agent.max_context_messages);
        let thread = self.thread();
        attempt::insist(self.ctx, || {
            self.activities.turns.context(conversation, &thread, limit)
        })
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
        Ok(ModelRequest {
            provider: agent.provider.clone(),
            model: agent.model.clone(),
            instructions: agent.instructions.clone(),
            messages,
            tools,
            max_output_tokens: agent.max_output_tokens,
        })
    }

    /// The checkpoint of a reply. Postgres cannot hold NUL in text; a model has no business sending it.
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
            model: agent.model.clone(),
        })
    }

    /// Names each call (C1) and makes its call id unique in the conversation (D1).
    async fn tool_calls(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        calls: Vec<ModelToolCall>,
    ) -> Result<Vec<ToolCall>, ActivityError> {
        let given: Vec<_> = calls
            .iter()
            .map(|call| call.call_id.clone())
            .filter(|id| !id.is_empty())
            .collect();
        let mut used = Vec::new();
        if !given.is_empty() {
            let conversation = &self.step.conversation_id;
            used = attempt::insist(self.ctx, || {
                self.activities.turns.used_call_ids(conversation, &given)
            })
            .await?;
        }
        let mut planned = Vec::with_capacity(calls.len());
        for (index, call) in calls.into_iter().enumerate() {
            let execution_id = ids::tool_execution_id(
                &self.step.message_id,
                &self.step.agent_execution_id,
                self.step.step,
                index,
            );
            // Sub-agents think at the same time: two might be given the same id before either is stored.
            let is_usable = !self.thread().is_sub_agents()
                && ids::is_valid(&call.call_id)
                && !used.contains(&call.call_id);
            let call_id = if is_usable {
                call.call_id
            } else {
                ids::call_id(&execution_id)
            };
            used.push(call_id.clone());
            let tool = names::listed(&agent.tools, &call.tool_name);
            let spec = offered.iter().find(|spec| spec.name == call.tool_name);
            // A tool that was offered in an earlier step may have gone: whoever runs it finds out, at most once.
            let effect = tool.map(|_| spec.map_or(Effect::Once, |spec| spec.effect.clone()));
            let tool_name = bounded_name(call.tool_name);
            let tool_input = call.arguments.made_storable().unwrap_or(call.arguments);
            planned.push(ToolCall {
                execution_id,
                call_id,
                kind: tool.map(|tool| tool.kind.clone()).unwrap_or_default(),
                approval_timeout_s: approval::timeout_s(tool, &tool_input),
                input_hash: ids::input_hash(&tool_name, tool_input.as_str()),
                tool_name,
                tool_input: Some(tool_input),
                timeout_ms: tool.map_or(UNKNOWN_TOOL_TIMEOUT_MS, |tool| tool.timeout_ms),
                signatures: call.signatures.into_iter().map(without_nul).collect(),
                // Left empty when the agent has no such tool: `ToolCall::names_a_tool`.
                effect: effect.map(String::from).unwrap_or_default(),
                remote: tool.and_then(|tool| tool.remote.clone()),
            });
        }
        self.drop_granted(&mut planned).await?;
        Ok(planned)
    }

    /// A person may have said "do not ask again" for a tool in this conversation.
    async fn drop_granted(&self, planned: &mut [ToolCall]) -> Result<(), ActivityError> {
        let asking = planned
            .iter()
            .filter(|call| call.approval_timeout_s.is_some());
        let names: Vec<_> = asking.map(|call| call.tool_name.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let conversation = &self.step.conversation_id;
        let granted = attempt::insist(self.ctx, || {
            self.activities.turns.granted_tools(conversation, &names)
        })
        .await?;
        for call in planned
            .iter_mut()
            .filter(|call| granted.contains(&call.tool_name))
        {
            call.approval_timeout_s = None;
        }
        Ok(())
    }

    /// The call was stopped from outside. Whether the turn was cancelled, the run was reset or the worker shuts
    /// down is not told; so the text so far is stored where only a cancelled end reads it.
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

/// What the workflow must know of a step.
fn plan(state: &LlmCompleteState) -> ThinkResult {
    let tool_calls = state.tool_calls.iter().map(|call| PlannedCall {
        execution_id: call.execution_id.clone(),
        tool_name: call.tool_name.clone(),
        timeout_ms: call.timeout_ms,
        kind: call.kind.clone(),
        approval_timeout_s: call.approval_timeout_s,
        // Only what an approval is bound to need be in the history.
        input_hash: if call.approval_timeout_s.is_some() {
            call.input_hash.clone()
        } else {
            String::new()
        },
        remote: call.remote.clone(),
    });
    ThinkResult {
        finish: state.finish.clone(),
        tool_calls: tool_calls.collect(),
    }
}

/// The name travels through the workflow, as a summary of at most 400 bytes; real ones have at most 64.
fn bounded_name(name: String) -> String {
    const MAX_CHARS: usize = 64;
    if name.chars().count() <= MAX_CHARS {
        without_nul(name)
    } else {
        without_nul(name.chars().take(MAX_CHARS).collect())
    }
}

fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}
