//! The call of a model, and the compaction of a context that does not fit.

use everturn_models::ModelError;
use everturn_proto::words::FailureCode;
use everturn_store::ModelContext;

use super::{
    answer::{asking_for_summary, has_answered},
    background::Listener,
    call::ModelCall,
    claimed::Claimed,
    pick::Pick,
    reply::{Failed, Reply, Said},
    request::RequestMaker,
    stops::superseded,
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
        let id = &self.claimed.step.agent_execution_id;
        let measures = &self.thinker.known.measures;
        let window = Window::of(agent, measures.of(id));
        let has_more = context.has_more;
        let (mut request, offered) = self.request().make(agent, context.messages, window).await?;
        let bytes = request_bytes(&request);
        request.idempotency_key = idempotency_key(self.claimed);
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
            self.budget().reserve(pick, window.tokens(bytes)).await?;
        }
        let sent = sent(&request);
        let text = listener.text;
        let reply = tokio::select! {
            biased;
            reply = self.thinker.model.complete(request, listener) => reply,
            () = superseded(self.claimed, &*self.thinker.turns, text) => return Err(fail::superseded().into()),
        };
        if let Err(error) = &reply {
            self.budget().give_back(error, Some(text)).await;
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
        let (agent, id) = (&*pick.agent, &self.claimed.step.agent_execution_id);
        let window = Window::of(agent, self.thinker.known.measures.of(id));
        let context = self.thinker.context(self.claimed).read(agent).await?;
        let (request, _) = self.request().make(agent, context.messages, window).await?;
        let part = window.old_part(&request.messages, id, Room::Refused { bytes });
        let part = part.ok_or(Failed::Model(error))?;
        let compacted = self.compact(pick, request, part, window, calls).await;
        compacted.map(Reply::Compacted)
    }

    /// Returns the maker of the call's requests.
    fn request(&self) -> RequestMaker<'_> {
        let thinker = self.thinker;
        RequestMaker {
            tenant_id: self.tenant_id,
            agent_hash: self.claimed.agent_hash,
            tools: &thinker.tools,
            agents: thinker.agents.by_name(),
            files: thinker.files(self.claimed),
        }
    }
}

/// Returns the call's name for the provider: equal in every attempt, and never reused after the conversation's removal.
fn idempotency_key(claimed: &Claimed<'_>) -> String {
    let (log_id, agent_execution) = (claimed.log_id, &claimed.step.agent_execution_id);
    let step = claimed.step.step;
    format!("everturn-{log_id}-{agent_execution}-{step}")
}
