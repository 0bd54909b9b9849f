//! The choice of the model for a call, at the step's position in the chain of an agent's models. No I/O is here.

use std::borrow::Cow;

use everturn_proto::{
    turn::{AgentDefinition, Fallback},
    words::FailureCode,
};
use everturn_store::{BackgroundResponse, ChainPosition};

use super::{
    circuits::{Circuits, Trial},
    model_name::ModelName,
    window::Window,
};

/// The model for a call.
pub(super) struct Pick<'a> {
    pub(super) own: &'a AgentDefinition,
    /// The agent's definition with this model instead of the agent's first model.
    pub(super) agent: Cow<'a, AgentDefinition>,
    pub(super) at: ChainPosition,
    /// Set when the call tries a model whose circuit was open.
    pub(super) trial: Option<Trial>,
}

impl<'a> Pick<'a> {
    /// Picks the model that makes a response for the step in the background, then the model at the step's stored position
    /// in the chain, or otherwise the first model with a closed circuit. A response is paid, whatever this worker knows of
    /// circuits.
    pub(super) fn of(
        own: &'a AgentDefinition,
        noted: Option<ChainPosition>,
        running: Option<&BackgroundResponse>,
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
        if let Some(position) = running.and_then(|response| pick.position_of(response)) {
            pick.at.position = position;
        } else if pick.at == ChainPosition::default()
            && let Some((position, trial)) = circuits.choose(&pick.left(None))
        {
            pick.at.position = position;
            pick.trial = trial;
        }
        if let Some(agent) = own.with_model(pick.at.position) {
            pick.agent = Cow::Owned(agent);
        }
        pick
    }

    /// Replaces a model whose provider was removed from the configuration. The agent's own model gives way to the own
    /// model of `present`, the agent's definition in the present configuration; otherwise to the next model of the chain.
    /// A model of the chain gives way in the opposite order, because the chain has left the agent's own model before.
    /// Returns false when no model is left.
    pub(super) fn replace_model(
        &mut self,
        present: Option<&AgentDefinition>,
        has_provider: impl Fn(&str) -> bool,
    ) -> bool {
        let (own, removed) = (self.own, self.at.position);
        let present = present.filter(|agent| has_provider(&agent.provider));
        let present = present.map(|agent| (removed, own.with_model_of(agent)));
        let mut chain = self.left(Some(removed)).into_iter();
        let next = chain.find(|(_, name)| has_provider(&name.provider));
        let next = next.map(|(position, _)| {
            let agent = own.with_model(position).unwrap_or_else(|| own.clone());
            (position, agent)
        });
        let found = if removed == 0 {
            present.or(next)
        } else {
            next.or(present)
        };
        let Some((position, agent)) = found else {
            return false;
        };
        if position != removed {
            (self.at.position, self.at.failures) = (position, 0);
        }
        self.trial = None;
        self.agent = Cow::Owned(agent);
        true
    }

    /// Returns the position of the model that makes a response.
    fn position_of(&self, response: &BackgroundResponse) -> Option<u32> {
        let is_of =
            |name: &ModelName| name.provider == response.provider && name.model == response.model;
        let mut models = self.left(None).into_iter();
        let found = models.find(|(_, name)| is_of(name));
        found.map(|(position, _)| position)
    }

    /// Returns the name of the model, unless it is the agent's first model.
    pub(super) fn other_model(&self) -> Option<String> {
        (self.at.position > 0).then(|| ModelName::of(&self.agent).to_string())
    }

    /// True when a failure with this code leads to another model at once.
    pub(super) fn leads_on(&self, code: &FailureCode) -> bool {
        let chain = self.own.fallback.as_ref();
        chain.is_some_and(|chain| is_at_once(chain, code)) && !self.after(code).is_empty()
    }

    /// Returns the models to ask next, after this model's failure with `code`.
    pub(super) fn after(&self, code: &FailureCode) -> Vec<(u32, ModelName)> {
        let window = Window::size_of(&self.agent);
        let mut left = self.left(Some(self.at.position));
        if *code == FailureCode::LlmContextTooLong {
            // A model with an equal or smaller window would refuse the context, too.
            left.retain(|(position, _)| {
                self.own
                    .with_model(*position)
                    .is_none_or(|agent| Window::size_of(&agent) > window)
            });
        }
        left
    }

    /// Returns the models to ask after a wait: all except these that the step has given up.
    pub(super) fn after_wait(&self, given_up: &[u32]) -> Vec<(u32, ModelName)> {
        let mut all = self.models();
        all.retain(|(position, _)| !given_up.contains(position));
        all
    }

    /// Returns the models of the chain that the step may call now, except the model at position `without`.
    fn left(&self, without: Option<u32>) -> Vec<(u32, ModelName)> {
        let mut left = self.models();
        left.retain(|(position, _)| {
            let is_out = |models: &[u32]| models.contains(position);
            Some(*position) != without && !is_out(&self.at.given_up) && !is_out(&self.at.refusing)
        });
        left
    }

    /// Returns the models of the chain with their positions.
    fn models(&self) -> Vec<(u32, ModelName)> {
        let others = self.own.fallback.iter().flat_map(|chain| &chain.models);
        let others = others.map(|other| ModelName {
            provider: other.provider.clone(),
            model: other.model.clone(),
        });
        let all = std::iter::once(ModelName::of(self.own)).chain(others);
        (0..).zip(all).collect()
    }
}

/// True when a failure with this code leads to another model at once.
pub(super) fn is_at_once(chain: &Fallback, code: &FailureCode) -> bool {
    chain
        .at_once_on
        .iter()
        .any(|listed| listed == code.as_str())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use everturn_proto::turn::FallbackModel;

    use super::*;

    /// An agent with these models, `provider/model`. The first model is the agent's own.
    fn agent(models: &[(&str, &str)]) -> AgentDefinition {
        let mut models = models.iter().map(|(provider, model)| FallbackModel {
            provider: (*provider).to_owned(),
            model: (*model).to_owned(),
            ..FallbackModel::default()
        });
        let own = models.next().unwrap();
        AgentDefinition {
            provider: own.provider,
            model: Some(own.model),
            fallback: Some(Fallback {
                models: models.collect(),
                ..Fallback::default()
            }),
            ..AgentDefinition::only_a_name("a".to_owned())
        }
    }

    #[test]
    fn a_model_without_a_provider_gives_way() {
        let own = agent(&[("old", "own"), ("p", "second"), ("old", "third")]);
        let (new, lost) = (agent(&[("new", "own")]), agent(&[("lost", "own")]));
        let circuits = Circuits::new(Duration::from_mins(1));
        let replaced = |position, given_up: &[u32], present: Option<&AgentDefinition>| {
            let at = ChainPosition {
                position,
                given_up: given_up.to_vec(),
                ..ChainPosition::default()
            };
            let mut pick = Pick::of(&own, Some(at), None, &circuits);
            let is_replaced = pick.replace_model(present, |name| name == "p" || name == "new");
            let name = ModelName::of(&pick.agent).to_string();
            is_replaced.then_some((pick.at.position, name))
        };
        let is = |position, name: &str| Some((position, name.to_owned()));
        assert_eq!(replaced(0, &[], Some(&new)), is(0, "new/own"));
        assert_eq!(replaced(0, &[], Some(&lost)), is(1, "p/second"));
        assert_eq!(replaced(0, &[], None), is(1, "p/second"));
        assert_eq!(replaced(0, &[1], None), None);
        assert_eq!(replaced(2, &[0], Some(&new)), is(1, "p/second"));
        assert_eq!(replaced(2, &[0, 1], Some(&new)), is(2, "new/own"));
        assert_eq!(replaced(2, &[0, 1], Some(&lost)), None);
    }

    #[test]
    fn a_response_in_the_background_is_read_by_its_model() {
        let agent = agent(&[("p", "own"), ("p", "second"), ("p", "third")]);
        let response = |model: &str| BackgroundResponse {
            provider: "p".to_owned(),
            model: model.to_owned(),
            id: "resp_1".to_owned(),
        };
        let circuits = Circuits::new(Duration::from_mins(1));
        let position = |model: Option<&str>| {
            let running = model.map(response);
            let pick = Pick::of(&agent, None, running.as_ref(), &circuits);
            pick.at.position
        };
        assert_eq!(position(Some("third")), 2);
        circuits.open(&ModelName::of(&agent));
        assert_eq!(position(None), 1);
        assert_eq!(position(Some("own")), 0);
        assert_eq!(position(Some("gone")), 1);
    }
}
