//! The reason of a try without a reply. A try that answers is in its checkpoint, and costs no further call of the store.

use everturn_proto::words::FailureCode;
use everturn_store::{FailedTry, ModelCalls, WorkerId};
use temporalio_common::ActivityError;

use super::{claimed::Claimed, model_name::ModelName, pick::Pick};
use crate::{storable::without_nul, store_call::counted};

/// The longest stored reason. Errors of providers are shorter, and a reason is a sentence.
const MAX_REASON_BYTES: usize = 500;

/// The code of a try that a cancel has stopped.
const CANCELLED: &str = "cancelled";

/// Notes the tries of a claimed call.
pub(super) struct Tries<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) model_calls: &'a dyn ModelCalls,
    pub(super) worker: &'a WorkerId,
    /// The number of tries that the step keeps.
    pub(super) keep: u32,
}

impl Tries<'_> {
    /// Notes a try that ended with `error`. A try that cannot be noted only lacks its reason, so the turn goes on.
    pub(super) async fn note(&self, pick: &Pick<'_>, error: &ActivityError) {
        let claimed = self.claimed;
        let Reason {
            code,
            mut text,
            is_final,
        } = reason(error);
        text.truncate(text.floor_char_boundary(MAX_REASON_BYTES));
        let retry_after = match error {
            ActivityError::Application(failure) if !is_final => failure.next_retry_delay(),
            _ => None,
        };
        let tried = FailedTry {
            generation: claimed.generation,
            model: ModelName::of(&pick.agent).to_string(),
            worker: self.worker.clone(),
            code,
            reason: without_nul(text),
            is_final,
            retry_after,
            started_at: claimed.started_at.into(),
            keep: self.keep,
        };
        let noted = counted(self.model_calls.note_try(claimed.step, &tried)).await;
        if let Err(error) = noted {
            tracing::warn!(%error, "the reason of a failed try could not be stored");
        }
    }
}

struct Reason {
    code: String,
    text: String,
    is_final: bool,
}

fn reason(error: &ActivityError) -> Reason {
    match error {
        ActivityError::Application(failure) => Reason {
            code: failure
                .type_name()
                .unwrap_or(FailureCode::Internal.as_str())
                .to_owned(),
            text: failure.source_error().to_string(),
            is_final: failure.is_non_retryable(),
        },
        // The enum may get more variants. A call ends by a failure or by a cancel.
        _ => Reason {
            code: CANCELLED.to_owned(),
            text: "The turn was cancelled, and the call was stopped.".to_owned(),
            is_final: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use everturn_models::ModelError;

    use super::*;
    use crate::failure::{self as fail, NextTry};

    #[test]
    fn a_reason_has_the_code_and_the_sentence_of_the_failure() {
        let error = ModelError::new(FailureCode::LlmOverloaded, "The provider is busy.");
        for (next, is_final) in [(NextTry::AtOnce, false), (NextTry::Never, true)] {
            let reason = reason(&fail::of_chain(&error, next));
            assert_eq!(reason.code, "llm_overloaded");
            assert_eq!(reason.text, "The provider is busy.");
            assert_eq!(reason.is_final, is_final);
        }
        let cancelled = reason(&ActivityError::cancelled());
        assert_eq!(
            (cancelled.code.as_str(), cancelled.is_final),
            ("cancelled", true)
        );
    }
}
