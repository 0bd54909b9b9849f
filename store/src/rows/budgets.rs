//! Rows of budgets, and the decision on a reservation.

use everturn_proto::{money::ASSUMED_BYTES_PER_TOKEN, turn::AgentDefinition};
use sqlx::{FromRow, types::Json as Column};

use crate::{
    api::{BudgetLimit, ChainPosition, Estimate, Exhausted, OfStep, Reservation},
    columns::wide,
};

/// The facts about the last call of an agent execution.
#[derive(FromRow)]
pub(crate) struct OpenCallRow {
    pub(crate) root_execution_id: String,
    pub(crate) generation: i64,
    settled_generation: i64,
    called_step: i64,
    pub(crate) reserved_tokens: i64,
    pub(crate) reserved_nano: i64,
    reserved_model: Option<String>,
    model_chain: Option<Column<OfStep<ChainPosition>>>,
    definition: Column<AgentDefinition>,
    has_reply: bool,
    has_budget: bool,
    /// Bytes of the messages that the call has read.
    context_bytes: i64,
}

/// A call without a reply, with the possible usage.
pub(crate) struct Unanswered {
    /// `provider/model`.
    pub(crate) model: String,
    pub(crate) tokens: i64,
    pub(crate) nano: i64,
}

impl OpenCallRow {
    /// Returns the call without a reply, unless a newer generation than `last_called` made the call. A call has a
    /// reservation, or a note of its worker. Otherwise the worker has died, and the size of the context and the price
    /// of the model give an estimate.
    pub(crate) fn unanswered(&self, last_called: u32) -> Option<Unanswered> {
        if self.reserved_tokens > 0 {
            let own_model = || model_of(&self.definition);
            return Some(Unanswered {
                model: self.reserved_model.clone().unwrap_or_else(own_model),
                tokens: self.reserved_tokens,
                nano: self.reserved_nano,
            });
        }
        let called = self.generation.min(i64::from(last_called));
        if self.has_budget || self.has_reply || self.settled_generation >= called {
            return None;
        }
        let chain = self.model_chain.as_ref().map(|stored| &stored.0);
        let chain = chain.filter(|stored| i64::from(stored.step) == self.called_step);
        let agent = chain.and_then(|stored| self.definition.with_model(stored.value.position));
        let agent = agent.as_ref().unwrap_or(&self.definition);
        let bytes = u64::try_from(self.context_bytes).unwrap_or_default();
        let bytes = bytes + agent.instructions.len() as u64;
        let most = Estimate::of(agent, bytes / ASSUMED_BYTES_PER_TOKEN);
        Some(Unanswered {
            model: model_of(agent),
            tokens: wide(most.tokens),
            nano: wide(most.nano_usd),
        })
    }
}

fn model_of(agent: &AgentDefinition) -> String {
    model_name(&agent.provider, agent.model.as_deref().unwrap_or_default())
}

/// Returns the name of a model in the sums: `provider/model`.
pub(crate) fn model_name(provider: &str, model: &str) -> String {
    format!("{provider}/{model}")
}

/// A budget, with the agent execution that requests a part.
#[derive(FromRow)]
pub(crate) struct BudgetRow {
    max_steps: Option<i64>,
    max_tokens: Option<i64>,
    max_nano: Option<i64>,
    max_conversation_tokens: Option<i64>,
    max_conversation_nano: Option<i64>,
    max_day_tokens: Option<i64>,
    max_day_nano: Option<i64>,
    turn_steps: i64,
    turn_tokens: i64,
    turn_nano: i64,
    conversation_tokens: i64,
    conversation_nano: i64,
    reserved_tokens: i64,
    reserved_nano: i64,
    day_tokens: i64,
    day_nano: i64,
    generation: i64,
    reserved_step: i64,
    own_tokens: i64,
}

impl BudgetRow {
    /// Returns true if the call has a reservation already. The earlier response was lost on its way.
    pub(crate) fn has_reserved(&self, step: u32, generation: u32) -> bool {
        self.own_tokens > 0 && self.reserved_step == i64::from(step) && self.is_of(generation)
    }

    /// Returns true if the generation is the newest claim of the agent execution.
    pub(crate) fn is_of(&self, generation: u32) -> bool {
        self.generation == i64::from(generation)
    }

    /// Returns the first limit that the call exceeds, or [`Reservation::Made`].
    pub(crate) fn decide(&self, step: u32, call: Estimate) -> Reservation {
        use BudgetLimit as Limit;
        let new_steps = i64::from(self.reserved_step < i64::from(step));
        let (tokens, nano) = (self.reserved_tokens, self.reserved_nano);
        let limits = [
            (Limit::Steps, self.max_steps, self.turn_steps, 0, new_steps),
            (
                Limit::Tokens,
                self.max_tokens,
                self.turn_tokens,
                tokens,
                wide(call.tokens),
            ),
            (
                Limit::Usd,
                self.max_nano,
                self.turn_nano,
                nano,
                wide(call.nano_usd),
            ),
            (
                Limit::ConversationTokens,
                self.max_conversation_tokens,
                self.conversation_tokens,
                tokens,
                wide(call.tokens),
            ),
            (
                Limit::ConversationUsd,
                self.max_conversation_nano,
                self.conversation_nano,
                nano,
                wide(call.nano_usd),
            ),
            (
                Limit::DayTokens,
                self.max_day_tokens,
                self.day_tokens,
                tokens,
                wide(call.tokens),
            ),
            (
                Limit::DayUsd,
                self.max_day_nano,
                self.day_nano,
                nano,
                wide(call.nano_usd),
            ),
        ];
        let used_up = limits
            .into_iter()
            .find_map(|(limit, most, taken, reserved, more)| {
                let most = most?;
                let sum = taken.saturating_add(reserved).saturating_add(more);
                let positive = |number: i64| u64::try_from(number).unwrap_or_default();
                (sum > most).then(|| Exhausted {
                    limit,
                    most: positive(most),
                    taken: positive(taken),
                    reserved: positive(reserved),
                })
            });
        used_up.map_or(Reservation::Made, Reservation::Exhausted)
    }
}
