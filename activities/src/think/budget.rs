//! The budget of a model call: the call's possible cost is reserved before the call. In a turn without a budget, the
//! possible cost is noted after a call without a reply.

use everturn_models::{BytesPerToken, ModelError};
use everturn_proto::{money, turn::AgentDefinition, words::FailureCode};
use everturn_store::{
    BudgetLimit, CutCall, Estimate, Exhausted, ModelCalls, ModelContext, Reservation,
};
use everturn_stream::{Part, TextWriter};
use everturn_supervisor::failpoint;
use temporalio_common::ActivityError;

use super::{
    claimed::Claimed,
    pick::Pick,
    window::{Window, message_bytes},
};
use crate::{failure as fail, store_call::counted};

/// The budget of a claimed call.
#[derive(Clone, Copy)]
pub(super) struct Budget<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) model_calls: &'a dyn ModelCalls,
    /// True when the turn has a budget, of which the call reserves a part.
    pub(super) is_limited: bool,
}

impl Budget<'_> {
    /// Reserves the possible cost of a call with about `input_tokens` input tokens. The failure names the exceeded
    /// limit. In a turn without a budget, only this worker remembers the possible cost.
    pub(super) async fn reserve(
        &self,
        pick: &Pick<'_>,
        input_tokens: u64,
    ) -> Result<(), ActivityError> {
        let call = Estimate::of(&pick.agent, input_tokens);
        let other_model = pick.other_model();
        if !self.is_limited {
            let open = CutCall {
                most: call,
                other_model,
            };
            self.claimed.open_call.set(Some(open));
            return Ok(());
        }
        let (model_calls, claimed) = (self.model_calls, self.claimed);
        let (step, generation) = (claimed.step, claimed.generation);
        let reservation = claimed
            .attempt
            .insist(|| model_calls.reserve_call(step, generation, call, other_model.as_deref()))
            .await?;
        match reservation {
            Reservation::Made => {
                failpoint::reach("think.after_reserve").await;
                Ok(())
            }
            Reservation::Exhausted(exhausted) => Err(fail::permanent(
                FailureCode::BudgetExhausted,
                sentence(&exhausted, call),
            )),
        }
    }

    /// Gives back the reservation of a call that the provider refused before the first token. After any other failure
    /// the call was probably billed, and its reservation stays until the step is claimed again or the turn ends.
    pub(super) async fn give_back(&self, error: &ModelError, text: Option<&TextWriter>) {
        if !is_refused(error, text) {
            return;
        }
        if !self.is_limited {
            self.claimed.open_call.set(None);
            return;
        }
        let Claimed {
            step, generation, ..
        } = *self.claimed;
        let released = self.model_calls.release_call(step, generation);
        if let Err(error) = counted(released).await {
            tracing::warn!(%error, "the reservation of a refused call stays until the step is called again");
        }
    }

    /// Notes the end of an attempt without a reply. A call that was made probably costs its maximum. The reservation of
    /// a turn with a budget says the same, so the store needs no note.
    pub(super) async fn unanswered(&self) {
        if self.is_limited {
            return;
        }
        let Claimed {
            step, generation, ..
        } = *self.claimed;
        let cut = self.claimed.open_call.take();
        let noted = (self.model_calls).note_unanswered_call(step, generation, cut.as_ref());
        if let Err(error) = counted(noted).await {
            tracing::warn!(%error, "a call without a reply counts as cut, with an estimate of the store");
        }
    }
}

/// Returns the estimated tokens of a call with this context, without its tools.
pub(super) fn estimated_tokens(
    agent: &AgentDefinition,
    context: &ModelContext,
    measure: BytesPerToken,
) -> u64 {
    let bytes: usize = context.messages.iter().map(message_bytes).sum();
    let read = Window::of(agent, measure).tokens(agent.instructions.len() + bytes);
    read + u64::from(agent.longest_answer())
}

/// True for a call that the provider refused before the first token, and does not bill.
pub(super) fn is_refused(error: &ModelError, text: Option<&TextWriter>) -> bool {
    let is_silent =
        text.is_none_or(|text| Part::all().all(|part| text.text_so_far(part).is_empty()));
    error.is_refused && is_silent
}

/// Returns a sentence about the limit that the call exceeds.
fn sentence(exhausted: &Exhausted, call: Estimate) -> String {
    let Exhausted {
        limit,
        most,
        taken,
        reserved,
    } = *exhausted;
    let (of, key) = match limit {
        BudgetLimit::Steps => ("turn", "budget.steps"),
        BudgetLimit::Tokens => ("turn", "budget.tokens"),
        BudgetLimit::Usd => ("turn", "budget.usd"),
        BudgetLimit::ConversationTokens => ("conversation", "budget.conversation_tokens"),
        BudgetLimit::ConversationUsd => ("conversation", "budget.conversation_usd"),
        BudgetLimit::DayTokens => ("tenant's day", "tenant_budget.tokens"),
        BudgetLimit::DayUsd => ("tenant's day", "tenant_budget.usd"),
    };
    let amounts = |most: String, taken: String, reserved: String, next: String, unit: &str| {
        format!(
            "The {of} has taken {taken} of {most} {unit}, running calls may take {reserved}, and the next call may \
             take {next}. Raise `{key}` to allow more."
        )
    };
    match limit {
        BudgetLimit::Steps => format!(
            "The turn and the turn's sub-agents have made {most} calls, the limit of the budget. Raise `{key}` to \
             allow more."
        ),
        BudgetLimit::Tokens | BudgetLimit::ConversationTokens | BudgetLimit::DayTokens => {
            let [most, taken, reserved, next] =
                [most, taken, reserved, call.tokens].map(|number| number.to_string());
            amounts(most, taken, reserved, next, "tokens")
        }
        BudgetLimit::Usd | BudgetLimit::ConversationUsd | BudgetLimit::DayUsd => {
            let [most, taken, reserved, next] =
                [most, taken, reserved, call.nano_usd].map(money::usd);
            amounts(most, taken, reserved, next, "USD")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_what_is_left() {
        let exhausted = Exhausted {
            limit: BudgetLimit::Usd,
            most: 50_000_000,
            taken: 42_000_000,
            reserved: 0,
        };
        let call = Estimate {
            tokens: 4096,
            nano_usd: 9_000_000,
        };
        let expected = "The turn has taken 0.042 of 0.05 USD, running calls may take 0, and the next call may take \
                        0.009. Raise `budget.usd` to allow more.";
        assert_eq!(sentence(&exhausted, call), expected);
    }
}
