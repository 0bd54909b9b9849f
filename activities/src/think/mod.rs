//! `llm_thinking_activity`: one LLM call of one step (invariant 5, paid once).
//!
//! Claim the step → call the model, streaming its text → store `llm_complete` → tell the workflow which tools to run. A
//! step with a stored checkpoint is answered from the checkpoint. When the context is too long for the model's window,
//! the step compacts the context, and the model thinks in the next step.
//!
//! - [`request`]: the request of a call; [`ask`]: the call; [`checkpoint`]: the stored record of the reply
//! - [`calls`]: the tool calls of a reply; [`definitions`]: the definitions of their tools, and approvals
//! - [`window`]: what fits, and what is compacted; [`measures`]: the bytes per token
//! - [`claim`]: the claim of the step; [`claimed`]: the inputs that most stages share
//! - [`here`]: the check that this worker has every part
//! - [`call`]: a claimed call; [`reply`]: the outcome of a call
//! - [`thinker`]: the dependencies of all calls
//! - [`context`]: the context of a call; [`known_contexts`]: the contexts that this worker has read before
//! - [`sent_files`]: the files that the context names
//! - [`compaction`]: the step that writes a summary
//! - [`pick`]: the choice of the model, by [`model_name`]; [`chain`]: the consequence of a model's failure; [`circuits`]:
//!   models without calls after a failure
//! - [`provider_limits`]: the wait for the limits of the provider
//! - [`budget`]: the reservation of a call's possible cost before the call
//! - [`background`]: a response that the provider makes in the background
//! - [`answer`]: the check of an answer, and the summary at the step limit
//! - [`hook_step`]: a step without a model: it plans the hooks before the turn
//! - [`stops`]: a call that ends without a reply

mod answer;
mod ask;
mod background;
mod budget;
mod call;
mod calls;
mod chain;
mod checkpoint;
mod circuits;
mod claim;
mod claimed;
mod compaction;
mod context;
mod definitions;
mod here;
mod hook_step;
mod known_contexts;
mod measures;
mod model_name;
mod pick;
mod provider_limits;
mod reply;
mod request;
mod sent_files;
mod stops;
mod thinker;
mod window;

use std::time::Duration;

use everturn_models::ModelError;
use everturn_proto::{
    Thread,
    turn::{AgentDefinition, ThinkRequest, ThinkResult},
};
use everturn_store::{BackgroundResponse, ChainPosition, ClaimedCall, StepClaim, StepKey};
use everturn_supervisor::failpoint;
use everturn_tools::Progress;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

pub(crate) use self::thinker::{Known, Thinker};
use self::{
    budget::estimated_tokens,
    call::ModelCall,
    calls::plan,
    chain::answered_by,
    claim::Claim,
    claimed::Claimed,
    pick::Pick,
    reply::{Failed, Reply},
};
use crate::attempt::{Attempt, Ended};

impl Thinker {
    pub(crate) async fn think(
        &self,
        ctx: &ActivityContext,
        request: ThinkRequest,
    ) -> Result<ThinkResult, ActivityError> {
        let step = StepKey {
            conversation_id: request.conversation_id,
            message_id: request.message_id,
            agent_execution_id: request.agent_execution_id,
            step: request.step,
            epoch: Some(request.epoch),
        };
        let attempt = &Attempt::begin(&self.ends, ctx, &step.agent_execution_id);
        let claim = Claim {
            attempt,
            step: &step,
            turns: &*self.turns,
            worker: &self.worker,
        };
        let ClaimedCall {
            log_id,
            tenant_id,
            generation,
            calls,
            has_budget,
            background,
            chain,
            ..
        } = match claim.run().await? {
            StepClaim::Stored(state) => return Ok(plan(&state)),
            StepClaim::Call(call) => call,
        };
        let claimed = &Claimed {
            attempt,
            step: &step,
            thread: Thread::of(
                &step.conversation_id,
                &step.message_id,
                &step.agent_execution_id,
            ),
            agent_hash: &request.agent_hash,
            log_id: &log_id,
            generation,
        };
        let call = ModelCall {
            thinker: self,
            claimed,
            tenant_id: &tenant_id,
            has_budget,
            at_step_limit: request.at_step_limit,
        };
        if request.before_turn {
            return call.plan_hooks().await;
        }
        call.make(request.may_compact, calls, background, chain)
            .await
    }
}

impl ModelCall<'_> {
    /// Calls the model, which is the step's `calls`th call, and stores the reply.
    async fn make(
        &self,
        may_compact: bool,
        calls: u32,
        background: Option<BackgroundResponse>,
        chain: Option<ChainPosition>,
    ) -> Result<ThinkResult, ActivityError> {
        failpoint::reach("think.after_claim").await;
        let agent = self.agent().await?;
        let pick = Pick::of(&agent, chain, &self.thinker.known.circuits);
        let agent = &*pick.agent;
        self.thinker.here(self.claimed).check(agent).await?;
        let text = self.thinker.text_writer(self.claimed);
        let limit = Duration::from_millis(u64::from(agent.llm_timeout_ms));
        let mut listener = self
            .thinker
            .listener(self.claimed, agent, &text, background);
        let context = self.thinker.context(self.claimed).read(agent).await?;
        let measures = &self.thinker.known.measures;
        let measure = measures.of(&self.claimed.step.agent_execution_id);
        listener.tokens = estimated_tokens(agent, &context, measure);
        let limits = self.thinker.provider_limits(self.claimed, limit);
        limits.wait(agent, &mut listener).await?;
        // Heartbeats begin here, because a source of tools may take long, and a model does.
        let asked = self.ask(&pick, context, may_compact, calls, &mut listener);
        let ended = self
            .claimed
            .attempt
            .run(&Progress::default(), limit, asked)
            .await;
        listener.leave(match &ended {
            Ended::Done(Ok(reply)) => Some(reply.tokens()),
            _ => None,
        });
        let answer = match ended {
            Ended::Done(Ok(reply)) => Ok(reply),
            Ended::Done(Err(Failed::Other(error))) => return Err(error),
            Ended::Done(Err(Failed::Model(error))) => Err(error),
            Ended::Stopped => return Err(self.thinker.stopped(self.claimed).end(&listener).await),
            Ended::OutOfTime => Err(ModelError::timeout()),
        };
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                let failed = self.thinker.failed(self.claimed, calls);
                return Err(failed.end(&pick, &error, &listener).await);
            }
        };
        answered_by(&pick, &self.thinker.known.circuits);
        failpoint::reach("think.before_checkpoint").await;
        let state = match reply {
            Reply::Said(said) => self.state(agent, said).await?,
            Reply::Compacted(state) => state,
        };
        let stored = self.store(state).await?;
        failpoint::reach("think.after_checkpoint").await;
        text.finish().await;
        Ok(plan(&stored))
    }

    /// Returns the turn's pinned agent.
    async fn agent(&self) -> Result<AgentDefinition, ActivityError> {
        let (agents, turns) = (&self.thinker.agents, &*self.thinker.turns);
        agents
            .pinned(turns, self.claimed.attempt, self.claimed.agent_hash)
            .await
    }
}
