//! Runs each activity within a span. Inside the activity, the span is the current span.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use everturn_proto::{
    activities::declared,
    turn::{LoadTurnRequest, RecordRemoteToolRequest, RunToolRequest, ThinkRequest},
};
use everturn_store::TraceKey;
use everturn_telemetry::trace::SCOPE;
use opentelemetry::{
    Context, KeyValue,
    context::FutureExt,
    global::{self, BoxedTracer},
    trace::{SpanBuilder, SpanKind, TraceContextExt, Tracer},
};
use temporalio_common::{ActivityDefinition, ActivityError};
use temporalio_sdk::interceptors::{
    ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next,
};

use super::{failed::failed, ids, known::KnownTraces};

/// Puts activities into the traces of turns. The default does nothing.
#[derive(Clone, Default)]
pub struct TracedActivities {
    known: Option<Arc<KnownTraces>>,
}

impl TracedActivities {
    pub(super) fn new(known: Arc<KnownTraces>) -> Self {
        Self { known: Some(known) }
    }
}

impl ActivityInboundInterceptor for TracedActivities {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        let work = self.known.as_ref().zip(Work::of(&input));
        let Some((known, work)) = work else {
            return next.run(input);
        };
        Box::pin(async move {
            let Some(context) = work.context(known).await else {
                return next.run(input).await;
            };
            let result = next.run(input).with_context(context.clone()).await;
            if let Err(error) = &result {
                context.span().set_status(failed(why(error)));
            }
            context.span().end();
            result
        })
    }
}

/// The kinds of activities for a trace.
enum Work {
    /// The activity begins a turn.
    BeginTurn(TraceKey),
    /// The activity is a part of an agent execution. It has no span of its own, because each LLM call has a span.
    OfAgent(TraceKey),
    /// The activity runs a tool.
    RunTool {
        of: TraceKey,
        execution_id: String,
        attempt: u32,
    },
    /// The activity claims a tool execution for a remote worker. The remote worker's spans belong under the span of
    /// the tool execution.
    ClaimRemote { of: TraceKey, execution_id: String },
    /// The activity records the end of a tool execution on a remote worker, which took `took`.
    RecordRemote {
        of: TraceKey,
        execution_id: String,
        took: Duration,
    },
}

impl Work {
    fn of(input: &ExecuteActivityInput) -> Option<Self> {
        if let Some(request) = input.args_ref::<ThinkRequest>() {
            let of = TraceKey::of(&request.conversation_id, &request.agent_execution_id);
            return Some(Self::OfAgent(of));
        }
        if let Some(request) = input.args_ref::<LoadTurnRequest>() {
            let conversation_id = &request.conversation_id;
            return Some(match &request.delegation {
                Some(call) => {
                    Self::OfAgent(TraceKey::of(conversation_id, &call.parent_execution_id))
                }
                None => Self::BeginTurn(TraceKey::of(conversation_id, &request.agent_execution_id)),
            });
        }
        if let Some(request) = input.args_ref::<RecordRemoteToolRequest>() {
            let tool = request.tool.as_ref()?;
            return Some(Self::RecordRemote {
                of: TraceKey::of(&tool.conversation_id, &tool.agent_execution_id),
                execution_id: tool.execution_id.clone(),
                took: Duration::from_millis(u64::from(request.duration_ms)),
            });
        }
        let request = input.args_ref::<RunToolRequest>()?;
        let of = TraceKey::of(&request.conversation_id, &request.agent_execution_id);
        let execution_id = request.execution_id.clone();
        let info = input.activity_info();
        Some(if info.activity_type == declared::ClaimRemoteTool.name() {
            Self::ClaimRemote { of, execution_id }
        } else {
            Self::RunTool {
                of,
                execution_id,
                attempt: info.attempt,
            }
        })
    }

    /// Returns the context in which the activity runs, or `None` when its turn has no trace.
    async fn context(self, known: &KnownTraces) -> Option<Context> {
        match self {
            Self::OfAgent(of) => Some(known.of(&of).await?.within()),
            Self::BeginTurn(of) => Some(match known.of(&of).await {
                Some(trace) => trace.within_span(trace.above.span_id()),
                None => root(),
            }),
            Self::ClaimRemote { of, execution_id } => {
                let span = ids::span_of(&of.conversation_id, &execution_id);
                Some(known.of(&of).await?.within_span(span))
            }
            Self::RunTool {
                of,
                execution_id,
                attempt,
            } => {
                let above = known.of(&of).await?.within();
                let attempt = KeyValue::new("everturn.attempt", i64::from(attempt));
                let span = tool_span(&of, execution_id).chain([attempt]);
                Some(begun(builder(span), &above))
            }
            Self::RecordRemote {
                of,
                execution_id,
                took,
            } => {
                let above = known.of(&of).await?.within();
                let id = ids::span_of(&of.conversation_id, &execution_id);
                let builder = builder(tool_span(&of, execution_id));
                let start = SystemTime::now().checked_sub(took)?;
                Some(ids::with_id(id, || {
                    begun(builder.with_start_time(start), &above)
                }))
            }
        }
    }
}

/// Returns why an attempt failed.
fn why(error: &ActivityError) -> String {
    match error {
        ActivityError::Application(failure) => failure.to_string(),
        _ => "cancelled".to_owned(),
    }
}

fn tracer() -> BoxedTracer {
    global::tracer(SCOPE)
}

fn tool_span(of: &TraceKey, execution_id: String) -> impl Iterator<Item = KeyValue> {
    [
        KeyValue::new("gen_ai.operation.name", "execute_tool"),
        KeyValue::new("gen_ai.conversation.id", of.conversation_id.clone()),
        KeyValue::new("everturn.tool_execution.id", execution_id),
    ]
    .into_iter()
}

/// Returns the builder of a tool's span. The claim of the tool execution adds the tool's name later.
fn builder(attributes: impl Iterator<Item = KeyValue>) -> SpanBuilder {
    SpanBuilder::from_name("execute_tool")
        .with_kind(SpanKind::Internal)
        .with_attributes(attributes)
}

/// Begins a span under the span of the context.
fn begun(builder: SpanBuilder, above: &Context) -> Context {
    let span = tracer().build_with_context(builder, above);
    above.with_span(span)
}

/// Begins the root span of a turn whose gateway exports no traces.
fn root() -> Context {
    let builder = SpanBuilder::from_name("begin_turn").with_kind(SpanKind::Server);
    begun(builder, &Context::new())
}
