//! The chain of an agent's models: the consequence of a model's failure.
//!
//! The step's position in the chain is stored with its claim. A failed call is noted and ends its attempt. The engine
//! makes the next attempt, which asks the noted model. A refused call leads to the next model at once. When every model
//! has refused, the step waits ([`patience`](super::patience)), like a step of an agent without a chain.

use std::time::Duration;

use everturn_models::{ModelClient, ModelError};
use everturn_proto::{event::ModelFallback, turn::Fallback, words::FailureCode};
use everturn_store::{ChainPosition, FailedCall, ModelCalls, NotedFailure, Refusals, StepKey};
use everturn_stream::{Announcement, ModelWait, Notice, StreamWriter};
use everturn_supervisor::failpoint;
use temporalio_common::ActivityError;

use super::{
    background::{Listener, cancel},
    budget::is_refused,
    circuits::Circuits,
    claimed::Claimed,
    model_name::ModelName,
    patience::{Patience, milliseconds},
    pick::{Pick, is_at_once},
};
use crate::{
    failure::{self as fail, NextTry},
    readers,
};

/// The consequence of a failure.
enum Outcome {
    /// The turn ends with the failure.
    Ends,
    /// The next attempt asks the model again.
    Again,
    /// The step gives the model up.
    GivesUp,
}

fn outcome(pick: &Pick<'_>, chain: &Fallback, error: &ModelError) -> Outcome {
    if is_at_once(chain, &error.code) {
        return Outcome::GivesUp;
    }
    if !error.is_retryable() && error.code != FailureCode::LlmTimeout {
        return Outcome::Ends;
    }
    let most = if error.code.is_repeated_once() {
        chain.after.min(fail::UNUSABLE_REPLIES)
    } else {
        chain.after
    };
    if pick.trial.is_some() || pick.at.failures + 1 >= most {
        Outcome::GivesUp
    } else {
        Outcome::Again
    }
}

/// Closes the circuit of a chain's model, because the model has answered.
pub(super) fn answered_by(pick: &Pick<'_>, circuits: &Circuits) {
    if pick.own.fallback.is_some() {
        circuits.close(&ModelName::of(&pick.agent));
    }
}

/// A call whose model has failed.
pub(super) struct FailedModel<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) model_calls: &'a dyn ModelCalls,
    /// The stream for the news to the readers.
    pub(super) stream: &'a dyn StreamWriter,
    pub(super) model: &'a dyn ModelClient,
    pub(super) circuits: &'a Circuits,
    /// The number of the step's calls, the failed call included.
    pub(super) calls: u32,
    /// The pause after the step's first refused call.
    pub(super) first_pause: Duration,
}

impl FailedModel<'_> {
    /// Decides the consequence of the failure, and notes the step's new position in the chain.
    pub(super) async fn end(
        &self,
        pick: &Pick<'_>,
        error: &ModelError,
        listener: &Listener<'_>,
    ) -> ActivityError {
        let (circuits, calls) = (self.circuits, self.calls);
        let is_refused = is_refused(error, Some(listener.text));
        let mut failed = FailedCall {
            chain: ChainPosition {
                left_response: None,
                ..pick.at.clone()
            },
            calls: calls - u32::from(is_refused),
            fallback: None,
        };
        if is_refused && error.is_retryable() {
            return self.refused(pick, error, failed, listener).await;
        }
        let Some(chain) = &pick.own.fallback else {
            return fail::from_model(error, calls, self.attempts());
        };
        // The number of possibly billed calls is limited, however many models the chain has.
        let is_over = !is_refused && calls >= fail::STEP_CALLS;
        let retry = match outcome(pick, chain, error) {
            Outcome::Ends => return fail::of_chain(error, NextTry::Never),
            Outcome::Again if is_over => return fail::of_chain(error, NextTry::Never),
            Outcome::Again => {
                failed.chain.failures += 1;
                NextTry::AsProviderAsks(fail::pause_after(calls, self.attempts()))
            }
            Outcome::GivesUp => {
                if !error.code.is_about_the_request() {
                    circuits.open(&ModelName::of(&pick.agent));
                }
                if is_over {
                    return fail::of_chain(error, NextTry::Never);
                }
                failed.chain.given_up.push(pick.at.position);
                let Some((position, _)) = circuits.choose(&pick.after(&error.code)) else {
                    if pick.at.refusing.is_empty() {
                        return fail::of_chain(error, NextTry::Never);
                    }
                    return self.wait_out(pick, error, failed, listener).await;
                };
                self.go_on(&mut failed, pick, position, error);
                NextTry::AtOnce
            }
        };
        let noted = self.note_failure(pick, failed, listener).await;
        noted.map_or_else(|other| other, |()| fail::of_chain(error, retry))
    }

    /// Returns the number of the engine's attempts so far.
    fn attempts(&self) -> u32 {
        self.claimed.attempt.ctx.info().attempt
    }

    /// Goes on after a refused call: to the next model at once, or otherwise to a wait.
    async fn refused(
        &self,
        pick: &Pick<'_>,
        error: &ModelError,
        mut failed: FailedCall,
        listener: &Listener<'_>,
    ) -> ActivityError {
        let asked = error.retry_after.map_or(0, milliseconds);
        let least = failed
            .chain
            .retry_after_ms
            .map_or(asked, |least| least.min(asked));
        failed.chain.retry_after_ms = Some(least);
        if pick.own.fallback.is_some() {
            self.circuits.open(&ModelName::of(&pick.agent));
        }
        let Some((position, _)) = self.circuits.choose(&pick.after(&error.code)) else {
            return self.wait_out(pick, error, failed, listener).await;
        };
        failed.chain.refusing.push(pick.at.position);
        failed.chain.passed_on += 1;
        self.go_on(&mut failed, pick, position, error);
        let noted = self.note_failure(pick, failed, listener).await;
        noted.map_or_else(|other| other, |()| fail::of_chain(error, NextTry::AtOnce))
    }

    /// Moves the step to the model at `position`. Readers are told once that the step leaves a model.
    fn go_on(&self, failed: &mut FailedCall, pick: &Pick<'_>, position: u32, error: &ModelError) {
        let left = pick.at.position;
        let chain = &mut failed.chain;
        (chain.position, chain.failures) = (position, 0);
        if !chain.announced.contains(&left) {
            chain.announced.push(left);
            failed.fallback = Some(fallback(self.claimed.step, pick, position, error));
        }
    }

    /// Stores the step's position in the chain, and tells readers of the change to another model.
    async fn note_failure(
        &self,
        pick: &Pick<'_>,
        mut failed: FailedCall,
        listener: &Listener<'_>,
    ) -> Result<(), ActivityError> {
        failpoint::reach("think.before_fallback").await;
        let claimed = self.claimed;
        leave(&mut failed.chain, pick, listener);
        match self.note(&failed).await? {
            NotedFailure::Superseded => return Err(fail::superseded()),
            NotedFailure::Counted => {}
            NotedFailure::FellBack { last_sequence } => {
                failpoint::reach("think.after_fallback").await;
                let announcement = Announcement {
                    last_sequence,
                    sealed: Vec::new(),
                };
                readers::announce(self.stream, claimed.log_id, announcement).await;
            }
        }
        self.cancel_left(&failed).await;
        Ok(())
    }

    /// Cancels the response of the model that the step has left.
    async fn cancel_left(&self, failed: &FailedCall) {
        if let Some(response) = &failed.chain.left_response {
            cancel(response, self.model).await;
        }
    }
}

/// Notes the response of the failed call in the new position, if the step leaves the model. A step that stays at the
/// model reads the response again.
fn leave(chain: &mut ChainPosition, pick: &Pick<'_>, listener: &Listener<'_>) {
    let left = pick.at.position;
    if chain.position != left || chain.given_up.contains(&left) {
        chain.left_response = listener.response();
    }
}

impl FailedModel<'_> {
    /// Lets the step wait for its providers, which do not bill refused calls. The turn ends when the agent's patience is
    /// over. After the wait, the step asks all models again that it has not given up.
    async fn wait_out(
        &self,
        pick: &Pick<'_>,
        error: &ModelError,
        mut failed: FailedCall,
        listener: &Listener<'_>,
    ) -> ActivityError {
        let claimed = self.claimed;
        let patience = Patience {
            limit: Duration::from_millis(pick.agent.patience_ms.into()),
            first_pause: self.first_pause,
        };
        let chain = &mut failed.chain;
        let asked = chain.retry_after_ms.take().map(Duration::from_millis);
        let before = pick.at.refused.as_ref();
        let Some(wait) = patience.after(before, asked, claimed.attempt.age()) else {
            return fail::of_chain(error, NextTry::Never);
        };
        let calls = self.calls.saturating_add(chain.passed_on);
        let refused = wait.noted(claimed.generation, &error.code, calls);
        let waiting = self.waiting(error, &refused, wait.pause);
        chain.refused = Some(refused);
        chain.refusing.clear();
        if let Some((position, _)) = self.circuits.choose(&pick.after_wait(&chain.given_up)) {
            chain.position = position;
        }
        leave(chain, pick, listener);
        match self.note(&failed).await {
            Err(other) => return other,
            Ok(NotedFailure::Superseded) => return fail::superseded(),
            Ok(NotedFailure::Counted | NotedFailure::FellBack { .. }) => {}
        }
        readers::notify(self.stream, claimed.log_id, Notice::ModelWaits(waiting)).await;
        self.cancel_left(&failed).await;
        fail::of_chain(error, NextTry::After(wait.pause))
    }

    /// Returns the news of the wait, for the readers.
    fn waiting(&self, error: &ModelError, refused: &Refusals, pause: Duration) -> ModelWait {
        let step = self.claimed.step;
        ModelWait {
            message_id: step.message_id.clone(),
            agent_execution_id: step.agent_execution_id.clone(),
            step: step.step,
            code: refused.code.clone(),
            message: error.message.clone(),
            attempt: refused.attempt,
            retry_after_ms: milliseconds(pause),
        }
    }

    async fn note(&self, failed: &FailedCall) -> Result<NotedFailure, ActivityError> {
        let (claimed, model_calls) = (self.claimed, self.model_calls);
        claimed
            .attempt
            .insist(|| model_calls.note_failed_call(claimed.step, claimed.generation, failed))
            .await
    }
}

/// Returns the event of the change to the model at position `to` of the chain.
fn fallback(step: &StepKey, pick: &Pick<'_>, to: u32, error: &ModelError) -> ModelFallback {
    let from = ModelName::of(&pick.agent);
    let to = pick.own.with_model(to);
    let to = ModelName::of(to.as_ref().unwrap_or(pick.own));
    tracing::warn!(%from, %to, code = %error.code, %error, "another model is asked");
    ModelFallback {
        agent_execution_id: step.agent_execution_id.clone(),
        step: step.step,
        from: from.to_string(),
        to: to.to_string(),
        code: (&error.code).into(),
        message: error.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use everturn_proto::turn::{AgentDefinition, FallbackModel};

    use super::*;

    fn agent() -> AgentDefinition {
        let model = |model: &str, window| FallbackModel {
            provider: "p".to_owned(),
            model: model.to_owned(),
            context_window: Some(window),
            ..FallbackModel::default()
        };
        AgentDefinition {
            provider: "p".to_owned(),
            model: Some("own".to_owned()),
            context_window: Some(1000),
            fallback: Some(Fallback {
                models: vec![model("small", 1000), model("large", 2000)],
                after: 2,
                at_once_on: vec![FailureCode::LlmContextTooLong.into()],
            }),
            ..AgentDefinition::default()
        }
    }

    #[test]
    fn a_model_of_the_chain_has_what_is_its_own_and_all_else_of_the_agent() {
        let mut own = agent();
        own.instructions = "Be brief.".to_owned();
        let chain = own.fallback.as_mut().unwrap();
        chain.models[0].no_images = true;
        chain.models[1].no_pdfs = true;
        assert_eq!(own.with_model(0), None);
        let takes = |position| {
            let agent = own.with_model(position).unwrap();
            assert_eq!(agent.instructions, "Be brief.");
            (agent.model.unwrap(), !agent.no_images, !agent.no_pdfs)
        };
        assert_eq!(takes(1), ("small".to_owned(), false, true));
        assert_eq!(takes(2), ("large".to_owned(), true, false));
    }

    fn positions(models: &[(u32, ModelName)]) -> Vec<u32> {
        models.iter().map(|(position, _)| *position).collect()
    }

    #[test]
    fn only_a_larger_window_helps_against_a_context_that_is_too_long() {
        let agent = agent();
        let pick = Pick::of(&agent, None, None, &Circuits::new(Duration::ZERO));
        assert_eq!(positions(&pick.after(&FailureCode::LlmUnavailable)), [1, 2]);
        assert_eq!(positions(&pick.after(&FailureCode::LlmContextTooLong)), [2]);
        assert!(pick.leads_on(&FailureCode::LlmContextTooLong));
        assert!(!pick.leads_on(&FailureCode::LlmUnavailable));
        let at = ChainPosition {
            position: 2,
            failures: 0,
            given_up: vec![0],
            ..ChainPosition::default()
        };
        let pick = Pick::of(&agent, Some(at), None, &Circuits::new(Duration::ZERO));
        assert_eq!(pick.other_model().as_deref(), Some("p/large"));
        assert_eq!(pick.agent.context_window, Some(2000));
        assert_eq!(positions(&pick.after(&FailureCode::LlmUnavailable)), [1]);
        assert!(!pick.leads_on(&FailureCode::LlmContextTooLong));
    }

    #[test]
    fn a_model_that_refuses_is_left_out_until_the_step_has_waited() {
        let agent = agent();
        let at = ChainPosition {
            position: 1,
            given_up: vec![2],
            refusing: vec![0],
            ..ChainPosition::default()
        };
        let pick = Pick::of(&agent, Some(at), None, &Circuits::new(Duration::ZERO));
        assert!(pick.after(&FailureCode::LlmOverloaded).is_empty());
        assert_eq!(positions(&pick.after_wait(&pick.at.given_up)), [0, 1]);
    }

    #[test]
    fn a_model_is_given_up_after_so_many_failures() {
        let (agent, circuits) = (agent(), Circuits::new(Duration::from_mins(1)));
        let chain = agent.fallback.as_ref().unwrap();
        let after = |failures, code| {
            let at = ChainPosition {
                failures,
                ..ChainPosition::default()
            };
            let pick = Pick::of(&agent, Some(at), None, &circuits);
            match outcome(&pick, chain, &ModelError::new(code, "")) {
                Outcome::Ends => "ends",
                Outcome::Again => "again",
                Outcome::GivesUp => "gives up",
            }
        };
        assert_eq!(after(0, FailureCode::LlmUnavailable), "again");
        assert_eq!(after(1, FailureCode::LlmTimeout), "gives up");
        assert_eq!(after(0, FailureCode::LlmContextTooLong), "gives up");
        assert_eq!(after(1, FailureCode::LlmBadRequest), "ends");
        assert_eq!(after(0, FailureCode::LlmEmptyReply), "again");
        assert_eq!(after(1, FailureCode::LlmEmptyReply), "gives up");
    }
}
