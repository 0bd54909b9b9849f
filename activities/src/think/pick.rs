//! The choice of the model for a call, at the step's position in the chain of an agent's models. No I/O is here.

use std::borrow::Cow;

use everturn_proto::{
    turn::{AgentDefinition, Fallback},
    words::FailureCode,
};
use everturn_store::ChainPosition;

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
    /// Picks the model at the step's stored position in the chain, or otherwise the first model with a closed circuit.
    pub(super) fn of(
        own: &'a AgentDefinition,
        noted: Option<ChainPosition>,
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
        if pick.at == ChainPosition::default()
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
