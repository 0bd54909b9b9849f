//! Makes the spans of agents. The worker that saves the end of an agent execution makes its span. The data of the tools
//! is added to the tools' spans.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use everturn_proto::{
    Thread,
    turn::SaveRequest,
    words::{AgentExecutionStatus, ToolStatus},
};
use everturn_store::{
    AgentEnd, BegunTurn, Saved, ToolClaim, ToolKey, ToolRecord, TraceKey, TurnObserver,
};
use everturn_telemetry::trace::SCOPE;
use opentelemetry::{
    Context, KeyValue, global,
    trace::{Span, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer},
};

use super::{content::Content, failed::failed, ids, known::KnownTraces};

/// Makes the spans of turns.
pub(super) struct TracedTurns {
    known: Arc<KnownTraces>,
    content: Content,
}

impl TracedTurns {
    pub(super) fn new(known: Arc<KnownTraces>, content: Content) -> Self {
        Self { known, content }
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
    fn describe_end(&self, record: &ToolRecord) {
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
impl TurnObserver for TracedTurns {
    async fn turn_begun(&self, key: &TraceKey, begun: &BegunTurn) {
        self.begun(key, begun).await;
    }

    async fn sub_agent_begun(&self, key: &TraceKey, begun: &BegunTurn) {
        self.begun(key, begun).await;
    }

    fn tool_claimed(&self, _: &ToolKey, claim: &ToolClaim) {
        if let ToolClaim::Run { record, .. } = claim {
            self.describe(record);
        }
    }

    fn tool_ended(&self, _: &ToolKey, record: &ToolRecord) {
        self.describe_end(record);
    }

    async fn saved(&self, request: &SaveRequest, saved: &Saved, _: Duration) {
        if let Some(end) = &saved.ended {
            self.ended(request, end).await;
        }
    }
}
