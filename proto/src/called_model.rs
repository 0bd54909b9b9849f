//! The model of a call among the models of an agent, and the longest answer of the model.

use crate::{
    money::ASSUMED_OUTPUT_TOKENS,
    turn::{AgentDefinition, FallbackModel},
};

impl FallbackModel {
    /// Returns the model's name, `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

impl AgentDefinition {
    /// Returns the agent with the fallback model at this position of the chain; `None` for the agent's first model.
    #[must_use]
    pub fn with_model(&self, position: u32) -> Option<Self> {
        let position = usize::try_from(position.checked_sub(1)?).ok()?;
        let other = self.fallback.as_ref()?.models.get(position)?;
        Some(self.with_first(other))
    }

    /// Returns the agent with another first model.
    fn with_first(&self, model: &FallbackModel) -> Self {
        Self {
            provider: model.provider.clone(),
            model: Some(model.model.clone()),
            context_window: model.context_window,
            prices: model.prices,
            assumed_output_tokens: model.assumed_output_tokens,
            no_images: model.no_images,
            no_pdfs: model.no_pdfs,
            ..self.clone()
        }
    }

    /// Returns the agent with the own model of another definition, and with that definition's parameters for the model's
    /// provider.
    #[must_use]
    pub fn with_model_of(&self, other: &Self) -> Self {
        Self {
            provider: other.provider.clone(),
            model: other.model.clone(),
            context_window: other.context_window,
            prices: other.prices,
            assumed_output_tokens: other.assumed_output_tokens,
            max_output_tokens: other.max_output_tokens,
            no_images: other.no_images,
            no_pdfs: other.no_pdfs,
            temperature: other.temperature,
            top_p: other.top_p,
            reasoning_effort: other.reasoning_effort.clone(),
            thinking_budget: other.thinking_budget,
            extra_body: other.extra_body.clone(),
            service_tier: other.service_tier.clone(),
            ..self.clone()
        }
    }

    /// Returns the name of the agent's own model, `provider/model`; `None` for an agent with only a name.
    pub fn own_model(&self) -> Option<String> {
        let model = self.model.as_ref()?;
        Some(format!("{}/{model}", self.provider))
    }

    /// Returns the names of the models that a message may choose: the agent's own model, then the other models.
    pub fn allowed_models(&self) -> Vec<String> {
        let others = self.models.iter().map(FallbackModel::name);
        self.own_model().into_iter().chain(others).collect()
    }

    /// Returns the definition of a turn whose message chose the model. The chosen model is the first model of the turn.
    /// The models of the agent's fallback follow the chosen model. For a model that the agent does not have, the definition
    /// has only a name and the unknown model.
    #[must_use]
    pub fn with_choice(self, chosen: Option<&str>) -> Self {
        let Some(chosen) = chosen else { return self };
        if self.is_only_a_name() || self.own_model().as_deref() == Some(chosen) {
            return self;
        }
        let Some(model) = self.models.iter().find(|model| model.name() == chosen) else {
            return Self {
                unknown_model: Some(chosen.to_owned()),
                ..Self::only_a_name(self.name)
            };
        };
        let mut agent = self.with_first(model);
        agent.models.clear();
        if let Some(chain) = &mut agent.fallback {
            chain.models.retain(|other| other.name() != chosen);
        }
        agent.fallback = agent.fallback.filter(|chain| !chain.models.is_empty());
        agent
    }

    /// Returns the definition of each turn of the agent: with the agent's own model, and with each model that a message
    /// may choose.
    pub fn of_turns(self) -> Vec<Self> {
        let others = self.models.iter().map(FallbackModel::name);
        let others: Vec<_> = others
            .map(|name| self.clone().with_choice(Some(&name)))
            .collect();
        std::iter::once(self).chain(others).collect()
    }

    /// Returns the tokens of the longest answer that a call may have, or a guess.
    pub fn longest_answer(&self) -> u32 {
        let assumed = self.assumed_output_tokens.unwrap_or(ASSUMED_OUTPUT_TOKENS);
        self.max_output_tokens.unwrap_or(assumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Fallback;

    fn model(name: &str, window: u32) -> FallbackModel {
        FallbackModel {
            provider: "p".to_owned(),
            model: name.to_owned(),
            context_window: Some(window),
            ..FallbackModel::default()
        }
    }

    fn agent() -> AgentDefinition {
        AgentDefinition {
            provider: "p".to_owned(),
            model: Some("own".to_owned()),
            context_window: Some(1000),
            models: vec![model("small", 10), model("large", 3000)],
            fallback: Some(Fallback {
                models: vec![model("large", 3000), model("last", 20)],
                ..Fallback::default()
            }),
            ..AgentDefinition::only_a_name("a".to_owned())
        }
    }

    #[test]
    fn a_turn_has_the_chosen_model_and_the_chain_after_it() {
        let own = agent();
        assert_eq!(own.allowed_models(), ["p/own", "p/small", "p/large"]);
        for own_choice in [None, Some("p/own")] {
            assert_eq!(own.clone().with_choice(own_choice), own);
        }
        let large = own.clone().with_choice(Some("p/large"));
        assert_eq!(large.allowed_models(), ["p/large"]);
        assert_eq!(large.context_window, Some(3000));
        let chain = large.fallback.unwrap().models;
        assert_eq!(chain, [model("last", 20)]);
        let mut short = own;
        short.fallback.as_mut().unwrap().models.pop();
        assert_eq!(short.with_choice(Some("p/large")).fallback, None);
    }

    #[test]
    fn a_model_that_the_agent_does_not_have_leaves_only_names() {
        let unknown = agent().with_choice(Some("p/other"));
        assert!(unknown.is_only_a_name());
        assert_eq!(unknown.unknown_model.as_deref(), Some("p/other"));
        assert_eq!(unknown.name, "a");
    }

    #[test]
    fn each_choice_has_a_definition() {
        let names = agent().of_turns().into_iter().map(|turn| turn.own_model());
        let names: Vec<_> = names.flatten().collect();
        assert_eq!(names, ["p/own", "p/small", "p/large"]);
    }
}
