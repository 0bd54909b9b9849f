//! How errors become activity failures: what the engine retries, and the codes the workflow tells apart.

use std::time::Duration;

use everturn_proto::words::FailureCode;
use everturn_store::{Missing, StoreError};
use temporalio_common::{ActivityError, error::ApplicationFailure};
use temporalio_sdk::activities::ActivityContext;

use crate::model::ModelError;

/// A failure that trying again will not help.
pub(crate) fn permanent(code: FailureCode, message: impl Into<String>) -> ActivityError {
    ActivityError::application(
        ApplicationFailure::builder(message.into())
            .type_name(code.into())
            .non_retryable(true)
            .build(),
    )
}

/// A failure the engine retries by the activity's policy.
pub(crate) fn transient(code: FailureCode, message: impl Into<String>) -> ActivityError {
    ActivityError::application(
        ApplicationFailure::builder(message.into())
            .type_name(code.into())
            .build(),
    )
}

/// The failure of a call of the store. An error that is not known is transient for a while.
pub(crate) fn from_store(error: &StoreError, tries: Tries) -> ActivityError {
    match error {
        StoreError::Unavailable(_) => transient(FailureCode::StoreUnavailable, error.to_string()),
        StoreError::ObjectsUnavailable(_) => {
            transient(FailureCode::BlobsUnavailable, error.to_string())
        }
        StoreError::Unexpected(_) if tries.is_early() => {
            transient(FailureCode::Internal, error.to_string())
        }
        StoreError::NotFound {
            what: Missing::Message,
            ..
        } => permanent(FailureCode::UnknownMessage, error.to_string()),
        StoreError::NotFound {
            what: Missing::AgentExecution | Missing::Checkpoint | Missing::ToolExecution,
            ..
        } => permanent(FailureCode::StoreBehind, error.to_string()),
        StoreError::ForeignConversation(_) => {
            permanent(FailureCode::InvalidInput, error.to_string())
        }
        StoreError::RunReplaced { .. } => permanent(FailureCode::RunReplaced, error.to_string()),
        _ => permanent(FailureCode::Internal, error.to_string()),
    }
}

/// The store lacks steps that the run has saved, so the model would not know of them.
pub(crate) fn store_behind() -> ActivityError {
    permanent(
        FailureCode::StoreBehind,
        "The database went back to an earlier point, and lacks steps that this turn has made. Send the message again if \
         it still needs an answer.",
    )
}

/// How often an activity of the store was tried.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tries {
    /// As a local activity. An ordinary one follows.
    Local,
    /// As an ordinary activity, so often.
    Ordinary(u32),
    /// The attempt itself has tried for long enough.
    Over,
}

impl Tries {
    /// With the pauses between them (1 s, 2 s, 4 s …), some 30 s: an error that is not known has passed by then, or it
    /// stays.
    const EARLY: u32 = 6;

    pub(crate) fn of(ctx: &ActivityContext) -> Self {
        let info = ctx.info();
        if info.is_local {
            Self::Local
        } else {
            Self::Ordinary(info.attempt)
        }
    }

    fn is_early(self) -> bool {
        match self {
            Self::Local => true,
            Self::Ordinary(tries) => tries < Self::EARLY,
            Self::Over => false,
        }
    }
}

/// The store did not answer for as long as the attempt could wait.
pub(crate) fn store_away() -> ActivityError {
    transient(
        FailureCode::StoreUnavailable,
        "The store did not answer in time.",
    )
}

/// The call of the model was stopped, because another one of its step has begun or the turn has ended. If the engine
/// still waits for this attempt, it tries again, and the next attempt finds in the store what has happened.
pub(crate) fn superseded() -> ActivityError {
    transient(
        FailureCode::LlmUnavailable,
        "A newer call of this step has begun, so this one was stopped.",
    )
}

/// The pause before another worker is asked for what this one does not know: longer from try to try, and never so long
/// that a worker that has just started is found late.
const PAUSE_ELSEWHERE: Duration = Duration::from_secs(1);
const MAX_PAUSES_ELSEWHERE: u32 = 5;

/// This worker does not know what the attempt needs. The engine gives the next attempt to any worker of the queue. A
/// local activity runs at its worker only, so it ends, and the workflow asks again through the engine.
pub(crate) fn not_here(ctx: &ActivityContext, message: String) -> ActivityError {
    let info = ctx.info();
    let pause = PAUSE_ELSEWHERE * info.attempt.clamp(1, MAX_PAUSES_ELSEWHERE);
    let failure = ApplicationFailure::builder(message)
        .type_name(FailureCode::NotHere.into())
        .non_retryable(info.is_local)
        .next_retry_delay(pause)
        .build();
    ActivityError::application(failure)
}

/// What must be sent of the conversation is more than can be read at once, and nothing of it can be compacted.
pub(crate) fn too_long() -> ActivityError {
    permanent(
        FailureCode::LlmContextTooLong,
        "The turn's own messages are longer than what can be sent to a model. Begin a new conversation.",
    )
}

/// The call waited for its provider's limits for as long as the attempt could. The next attempt waits on.
pub(crate) fn waited_for_provider(provider: &str) -> ActivityError {
    transient(
        FailureCode::LlmRateLimited,
        format!(
            "The call waits for the limits of [providers.{provider}] in the configuration, and was not made yet."
        ),
    )
}

/// The step was called so often that calling it again would only cost more.
pub(crate) fn called_too_often() -> ActivityError {
    permanent(
        FailureCode::LlmUnavailable,
        format!(
            "The model was called {STEP_CALLS} times for this step, and its workers were lost before any reply could \
             be stored."
        ),
    )
}

/// A tool that may work at the next try.
pub(crate) fn tool_unavailable(message: String, retry_after: Option<Duration>) -> ActivityError {
    let failure = ApplicationFailure::builder(message)
        .type_name(FailureCode::ToolUnavailable.into())
        .maybe_next_retry_delay(retry_after)
        .build();
    ActivityError::application(failure)
}

/// How often a step's model is called, whichever workers and runs call it: each call may be paid for.
pub(crate) const STEP_CALLS: u32 = 6;
/// How often a call is made whose reply cannot be used. Each is paid for, and a model that gave the same nonsense twice
/// gives it again.
pub(crate) const INVALID_REPLIES: u32 = 2;

/// When a call that failed is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextTry {
    /// Never: the turn ends.
    Never,
    /// After what the provider says in Retry-After, or else after the pause of the engine.
    AsProviderAsks,
    /// At once, because another model is asked.
    AtOnce,
}

/// The shortest delay that the engine takes for one.
const AT_ONCE: Duration = Duration::from_millis(1);

/// The failure of a model call, which was the step's `calls`th.
pub(crate) fn from_model(error: &ModelError, calls: u32) -> ActivityError {
    let limit = if error.code == FailureCode::LlmInvalidResponse {
        INVALID_REPLIES
    } else {
        STEP_CALLS
    };
    if calls >= limit || !error.is_retryable() {
        of_chain(error, NextTry::Never)
    } else {
        of_chain(error, NextTry::AsProviderAsks)
    }
}

/// The failure of a model call, when it is known what it leads to.
pub(crate) fn of_chain(error: &ModelError, next: NextTry) -> ActivityError {
    let delay = match next {
        NextTry::Never | NextTry::AsProviderAsks => error.retry_after,
        NextTry::AtOnce => Some(AT_ONCE),
    };
    let failure = ApplicationFailure::builder(error.message.clone())
        .type_name(error.code.as_str().to_owned())
        .non_retryable(next == NextTry::Never)
        .maybe_next_retry_delay(delay)
        .build();
    ActivityError::application(failure)
}
