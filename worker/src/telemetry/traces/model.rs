//! Wraps the client of models, and makes a span for each call.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_models::{
    Admission, Arrival, Later, ModelClient, ModelError, ModelReply, ModelRequest, ReplyListener,
    ToolRules,
};
use everturn_stream::Part;
use everturn_telemetry::trace::SCOPE;
use opentelemetry::{
    Context, KeyValue, StringValue, Value,
    context::FutureExt,
    global,
    trace::{SpanKind, Status, TraceContextExt, Tracer},
};

use super::{content::Content, failed::failed};

/// A client of models that makes spans according to the conventions for GenAI clients.
pub(super) struct TracedModel {
    client: Arc<dyn ModelClient>,
    content: Content,
}

impl TracedModel {
    pub(super) fn new(client: Arc<dyn ModelClient>, content: Content) -> Self {
        Self { client, content }
    }

    fn begun(&self, request: &ModelRequest) -> Context {
        let tracer = global::tracer(SCOPE);
        let above = Context::current();
        let limit = request.max_output_tokens;
        let limit = limit.map(|most| KeyValue::new("gen_ai.request.max_tokens", i64::from(most)));
        let known = [
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", request.provider.clone()),
            KeyValue::new("gen_ai.request.model", request.model.clone()),
        ];
        let attributes = known.into_iter().chain(limit);
        let span = tracer
            .span_builder(format!("chat {}", request.model))
            .with_kind(SpanKind::Client)
            .with_attributes(attributes.chain(self.content.request(request)))
            .start_with_context(&tracer, &above);
        above.with_span(span)
    }

    fn answered(&self, context: &Context, reply: &ModelReply) {
        let finish = match reply {
            ModelReply { is_cut: true, .. } => "length",
            reply if reply.tool_calls.is_empty() => "stop",
            _ => "tool_calls",
        };
        let span = context.span();
        span.set_attributes([
            KeyValue::new(
                "gen_ai.usage.input_tokens",
                i64::from(reply.usage.input_tokens),
            ),
            KeyValue::new(
                "gen_ai.usage.output_tokens",
                i64::from(reply.usage.output_tokens),
            ),
            KeyValue::new(
                "gen_ai.response.finish_reasons",
                Value::Array(vec![StringValue::from(finish)].into()),
            ),
        ]);
        span.set_attributes(self.content.reply(reply, finish));
        span.set_status(Status::Ok);
    }
}

/// The span of a call in flight. A call that is dropped before its end was cancelled with its turn, ran into its
/// time-out, or lost its worker.
struct Call {
    context: Context,
    has_ended: bool,
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.has_ended {
            self.context.span().set_status(failed("dropped"));
        }
        self.context.span().end();
    }
}

/// Adds an event to the span at the first piece of a reply.
struct Noted<'a> {
    listener: &'a mut dyn ReplyListener,
    context: Context,
    has_begun: bool,
}

#[async_trait]
impl ReplyListener for Noted<'_> {
    async fn accepted(&mut self, response_id: &str) -> Result<(), ModelError> {
        self.listener.accepted(response_id).await
    }

    async fn made_again(&mut self) -> Result<(), ModelError> {
        self.listener.made_again().await
    }

    fn delta(&mut self, part: Part, piece: &str) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.context.span().add_event("first_delta", Vec::new());
        }
        self.listener.delta(part, piece);
    }
}

#[async_trait]
impl ModelClient for TracedModel {
    fn has_provider(&self, provider: &str) -> bool {
        self.client.has_provider(provider)
    }

    fn tool_rules(&self, provider: &str, model: &str) -> ToolRules {
        self.client.tool_rules(provider, model)
    }

    async fn admit(&self, provider: &str, arrival: &Arrival) -> Result<Admission, Later> {
        self.client.admit(provider, arrival).await
    }

    async fn complete(
        &self,
        request: ModelRequest,
        listener: &mut dyn ReplyListener,
    ) -> Result<ModelReply, ModelError> {
        let mut call = Call {
            context: self.begun(&request),
            has_ended: false,
        };
        let context = call.context.clone();
        let mut noted = Noted {
            listener,
            context,
            has_begun: false,
        };
        let reply = self.client.complete(request, &mut noted);
        let reply = reply.with_context(call.context.clone()).await;
        call.has_ended = true;
        match &reply {
            Ok(reply) => self.answered(&call.context, reply),
            Err(error) => {
                let span = call.context.span();
                span.set_attribute(KeyValue::new("error.type", String::from(&error.code)));
                span.set_status(failed(error.to_string()));
            }
        }
        reply
    }

    async fn cancel(&self, provider: &str, response_id: &str) -> Result<(), ModelError> {
        self.client.cancel(provider, response_id).await
    }
}
