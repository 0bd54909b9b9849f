//! The client of models, with metrics of its calls.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use everturn_activities::model::{
    Admission, EmitDelta, ModelClient, ModelError, ModelReply, ModelRequest,
};
use everturn_stream::Part;
use everturn_telemetry::turns::Model;

/// A client of models that counts.
pub(super) struct MeasuredModel {
    client: Arc<dyn ModelClient>,
}

impl MeasuredModel {
    pub(super) fn new(client: Arc<dyn ModelClient>) -> Self {
        Self { client }
    }
}

/// A call that is being made. When it is dropped before its end, the turn was cancelled, its time was over, or its worker
/// stops.
struct Call {
    model: Model,
    begun: Instant,
    result: &'static str,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.model.called(self.result, self.begun.elapsed());
    }
}

#[async_trait]
impl ModelClient for MeasuredModel {
    fn has_provider(&self, provider: &str) -> bool {
        self.client.has_provider(provider)
    }

    async fn admit(&self, provider: &str) -> Admission {
        self.client.admit(provider).await
    }

    async fn complete(
        &self,
        request: ModelRequest,
        emit_delta: &mut EmitDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let model = Model {
            provider: request.provider.clone(),
            name: request.model.clone(),
        };
        let mut call = Call {
            model,
            begun: Instant::now(),
            result: "dropped",
        };
        let mut has_begun = false;
        let mut timed = |part: Part, piece: &str| {
            if !std::mem::replace(&mut has_begun, true) {
                call.model.first_delta(call.begun.elapsed());
            }
            emit_delta(part, piece);
        };
        let reply = self.client.complete(request, &mut timed).await;
        match &reply {
            Ok(reply) => {
                call.result = "ok";
                call.model
                    .tokens(reply.usage.input_tokens, reply.usage.output_tokens);
            }
            Err(error) => call.result = error.code,
        }
        reply
    }
}
