//! Wraps the client of models, and records metrics of its calls.

use std::{borrow::Cow, sync::Arc, time::Instant};

use async_trait::async_trait;
use everturn_models::{
    Admission, Arrival, Later, ModelClient, ModelError, ModelReply, ModelRequest, ReplyListener,
    ToolRules, Usage,
};
use everturn_proto::turn::Prices;
use everturn_stream::Part;
use everturn_telemetry::turns::Model;

/// A client of models that records metrics.
pub(super) struct MeasuredModel {
    client: Arc<dyn ModelClient>,
}

impl MeasuredModel {
    pub(super) fn new(client: Arc<dyn ModelClient>) -> Self {
        Self { client }
    }
}

/// A call in flight. A call that is dropped before its end was cancelled with its turn, ran into its time-out, or lost
/// its worker.
struct Call {
    agent: String,
    model: Model,
    begun: Instant,
    result: Cow<'static, str>,
    /// The largest possible usage of the call, and its prices.
    most: Usage,
    prices: Option<Prices>,
    /// True while the call has no reply, and the provider probably bills the call.
    is_cut: bool,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.model
            .called(&self.agent, &self.result, self.begun.elapsed());
        if self.is_cut {
            self.model.cut(&self.agent, self.most.tokens());
            if let Some(prices) = self.prices {
                self.model
                    .cut_cost(&self.agent, prices.nano_usd(&self.most));
            }
        }
    }
}

/// Records the time until the first piece of a reply.
struct Timed<'a> {
    listener: &'a mut dyn ReplyListener,
    call: &'a Call,
    has_begun: bool,
}

#[async_trait]
impl ReplyListener for Timed<'_> {
    async fn accepted(&mut self, response_id: &str) -> Result<(), ModelError> {
        self.listener.accepted(response_id).await
    }

    async fn made_again(&mut self) -> Result<(), ModelError> {
        self.listener.made_again().await
    }

    fn delta(&mut self, part: Part, piece: &str) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.call.model.first_delta(self.call.begun.elapsed());
        }
        self.listener.delta(part, piece);
    }
}

#[async_trait]
impl ModelClient for MeasuredModel {
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
        let model = Model {
            provider: request.provider.clone(),
            name: request.model.clone(),
        };
        let mut call = Call {
            agent: request.caller.agent.clone(),
            model,
            begun: Instant::now(),
            result: "dropped".into(),
            most: request.estimate.most(),
            prices: request.prices,
            is_cut: true,
        };
        let mut timed = Timed {
            listener,
            call: &call,
            has_begun: false,
        };
        let reply = self.client.complete(request, &mut timed).await;
        let is_silent = !timed.has_begun;
        match &reply {
            Ok(reply) => {
                call.result = "ok".into();
                call.is_cut = false;
                let usage = &reply.usage;
                call.model
                    .tokens(&call.agent, usage.input_tokens, usage.output_tokens);
                if let Some(prices) = call.prices {
                    call.model.cost(&call.agent, prices.nano_usd(usage));
                }
            }
            Err(error) => {
                call.result = String::from(&error.code).into();
                call.is_cut = !(error.is_refused && is_silent);
            }
        }
        reply
    }

    async fn cancel(&self, provider: &str, response_id: &str) -> Result<(), ModelError> {
        self.client.cancel(provider, response_id).await
    }
}
