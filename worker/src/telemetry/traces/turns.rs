//! Wraps the store of turns, and makes the spans of agents. The worker that saves the end of an agent execution makes
//! its span. The wrapper also adds the tools' names to their spans.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use async_trait::async_trait;
use everturn_proto::{
    Thread, ids as stable,
    turn::{AgentDefinition, LlmCompleteState, SaveRequest, ToolCall},
    words::{AgentExecutionStatus, ToolStatus},
};
use everturn_store::{
    Access, AgentEnd, BackgroundResponse, BeginTurn, BegunTurn, CompletedStep, DefinedTool,
    Estimate, FailedCall, ModelContext, NotedFailure, OnUnknownAgent, PageLimit, ReadBefore,
    Reservation, Saved, StepClaim, StepKey, StoreError, ToolClaim, ToolEnd, ToolKey, ToolRecord,
    TraceKey, TurnStart, TurnStore, WorkerId,
};
use everturn_telemetry::trace::SCOPE;
use opentelemetry::{
    Context, KeyValue, global,
    trace::{Span, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer},
};

use super::{content::Content, failed::failed, ids, known::KnownTraces};

/// A store of turns that makes spans.
pub(super) struct TracedTurns {
    store: Arc<dyn TurnStore>,
    known: Arc<KnownTraces>,
    content: Content,
}

impl TracedTurns {
    pub(super) fn new(
        store: Arc<dyn TurnStore>,
        known: Arc<KnownTraces>,
        content: Content,
    ) -> Self {
        Self {
            store,
            known,
            content,
        }
    }

    async fn begun(&self, key: &TraceKey, begun: &BegunTurn) {
        if let Some(agent) = &begun.agent {
            self.known.begin(key, &agent.definition.name).await;
        }
    }

    /// Makes the span of an ended agent execution.
    async fn ended(&self, request: &SaveRequest, end: &AgentEnd) {
        let key = TraceKey::of(&request.conversation_id, &request.agent_execution_id);
        let Some(trace) = self.known.of(&key).await else {
            return;
        };
        let above = Context::new().with_remote_span_context(trace.above.clone());
        let agent = trace.agent.clone().unwrap_or_default();
        let builder = SpanBuilder::from_name(format!("invoke_agent {agent}"))
            .with_kind(SpanKind::Internal)
            .with_start_time(trace.begun_at.unwrap_or_else(SystemTime::now))
            .with_attributes(attributes(request, end, agent));
        let tracer = global::tracer(SCOPE);
        let mut span = ids::with_id(trace.own, || tracer.build_with_context(builder, &above));
        match (&end.error_code, &end.status) {
            (Some(code), _) => {
                span.set_attribute(KeyValue::new("error.type", code.clone()));
                span.set_status(failed(code.clone()));
            }
            (None, AgentExecutionStatus::Completed) => span.set_status(Status::Ok),
            (None, _) => {}
        }
        span.end();
    }

    /// Adds the data of the tool's record to the tool's span.
    fn describe(&self, record: &ToolRecord) {
        let call = &record.call;
        Context::map_current(|context| {
            let span = context.span();
            span.update_name(format!("execute_tool {}", call.tool_name));
            span.set_attributes([
                KeyValue::new("gen_ai.tool.name", call.tool_name.clone()),
                KeyValue::new("gen_ai.tool.call.id", call.call_id.clone()),
                KeyValue::new("everturn.tool.effect", call.effect.clone()),
            ]);
            let input = || {
                call.tool_input
                    .as_ref()
                    .map(|input| input.as_str().to_owned())
            };
            let arguments = self
                .content
                .text("gen_ai.tool.call.arguments", || input().unwrap_or_default());
            span.set_attributes(arguments);
        });
    }

    /// Adds the end of the tool execution to the tool's span.
    fn tool_ended(&self, record: &ToolRecord) {
        self.describe(record);
        Context::map_current(|context| {
            let span = context.span();
            let status = record.status.as_str();
            span.set_attribute(KeyValue::new("everturn.tool.status", status.to_owned()));
            if record.status == ToolStatus::Completed {
                span.set_status(Status::Ok);
            } else {
                span.set_attribute(KeyValue::new("error.type", status.to_owned()));
                span.set_status(failed(status));
            }
            let result = record.end.as_ref().and_then(|end| {
                self.content
                    .text("gen_ai.tool.call.result", || end.result.as_str().to_owned())
            });
            span.set_attributes(result);
        });
    }
}

fn attributes(request: &SaveRequest, end: &AgentEnd, agent: String) -> Vec<KeyValue> {
    let id = &request.agent_execution_id;
    let thread = Thread::of(&request.conversation_id, &request.message_id, id);
    vec![
        KeyValue::new("gen_ai.operation.name", "invoke_agent"),
        KeyValue::new("gen_ai.agent.name", agent),
        KeyValue::new("gen_ai.conversation.id", request.conversation_id.clone()),
        KeyValue::new("gen_ai.usage.input_tokens", i64::from(end.input_tokens)),
        KeyValue::new("gen_ai.usage.output_tokens", i64::from(end.output_tokens)),
        KeyValue::new("everturn.message.id", request.message_id.clone()),
        KeyValue::new("everturn.agent_execution.id", id.clone()),
        KeyValue::new("everturn.is_sub_agent", thread.is_sub_agents()),
        KeyValue::new("everturn.llm_calls", i64::from(end.calls)),
        KeyValue::new("everturn.status", end.status.as_str().to_owned()),
    ]
}

#[async_trait]
impl TurnStore for TracedTurns {
    async fn begin_turn(&self, begin: BeginTurn) -> Result<TurnStart, StoreError> {
        let key = TraceKey::of(&begin.conversation_id, &begin.agent_execution_id);
        let start = self.store.begin_turn(begin).await?;
        if let TurnStart::Begun(begun) = &start {
            self.begun(&key, begun).await;
        }
        Ok(start)
    }

    async fn begin_sub_agent(
        &self,
        call: &ToolKey,
        agents: &BTreeMap<String, AgentDefinition>,
        on_unknown: OnUnknownAgent,
    ) -> Result<BegunTurn, StoreError> {
        let begun = self.store.begin_sub_agent(call, agents, on_unknown).await?;
        let (conversation_id, call_id) = (&call.conversation_id, &call.execution_id);
        let sub_agent = stable::sub_agent_execution_id(conversation_id, call_id);
        let key = TraceKey::of(conversation_id, &sub_agent);
        self.begun(&key, &begun).await;
        Ok(begun)
    }

    async fn agent_of(&self, conversation_id: &str) -> Result<Option<String>, StoreError> {
        self.store.agent_of(conversation_id).await
    }

    async fn owner_of(&self, conversation_id: &str) -> Result<Option<Access>, StoreError> {
        self.store.owner_of(conversation_id).await
    }

    async fn message_texts(
        &self,
        conversation_id: &str,
        message_ids: &[String],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let texts = self.store.message_texts(conversation_id, message_ids);
        texts.await
    }

    async fn begin_after_turn(
        &self,
        step: &StepKey,
        calls: &[ToolCall],
    ) -> Result<bool, StoreError> {
        self.store.begin_after_turn(step, calls).await
    }

    async fn agent_definition(&self, hash: &str) -> Result<Option<AgentDefinition>, StoreError> {
        self.store.agent_definition(hash).await
    }

    async fn context(
        &self,
        conversation_id: &str,
        thread: &Thread,
        limit: PageLimit,
        read: Option<ReadBefore>,
    ) -> Result<ModelContext, StoreError> {
        self.store
            .context(conversation_id, thread, limit, read)
            .await
    }

    async fn granted_tools(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>, StoreError> {
        self.store.granted_tools(conversation_id, tool_names).await
    }

    async fn used_definitions(
        &self,
        conversation_id: &str,
        tool_names: &[String],
    ) -> Result<Vec<DefinedTool>, StoreError> {
        self.store
            .used_definitions(conversation_id, tool_names)
            .await
    }

    async fn claim_step(
        &self,
        step: &StepKey,
        worker: Option<&WorkerId>,
    ) -> Result<StepClaim, StoreError> {
        self.store.claim_step(step, worker).await
    }

    async fn release_step(&self, step: &StepKey, generation: u32) -> Result<(), StoreError> {
        self.store.release_step(step, generation).await
    }

    async fn reserve_call(
        &self,
        step: &StepKey,
        generation: u32,
        call: Estimate,
        other_model: Option<&str>,
    ) -> Result<Reservation, StoreError> {
        let store = &self.store;
        store
            .reserve_call(step, generation, call, other_model)
            .await
    }

    async fn release_call(&self, step: &StepKey, generation: u32) -> Result<(), StoreError> {
        self.store.release_call(step, generation).await
    }

    async fn note_response(
        &self,
        step: &StepKey,
        generation: u32,
        response: &BackgroundResponse,
    ) -> Result<bool, StoreError> {
        self.store.note_response(step, generation, response).await
    }

    async fn note_failed_call(
        &self,
        step: &StepKey,
        generation: u32,
        failed: &FailedCall,
    ) -> Result<NotedFailure, StoreError> {
        self.store.note_failed_call(step, generation, failed).await
    }

    async fn holds_claim(&self, step: &StepKey, generation: u32) -> Result<bool, StoreError> {
        self.store.holds_claim(step, generation).await
    }

    async fn complete_step(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<CompletedStep, StoreError> {
        self.store.complete_step(step, state).await
    }

    async fn save_partial(
        &self,
        step: &StepKey,
        state: LlmCompleteState,
    ) -> Result<(), StoreError> {
        self.store.save_partial(step, state).await
    }

    async fn claim_tool(&self, key: &ToolKey, claimant: &str) -> Result<ToolClaim, StoreError> {
        let claim = self.store.claim_tool(key, claimant).await?;
        if let ToolClaim::Run { record, .. } = &claim {
            self.describe(record);
        }
        Ok(claim)
    }

    async fn release_tool(&self, key: &ToolKey, claimant: &str) -> Result<(), StoreError> {
        self.store.release_tool(key, claimant).await
    }

    async fn finish_tool(&self, key: &ToolKey, end: ToolEnd) -> Result<ToolRecord, StoreError> {
        let record = self.store.finish_tool(key, end).await?;
        self.tool_ended(&record);
        Ok(record)
    }

    async fn save(&self, request: &SaveRequest) -> Result<Saved, StoreError> {
        let saved = self.store.save(request).await?;
        if let Some(end) = &saved.ended {
            self.ended(request, end).await;
        }
        Ok(saved)
    }
}
