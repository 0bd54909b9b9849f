//! The model of a call among the models of an agent, and the longest answer of the model.

use crate::{money::ASSUMED_OUTPUT_TOKENS, turn::AgentDefinition};

impl AgentDefinition {
    /// Returns the agent with the fallback model at this position of the chain; `None` for the agent's first model.
    #[must_use]
    pub fn with_model(&self, position: u32) -> Option<Self> {
        let position = usize::try_from(position.checked_sub(1)?).ok()?;
        let other = self.fallback.as_ref()?.models.get(position)?;
        Some(Self {
            provider: other.provider.clone(),
            model: Some(other.model.clone()),
            context_window: other.context_window,
            prices: other.prices,
            assumed_output_tokens: other.assumed_output_tokens,
            no_images: other.no_images,
            no_pdfs: other.no_pdfs,
            ..self.clone()
        })
    }

    /// Returns the tokens of the longest answer that a call may have, or a guess.
    pub fn longest_answer(&self) -> u32 {
        let assumed = self.assumed_output_tokens.unwrap_or(ASSUMED_OUTPUT_TOKENS);
        self.max_output_tokens.unwrap_or(assumed)
    }
}
