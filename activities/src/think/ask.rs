//! The request of a call, and the call.

use everturn_models::{ModelError, ModelRequest, OfferedTool, OutputFormat, Parameters};
use everturn_proto::{
    turn::AgentDefinition,
    words::{FailureCode, MessageRole, ToolKind},
};
use everturn_store::{ContextMessage, ModelContext, ToolResult};
use everturn_tools::{Asker, ToolSpec, builtin::read_result, delegate};
use temporalio_common::ActivityError;

use super::{
    answer::{asking_for_summary, has_answered},
    background::Listener,
    call::ModelCall,
    model_name::model_of,
    pick::Pick,
    reply::{Failed, Reply, Said},
    window::{BytesPerToken, Room, Window, request_bytes, sent},
};
use crate::failure as fail;

impl ModelCall<'_> {
    /// Asks the model, or makes it compact a context that does not fit.
    pub(super) async fn ask(
        &self,
        pick: &Pick<'_>,
        context: ModelContext,
        may_compact: bool,
        calls: u32,
        listener: &mut Listener<'_>,
    ) -> Result<Reply, Failed> {
        let agent = &*pick.agent;
        let id = &self.step.agent_execution_id;
        let measures = &self.thinker.known.measures;
        let window = Window::of(agent, measures.of(id));
        let has_more = context.has_more;
        let (mut request, offered) = self.model_request(agent, context.messages, window).await?;
        let bytes = request_bytes(&request);
        request.idempotency_key = self.idempotency_key();
        request.attached = listener.response_id();
        // A provider that makes the response already has found room for the request.
        let is_full = request.attached.is_none() && window.is_full(bytes);
        if may_compact && (has_more || is_full) {
            let part = window.old_part(&request.messages, id, Room::Left { has_more });
            if let Some(part) = part {
                let compacted = self.compact(pick, request, part, window, calls).await;
                return compacted.map(Reply::Compacted);
            }
        }
        if has_more {
            return Err(fail::too_long().into());
        }
        if self.at_step_limit {
            request = asking_for_summary(request);
        }
        let has_answered = has_answered(&request.messages, id);
        // The reservation of the call that made the response is still valid.
        if request.attached.is_none() {
            self.reserve(pick, window.tokens(bytes)).await?;
        }
        let sent = sent(&request);
        let text = listener.text;
        let reply = tokio::select! {
            biased;
            reply = self.thinker.model.complete(request, listener) => reply,
            () = self.superseded(text) => return Err(fail::superseded().into()),
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
                    has_answered,
                }))
            }
            Err(error)
                if may_compact
                    && error.code == FailureCode::LlmContextTooLong
                    && !pick.leads_on(&error.code) =>
            {
                self.compact_refused(pick, error, bytes, calls).await
            }
            Err(error) => Err(listener.refused(error)),
        }
    }

    /// Compacts a context of `bytes` bytes that the provider has refused: the provider's refusal overrides the
    /// configured window.
    async fn compact_refused(
        &self,
        pick: &Pick<'_>,
        error: ModelError,
        bytes: usize,
        calls: u32,
    ) -> Result<Reply, Failed> {
        let (agent, id) = (&*pick.agent, &self.step.agent_execution_id);
        let window = Window::of(agent, self.thinker.known.measures.of(id));
        let context = self.context(agent).await?;
        let (request, _) = self.model_request(agent, context.messages, window).await?;
        let part = window.old_part(&request.messages, id, Room::Refused { bytes });
        let part = part.ok_or(Failed::Model(error))?;
        let compacted = self.compact(pick, request, part, window, calls).await;
        compacted.map(Reply::Compacted)
    }

    /// Returns the request, and the definitions of its tools: the agent's currently available tools.
    async fn model_request(
        &self,
        agent: &AgentDefinition,
        mut messages: Vec<ContextMessage>,
        window: Window,
    ) -> Result<(ModelRequest, Vec<ToolSpec>), ActivityError> {
        let has_shortened = window.shorten_results(&mut messages);
        let (delegate, registered): (Vec<_>, Vec<_>) = agent
            .tools
            .iter()
            .partition(|tool| tool.kind() == ToolKind::Delegate);
        let asker = Asker {
            tenant_id: self.tenant_id,
            agent: &agent.name,
        };
        let tools = self
            .thinker
            .tools
            .specs(registered.iter().map(|tool| tool.name.as_str()), asker)
            .await;
        let mut tools =
            tools.map_err(|error| fail::permanent(FailureCode::UnknownAgent, error.to_string()))?;
        tools.extend(delegate.into_iter().filter_map(|tool| {
            delegate::spec(tool, self.thinker.agents.by_name(), self.tenant_id)
        }));
        let is_summary = |message: &ContextMessage| message.role == MessageRole::Summary;
        let mut results = messages.iter().flat_map(|message| &message.tool_results);
        // An offered tool stays offered, because a request with a new beginning misses the provider's cache.
        if has_shortened
            || messages.first().is_some_and(is_summary)
            || results.any(ToolResult::is_cut)
        {
            tools.extend(self.thinker.tools.spec(read_result::NAME));
        }
        let request = ModelRequest {
            provider: agent.provider.clone(),
            model: model_of(agent, self.agent_hash)?,
            files: self.files(agent, &messages).await?,
            instructions: Some(agent.instructions.clone()).filter(|text| !text.trim().is_empty()),
            messages,
            tools: tools.iter().map(offered).collect(),
            max_output_tokens: agent.max_output_tokens,
            parameters: Parameters::of(agent),
            output: OutputFormat::of(agent),
            ..ModelRequest::default()
        };
        Ok((request, tools))
    }
}

/// Returns a tool's definition as the model reads it.
fn offered(spec: &ToolSpec) -> OfferedTool {
    OfferedTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
    }
}
