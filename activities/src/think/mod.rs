//! `llm_thinking_activity`: one LLM call of one step (invariant 5, paid once).
//!
//! A step passes the stages in this order. The fields of a stage are the inputs of the stage.
//!
//! 1. [`claim`]: the worker claims the step. A stored checkpoint answers the step without a call.
//! 2. [`pick`]: the choice of the model; [`here`]: the check that this worker has every part that the agent needs, and the
//!    way on without a part that no worker has any more.
//! 3. [`context`]: the messages, from the store and from [`known_contexts`].
//! 4. [`provider_limits`]: the wait for the limits of the provider.
//! 5. [`ask`]: the [`request`], with its tools ([`room`]) and files ([`sent_files`]); then the [`call`] reserves the cost ([`budget`]) and
//!    streams the model's text. When the context is too long for the model's window, [`compaction`] asks for a summary
//!    instead, and the model thinks in the next step.
//! 6. [`checkpoint`]: the record of the reply, with the tool calls ([`calls`]), their approvals ([`definitions`]) and
//!    the check of the answer ([`answer`]).
//! 7. [`store`]: the checkpoint is stored as `llm_complete`. The workflow gets the ids of the tools to run.
//!
//! Beside the stages:
//!
//! - [`first_step`]: the demand on the tool calls of a turn's first reply
//! - [`hook_step`]: a step without a model: it plans the hooks before the turn
//! - [`chain`]: the consequence of a model's failure, by [`model_name`]; [`circuits`]: models without calls after a
//!   failure; [`patience`]: the wait for a provider that refuses calls
//! - [`tries`]: the reason of a try without a reply, for the store
//! - [`stops`]: the end of a call that became useless or was stopped
//! - [`queue`]: the return of a call to the queue of its provider
//! - [`background`]: the receiver of a reply, and a response that the provider makes in the background
//! - [`claimed`]: the inputs that most stages share; [`reply`]: the outcome of a call
//! - [`window`]: what fits, and what is compacted; [`measures`]: the bytes per token
//! - [`thinker`]: the dependencies of all calls, and the parts of them that each stage gets
//!
//! Must not be here: the next action of the turn (`everturn-workflows`), and the clients of models
//! (`everturn-models`).

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
mod first_step;
mod here;
mod hook_step;
mod known_contexts;
mod measures;
mod model_name;
mod patience;
mod pick;
mod provider_limits;
mod queue;
mod reply;
mod request;
mod room;
mod sent_files;
mod stops;
mod store;
mod thinker;
mod tries;
mod window;

use std::time::{Duration, SystemTime};

use everturn_models::ModelError;
use everturn_proto::{
    Thread,
    turn::{AgentDefinition, LlmCompleteState, ThinkRequest, ThinkResult},
    words::FailureCode,
};
use everturn_store::{BackgroundResponse, ClaimedCall, StepClaim, StepKey};
use everturn_stream::TextWriter;
use everturn_supervisor::failpoint;
use everturn_tools::Progress;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

pub(crate) use self::thinker::{Known, Thinker};
use self::{
    background::cancel,
    budget::estimated_tokens,
    calls::{cancelled, plan},
    chain::answered_by,
    claimed::{Claimed, OpenCall, WentBack},
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
        let step = &StepKey {
            conversation_id: request.conversation_id.clone(),
            message_id: request.message_id.clone(),
            agent_execution_id: request.agent_execution_id.clone(),
            step: request.step,
            epoch: Some(request.epoch),
        };
        let attempt = &Attempt::begin(&self.ends, ctx, &step.agent_execution_id);
        let call = match self.claim(attempt, step).run().await? {
            StepClaim::Stored(state) => return Ok(plan(&state)),
            StepClaim::Call(call) => call,
            StepClaim::Cancelled(reason) => return Ok(cancelled(reason)),
        };
        let claimed = &Claimed {
            attempt,
            step,
            thread: Thread::of(
                &step.conversation_id,
                &step.message_id,
                &step.agent_execution_id,
            ),
            agent_hash: &request.agent_hash,
            log_id: &call.log_id,
            generation: call.generation,
            open_call: OpenCall::default(),
            went_back: WentBack::default(),
            started_at: SystemTime::now(),
        };
        if request.before_turn {
            self.plan_hooks(claimed).await
        } else {
            // On the heap, because the future is large and would be copied into the surrounding future.
            Box::pin(self.call_model(claimed, &request, &call)).await
        }
    }

    /// Plans the hooks before the turn, in a step without a model.
    async fn plan_hooks(&self, claimed: &Claimed<'_>) -> Result<ThinkResult, ActivityError> {
        let agent = &self.agent(claimed).await?;
        self.here(claimed).check(agent).await?;
        self.hook_step(claimed).run(agent).await
    }

    /// Calls the model, and stores the reply.
    async fn call_model(
        &self,
        claimed: &Claimed<'_>,
        request: &ThinkRequest,
        call: &ClaimedCall,
    ) -> Result<ThinkResult, ActivityError> {
        failpoint::reach("think.after_claim").await;
        let agent = self.agent(claimed).await?;
        let (mut chain, running) = (call.chain.clone(), call.background.as_ref());
        let left = chain.as_mut().and_then(|chain| chain.left_response.take());
        let mut pick = Pick::of(&agent, chain, running, &self.known.circuits);
        let fitted = self.here(claimed).fit(&mut pick, &call.tenant_id).await;
        let called = async {
            match fitted {
                Ok(()) => self.call_picked(claimed, &pick, request, call).await,
                Err(error) => Err(error),
            }
        };
        let (called, ()) = tokio::join!(called, self.cancel_left(left));
        // A call that goes back to the queue was not tried.
        if let Err(error) = &called
            && !claimed.went_back.is_set()
        {
            self.tries(claimed).note(&pick, error).await;
        }
        called
    }

    /// Cancels the response of a model that the step has left. The worker that left the model may have died before its
    /// cancel, and a second cancel changes nothing.
    async fn cancel_left(&self, left: Option<BackgroundResponse>) {
        if let Some(response) = left {
            cancel(&response, &*self.model).await;
        }
    }

    /// Calls the picked model, and stores the reply.
    async fn call_picked(
        &self,
        claimed: &Claimed<'_>,
        pick: &Pick<'_>,
        request: &ThinkRequest,
        call: &ClaimedCall,
    ) -> Result<ThinkResult, ActivityError> {
        let text = self.text_writer(claimed);
        // The state of a whole call is too large for the stack of a caller.
        let state = Box::pin(self.state(claimed, pick, &text, request, call)).await;
        // A response in the background goes on, and the next attempt reads the response.
        let is_unanswered = state.is_err() && !claimed.went_back.is_set();
        if is_unanswered && call.background.is_none() {
            self.budget(claimed, call).unanswered().await;
        }
        let stored = self.store(claimed).run(state?).await?;
        failpoint::reach("think.after_checkpoint").await;
        text.finish().await;
        Ok(plan(&stored))
    }

    /// Asks the picked model, and makes the checkpoint of the reply.
    async fn state(
        &self,
        claimed: &Claimed<'_>,
        pick: &Pick<'_>,
        text: &TextWriter,
        request: &ThinkRequest,
        call: &ClaimedCall,
    ) -> Result<LlmCompleteState, ActivityError> {
        let reply = self.reply(claimed, pick, text, request, call).await?;
        answered_by(pick, &self.known.circuits);
        failpoint::reach("think.before_checkpoint").await;
        match reply {
            Reply::Said(said) => {
                let checkpoint = self.checkpoint(claimed, request.at_step_limit);
                checkpoint.of(&pick.agent, said).await
            }
            Reply::Compacted(state) => Ok(state),
        }
    }

    /// Reads the context, and asks the picked model.
    async fn reply(
        &self,
        claimed: &Claimed<'_>,
        pick: &Pick<'_>,
        text: &TextWriter,
        request: &ThinkRequest,
        call: &ClaimedCall,
    ) -> Result<Reply, ActivityError> {
        let agent = &*pick.agent;
        let limit = Duration::from_millis(u64::from(agent.llm_total_timeout_ms));
        let mut listener = self.listener(claimed, agent, text, call.background.clone());
        let context = self.context(claimed).read(agent).await?;
        let measure = self.known.measures.of(&claimed.step.agent_execution_id);
        listener.tokens = estimated_tokens(agent, &context, measure);
        let limits = self.provider_limits(claimed, limit);
        limits.wait(agent, &mut listener).await?;
        // Heartbeats begin here, because a source of tools may take long, and a model does.
        let ask = self.ask(claimed, pick, request, call);
        // On the heap, because the future is large: it holds the request.
        let asked = Box::pin(ask.run(context, &mut listener));
        let progress = Progress::default();
        let ended = claimed.attempt.run(&progress, limit, asked).await;
        listener.leave(match &ended {
            Ended::Done(Ok(reply)) => Some(reply.tokens()),
            _ => None,
        });
        let error = match ended {
            Ended::Done(Ok(reply)) => return Ok(reply),
            Ended::Done(Err(Failed::Other(error))) => return Err(error),
            Ended::Done(Err(Failed::Model(error))) => error,
            Ended::Stopped => return Err(self.stopped(claimed).end(&listener).await),
            Ended::OutOfTime => ModelError::out_of_time(limit),
        };
        if error.code == FailureCode::LlmTimeout {
            self.stopped(claimed).keep_text(text).await;
        }
        let failed = self.failed(claimed, call.calls);
        Err(failed.end(pick, &error, &listener).await)
    }

    /// Returns the turn's pinned agent.
    async fn agent(&self, claimed: &Claimed<'_>) -> Result<AgentDefinition, ActivityError> {
        let (agents, inputs) = (&self.agents, &*self.inputs);
        agents
            .pinned(inputs, claimed.attempt, claimed.agent_hash)
            .await
    }
}
