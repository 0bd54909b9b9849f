//! The chain of an agent's models: the choice of the model for a call, and the consequence of its failure.
//!
//! The step's position in the chain is stored with its claim. A failed call is noted and ends its attempt. The engine
//! makes the next attempt, which asks the noted model. Nothing here applies to an agent without a chain.

use std::borrow::Cow;

use everturn_models::{ModelError, signer};
use everturn_proto::{
    event::ModelFallback,
    turn::{AgentDefinition, Fallback},
    words::FailureCode,
};
use everturn_store::{ChainPlace, FailedCall, NotedFailure};
use everturn_stream::Announcement;
use everturn_supervisor::failpoint;
use temporalio_common::ActivityError;

use super::{
    ModelCall,
    background::Listener,
    budget::is_refused,
    circuits::{Circuits, Trial},
    window::Window,
};
use crate::{
    failure::{self as fail, NextTry},
    readers,
};

/// A model, by the provider in the configuration and the provider's name for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ModelName {
    pub(super) provider: String,
    pub(super) model: String,
}

impl ModelName {
    fn of(agent: &AgentDefinition) -> Self {
        Self {
            provider: agent.provider.clone(),
            model: agent.model.clone().unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&signer(&self.provider, &self.model))
    }
}

/// The model for a call.
pub(super) struct Pick<'a> {
    own: &'a AgentDefinition,
    /// The agent's definition with this model instead of the agent's first model.
    pub(super) agent: Cow<'a, AgentDefinition>,
    at: ChainPlace,
    /// Set when the call tries a model whose circuit was open.
    trial: Option<Trial>,
}

impl<'a> Pick<'a> {
    /// Picks the model at the step's stored position in the chain, or otherwise the first model with a closed circuit.
    pub(super) fn of(
        own: &'a AgentDefinition,
        noted: Option<ChainPlace>,
        circuits: &Circuits,
    ) -> Self {
        let mut pick = Self {
            own,
            agent: Cow::Borrowed(own),
            at: noted.unwrap_or_default(),
            trial: None,
        };
        if own.fallback.is_none() {
            return pick;
        }
        if pick.at == ChainPlace::default()
            && let Some((place, trial)) = circuits.choose(&pick.left(None))
        {
            pick.at.place = place;
            pick.trial = trial;
        }
        if let Some(agent) = with_model(own, pick.at.place) {
            pick.agent = Cow::Owned(agent);
        }
        pick
    }

    /// Returns the name of the model, unless it is the agent's first model.
    pub(super) fn other_model(&self) -> Option<String> {
        (self.at.place > 0).then(|| ModelName::of(&self.agent).to_string())
    }

    /// True when a failure with this code leads to another model at once.
    pub(super) fn leads_on(&self, code: &FailureCode) -> bool {
        let chain = self.own.fallback.as_ref();
        chain.is_some_and(|chain| is_at_once(chain, code)) && !self.after(code).is_empty()
    }

    /// Returns the models to ask next, after this model's failure with `code`.
    fn after(&self, code: &FailureCode) -> Vec<(u32, ModelName)> {
        let window = Window::size_of(&self.agent);
        let mut left = self.left(Some(self.at.place));
        if *code == FailureCode::LlmContextTooLong {
            // A model with an equal or smaller window would refuse the context, too.
            left.retain(|(place, _)| {
                with_model(self.own, *place).is_none_or(|agent| Window::size_of(&agent) > window)
            });
        }
        left
    }

    /// Returns the models of the chain that the step has not given up, except the model at position `without`.
    fn left(&self, without: Option<u32>) -> Vec<(u32, ModelName)> {
        let others = self.own.fallback.iter().flat_map(|chain| &chain.models);
        let others = others.map(|other| ModelName {
            provider: other.provider.clone(),
            model: other.model.clone(),
        });
        let all = std::iter::once(ModelName::of(self.own)).chain(others);
        (0..)
            .zip(all)
            .filter(|(place, _)| Some(*place) != without && !self.at.given_up.contains(place))
            .collect()
    }
}

/// Returns the agent with the fallback model at this position; `None` for the agent's first model.
fn with_model(own: &AgentDefinition, place: u32) -> Option<AgentDefinition> {
    let place = usize::try_from(place.checked_sub(1)?).ok()?;
    let other = own.fallback.as_ref()?.models.get(place)?;
    Some(AgentDefinition {
        provider: other.provider.clone(),
        model: Some(other.model.clone()),
        context_window: other.context_window,
        prices: other.prices,
        assumed_output_tokens: other.assumed_output_tokens,
        no_images: other.no_images,
        no_pdfs: other.no_pdfs,
        ..own.clone()
    })
}

fn is_at_once(chain: &Fallback, code: &FailureCode) -> bool {
    chain
        .at_once_on
        .iter()
        .any(|listed| listed == code.as_str())
}

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
    let most = match error.code {
        FailureCode::LlmInvalidResponse => chain.after.min(fail::INVALID_REPLIES),
        _ => chain.after,
    };
    if pick.trial.is_some() || pick.at.failures + 1 >= most {
        Outcome::GivesUp
    } else {
        Outcome::Again
    }
}

impl ModelCall<'_> {
    /// Closes the circuit of the model, because the model has answered.
    pub(super) fn answered_by(&self, pick: &Pick<'_>) {
        if pick.own.fallback.is_some() {
            let circuits = &self.thinker.known.circuits;
            circuits.close(&ModelName::of(&pick.agent));
        }
    }

    /// Decides the consequence of a failed call, the step's `calls`th call, and notes the step's new position in the
    /// chain.
    pub(super) async fn failed(
        &self,
        pick: &Pick<'_>,
        error: &ModelError,
        calls: u32,
        listener: &Listener<'_>,
    ) -> ActivityError {
        let Some(chain) = &pick.own.fallback else {
            return fail::from_model(error, calls);
        };
        // The number of possibly billed calls is limited, however many models the chain has.
        let is_refused = is_refused(error, Some(listener.text));
        let is_over = !is_refused && calls >= fail::STEP_CALLS;
        let mut failed = FailedCall {
            chain: pick.at.clone(),
            calls: calls - u32::from(is_refused),
            fallback: None,
        };
        let retry = match outcome(pick, chain, error) {
            Outcome::Ends => return fail::of_chain(error, NextTry::Never),
            Outcome::Again if is_over => return fail::of_chain(error, NextTry::Never),
            Outcome::Again => {
                failed.chain.failures += 1;
                NextTry::AsProviderAsks
            }
            Outcome::GivesUp => {
                let circuits = &self.thinker.known.circuits;
                let from = ModelName::of(&pick.agent);
                if !error.code.is_about_the_request() {
                    circuits.open(&from);
                }
                let next = circuits.choose(&pick.after(&error.code));
                let Some((place, _)) = next.filter(|_| !is_over) else {
                    return fail::of_chain(error, NextTry::Never);
                };
                failed.chain.given_up.push(pick.at.place);
                failed.chain.place = place;
                failed.chain.failures = 0;
                failed.fallback = Some(self.fallback(pick, &from, place, error));
                NextTry::AtOnce
            }
        };
        let noted = self.note_failure(&failed, listener).await;
        noted.map_or_else(|other| other, |()| fail::of_chain(error, retry))
    }

    fn fallback(
        &self,
        pick: &Pick<'_>,
        from: &ModelName,
        to: u32,
        error: &ModelError,
    ) -> ModelFallback {
        let to = with_model(pick.own, to);
        let to = ModelName::of(to.as_ref().unwrap_or(pick.own));
        tracing::warn!(%from, %to, code = %error.code, %error, "another model is asked");
        ModelFallback {
            agent_execution_id: self.step.agent_execution_id.clone(),
            step: self.step.step,
            from: from.to_string(),
            to: to.to_string(),
            code: (&error.code).into(),
            message: error.message.clone(),
        }
    }

    /// Stores the step's position in the chain, and tells readers of the change to another model.
    async fn note_failure(
        &self,
        failed: &FailedCall,
        listener: &Listener<'_>,
    ) -> Result<(), ActivityError> {
        failpoint::reach("think.before_fallback").await;
        let turns = &self.thinker.turns;
        let noted = self
            .attempt
            .insist(|| turns.note_failed_call(self.step, self.generation, failed))
            .await?;
        match noted {
            NotedFailure::Superseded => Err(fail::superseded()),
            NotedFailure::Counted => Ok(()),
            NotedFailure::FellBack { last_sequence } => {
                failpoint::reach("think.after_fallback").await;
                let announcement = Announcement {
                    last_sequence,
                    sealed: Vec::new(),
                };
                readers::announce(&*self.thinker.stream, self.log_id, announcement).await;
                // No attempt reads a response of a model that was given up.
                if let Some(response) = listener.response() {
                    self.cancel_response(&response).await;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use everturn_proto::turn::FallbackModel;

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
        assert_eq!(with_model(&own, 0), None);
        let takes = |place| {
            let agent = with_model(&own, place).unwrap();
            assert_eq!(agent.instructions, "Be brief.");
            (agent.model.unwrap(), !agent.no_images, !agent.no_pdfs)
        };
        assert_eq!(takes(1), ("small".to_owned(), false, true));
        assert_eq!(takes(2), ("large".to_owned(), true, false));
    }

    fn places(models: &[(u32, ModelName)]) -> Vec<u32> {
        models.iter().map(|(place, _)| *place).collect()
    }

    #[test]
    fn only_a_larger_window_helps_against_a_context_that_is_too_long() {
        let agent = agent();
        let pick = Pick::of(&agent, None, &Circuits::new(Duration::ZERO));
        assert_eq!(places(&pick.after(&FailureCode::LlmUnavailable)), [1, 2]);
        assert_eq!(places(&pick.after(&FailureCode::LlmContextTooLong)), [2]);
        assert!(pick.leads_on(&FailureCode::LlmContextTooLong));
        assert!(!pick.leads_on(&FailureCode::LlmUnavailable));
        let at = ChainPlace {
            place: 2,
            failures: 0,
            given_up: vec![0],
        };
        let pick = Pick::of(&agent, Some(at), &Circuits::new(Duration::ZERO));
        assert_eq!(pick.other_model().as_deref(), Some("p/large"));
        assert_eq!(pick.agent.context_window, Some(2000));
        assert_eq!(places(&pick.after(&FailureCode::LlmUnavailable)), [1]);
        assert!(!pick.leads_on(&FailureCode::LlmContextTooLong));
    }

    #[test]
    fn a_model_is_given_up_after_so_many_failures() {
        let (agent, circuits) = (agent(), Circuits::new(Duration::from_mins(1)));
        let chain = agent.fallback.as_ref().unwrap();
        let after = |failures, code| {
            let at = ChainPlace {
                failures,
                ..ChainPlace::default()
            };
            let pick = Pick::of(&agent, Some(at), &circuits);
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
    }
}
