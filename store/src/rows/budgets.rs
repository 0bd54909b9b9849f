//! Rows of budgets, and the decision on a reservation.

use sqlx::FromRow;

use crate::{
    api::{BudgetLimit, Estimate, Exhausted, Reservation},
    columns::wide,
};

/// The reservation for a model call of an agent execution.
#[derive(FromRow)]
pub(crate) struct ReservedRow {
    pub(crate) root_execution_id: String,
    #[sqlx(rename = "reserved_tokens")]
    pub(crate) tokens: i64,
    #[sqlx(rename = "reserved_nano")]
    pub(crate) nano: i64,
    /// The called model, if the model is not the agent's own.
    #[sqlx(rename = "reserved_model")]
    pub(crate) other_model: Option<String>,
    pub(crate) provider: String,
    pub(crate) model: String,
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
