//! The stages of a call under its time limit: make the request → compact a context that does not fit, or call the model.

use everturn_models::{BytesPerToken, ModelError};
use everturn_proto::words::FailureCode;
use everturn_store::ModelContext;

use super::{
    answer::{asking_for_summary, has_answered},
    background::Listener,
    call::Call,
    claimed::Claimed,
    compaction::Compaction,
    context::ContextReader,
    first_step::tool_choice,
    measures::Measures,
    pick::Pick,
    reply::{Failed, Reply, Said},
    request::RequestMaker,
    window::{Room, Window, request_bytes, sent},
};
use crate::failure as fail;

/// Asks the picked model.
pub(super) struct Ask<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) pick: &'a Pick<'a>,
    pub(super) measures: &'a Measures,
    /// True when the step may compact the context instead of thinking.
    pub(super) may_compact: bool,
    /// True when the agent's steps are used up, and the model writes the last summary.
    pub(super) at_step_limit: bool,
    pub(super) request: RequestMaker<'a>,
    pub(super) call: Call<'a>,
    pub(super) compaction: Compaction<'a>,
    /// Reads the context again, after the provider has refused the request.
    pub(super) context: ContextReader<'a>,
}

impl Ask<'_> {
    /// Asks the model, or makes it compact a context that does not fit.
    pub(super) async fn run(
        &self,
        context: ModelContext,
        listener: &mut Listener<'_>,
    ) -> Result<Reply, Failed> {
        let (pick, may_compact) = (self.pick, self.may_compact);
        let (agent, id) = (&*pick.agent, &self.claimed.step.agent_execution_id);
        let window = Window::of(agent, self.measures.of(id));
        let has_more = context.has_more;
        let (mut request, offered) = self.request.make(agent, context.messages, window).await?;
        let bytes = request_bytes(&request);
        request.idempotency_key = idempotency_key(self.claimed);
        request.attached = listener.response_id();
        // A provider that makes the response already has found room for the request.
        let is_full = request.attached.is_none() && window.is_full(bytes);
        if may_compact && (has_more || is_full) {
            let part = window.old_part(&request.messages, id, Room::Left { has_more });
            if let Some(part) = part {
                let compacted = self.compaction.run(pick, request, part, window).await;
                return compacted.map(Reply::Compacted);
            }
        }
        if has_more {
            return Err(fail::too_long().into());
        }
        if self.at_step_limit {
            request = asking_for_summary(request);
        }
        request.tool_choice = tool_choice(agent, &request.messages, self.claimed.step);
        let has_answered = has_answered(&request.messages, id);
        let sent = sent(&request, &offered);
        let tokens = window.tokens(bytes);
        request.estimate = window.estimate(agent, bytes);
        match self.call.run(pick, request, tokens, listener).await {
            Ok(reply) => {
                if let Some(measured) = BytesPerToken::measured(bytes, reply.usage) {
                    self.measures.note(id, measured);
                }
                Ok(Reply::Said(Said {
                    offered,
                    sent,
                    reply,
                    has_answered,
                }))
            }
            Err(Failed::Model(error))
                if may_compact
                    && error.code == FailureCode::LlmContextTooLong
                    && !pick.leads_on(&error.code) =>
            {
                self.compact_refused(error, bytes).await
            }
            Err(Failed::Model(error)) => Err(listener.refused(error)),
            Err(other) => Err(other),
        }
    }

    /// Compacts a context of `bytes` bytes that the provider has refused: the provider's refusal overrides the
    /// configured window.
    async fn compact_refused(&self, error: ModelError, bytes: usize) -> Result<Reply, Failed> {
        let (agent, id) = (&*self.pick.agent, &self.claimed.step.agent_execution_id);
        let window = Window::of(agent, self.measures.of(id));
        let context = self.context.read(agent).await?;
        let (request, _) = self.request.make(agent, context.messages, window).await?;
        let part = window.old_part(&request.messages, id, Room::Refused { bytes });
        let part = part.ok_or(Failed::Model(error))?;
        let compacted = self.compaction.run(self.pick, request, part, window).await;
        compacted.map(Reply::Compacted)
    }
}

/// Returns the call's name for the provider: equal in every attempt, and never reused after the conversation's removal.
fn idempotency_key(claimed: &Claimed<'_>) -> String {
    let (log_id, agent_execution) = (claimed.log_id, &claimed.step.agent_execution_id);
    let step = claimed.step.step;
    format!("everturn-{log_id}-{agent_execution}-{step}")
}
