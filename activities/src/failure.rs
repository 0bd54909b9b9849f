//! The conversion of errors into activity failures: the failures that the engine retries, and the codes for the
//! workflow.

use std::time::Duration;

use everturn_models::ModelError;
use everturn_proto::{
    limits::{LLM_FIRST_PAUSE_S, LLM_LONGEST_PAUSE_S},
    words::FailureCode,
};
use everturn_store::{Missing, StoreError};
use temporalio_common::{ActivityError, error::ApplicationFailure};
use temporalio_sdk::activities::ActivityContext;

/// Makes a failure that another attempt would repeat.
pub(crate) fn permanent(code: FailureCode, message: impl Into<String>) -> ActivityError {
    ActivityError::application(
        ApplicationFailure::builder(message.into())
            .type_name(code.into())
            .non_retryable(true)
            .build(),
    )
}

/// Makes a failure that the engine retries by the activity's policy.
pub(crate) fn transient(code: FailureCode, message: impl Into<String>) -> ActivityError {
    ActivityError::application(
        ApplicationFailure::builder(message.into())
            .type_name(code.into())
            .build(),
    )
}

/// Makes the failure of a call of the store. An unknown error is transient for a while.
pub(crate) fn from_store(error: &StoreError, tries: Tries) -> ActivityError {
    match error {
        StoreError::Unavailable(_) | StoreError::DiskFull(_) => {
            transient(FailureCode::StoreUnavailable, error.to_string())
        }
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
        StoreError::Superseded { .. } => superseded(),
        _ => permanent(FailureCode::Internal, error.to_string()),
    }
}

/// Makes the failure of a store without steps that the run has saved: the model would not know of the steps.
pub(crate) fn store_behind() -> ActivityError {
    permanent(
        FailureCode::StoreBehind,
        "The database went back to an earlier point, and lacks steps of the turn. Send the message again if you still \
         need an answer.",
    )
}

/// The number of attempts of a store activity so far.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tries {
    /// A local activity. An ordinary activity follows.
    Local,
    /// An ordinary activity, with the number of its attempts.
    Ordinary(u32),
    /// The attempt itself has tried for long enough.
    Over,
}

impl Tries {
    /// The number of early attempts. The attempts and their pauses (1 s, 2 s, 4 s …) take about 30 s: a temporary
    /// unknown error has passed by then.
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

/// Makes the failure of an attempt that waited for the store in vain.
pub(crate) fn store_away() -> ActivityError {
    transient(
        FailureCode::StoreUnavailable,
        "The store did not answer in time.",
    )
}

/// Makes the failure of a model call that was stopped, or came too late, because a newer call of its step has begun or the turn
/// has ended. If the engine still waits for this attempt, it tries again, and the next attempt finds the newer state in the
/// store. An attempt that the engine gave up may have begun the newer call, because its worker woke late.
pub(crate) fn superseded() -> ActivityError {
    transient(
        FailureCode::LlmUnavailable,
        "A newer call of the step has begun, and the older call was stopped.",
    )
}

/// The pause before another worker is asked. It grows with the attempts, but stays short enough to find a newly started
/// worker soon.
const PAUSE_ELSEWHERE: Duration = Duration::from_secs(1);
const MAX_PAUSES_ELSEWHERE: u32 = 5;

/// Makes the failure of an attempt for which this worker lacks an agent, a tool or a provider. The engine gives the
/// next attempt to any worker of the queue. A local activity is bound to its worker. Therefore it ends, and the
/// workflow schedules an ordinary activity.
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

/// Makes the failure of a context longer than one read, without a compactable part.
pub(crate) fn too_long() -> ActivityError {
    permanent(
        FailureCode::LlmContextTooLong,
        "The turn's own messages are longer than what can be sent to a model. Begin a new conversation.",
    )
}

/// Makes the failure of a call that gives its slot back, because the configured limits of its provider let no call begin.
/// The next attempt comes `after` this time, and waits on.
pub(crate) fn waits_for_provider(provider: &str, after: Duration) -> ActivityError {
    let message = format!(
        "The call waits for the limits of [providers.{provider}] in the configuration, and was not made yet."
    );
    let failure = ApplicationFailure::builder(message)
        .type_name(FailureCode::LlmRateLimited.into())
        .next_retry_delay(after.max(AT_ONCE))
        .build();
    ActivityError::application(failure)
}

/// Makes the failure of a call that has waited for the configured limits of its provider for the longest time.
pub(crate) fn waited_in_vain(provider: &str, limit: Duration) -> ActivityError {
    let minutes = limit.as_secs() / 60;
    permanent(
        FailureCode::LlmRateLimited,
        format!(
            "The call was not made, because the limits of [providers.{provider}] in the configuration left no room for \
             {minutes} minutes. Raise the limits, or add workers."
        ),
    )
}

/// Makes the failure of a step with so many calls that another call would only cost more.
pub(crate) fn called_too_often() -> ActivityError {
    permanent(
        FailureCode::LlmUnavailable,
        format!(
            "The model was called {STEP_CALLS} times for the step, and each time the worker was lost before a reply \
             could be stored."
        ),
    )
}

/// Makes the failure of a tool that may succeed at the next attempt.
pub(crate) fn tool_unavailable(message: String, retry_after: Option<Duration>) -> ActivityError {
    let failure = ApplicationFailure::builder(message)
        .type_name(FailureCode::ToolUnavailable.into())
        .maybe_next_retry_delay(retry_after)
        .build();
    ActivityError::application(failure)
}

/// The most calls of a step's model, over every worker and run: each call may be paid. Refused calls do not count.
pub(crate) const STEP_CALLS: u32 = 6;
/// The most calls with an unusable reply (`FailureCode::is_repeated_once`).
pub(crate) const UNUSABLE_REPLIES: u32 = 2;

/// The time of the next call after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextTry {
    /// Never: the turn ends.
    Never,
    /// After the provider's Retry-After, or otherwise after this pause. `None`: after the engine's pause.
    AsProviderAsks(Option<Duration>),
    /// After this pause.
    After(Duration),
    /// At once, because another model is asked.
    AtOnce,
}

/// The shortest delay that the engine does not treat as absent.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Returns the pause after the step's `calls`th failed call; `None` for the engine's own pause. The engine's pause
/// doubles with each attempt. Attempts that only waited would make the pause long, although the provider has failed once.
pub(crate) fn pause_after(calls: u32, attempts: u32) -> Option<Duration> {
    let longest = LLM_LONGEST_PAUSE_S / LLM_FIRST_PAUSE_S;
    let doubled = 1_u32.checked_shl(calls.saturating_sub(1));
    let pause = LLM_FIRST_PAUSE_S * doubled.unwrap_or(longest).min(longest);
    (attempts > calls).then(|| Duration::from_secs(pause.into()))
}

/// Makes the failure of a model call, the step's `calls`th call. `attempts` is the number of the engine's attempts.
pub(crate) fn from_model(error: &ModelError, calls: u32, attempts: u32) -> ActivityError {
    let limit = if error.code.is_repeated_once() {
        UNUSABLE_REPLIES
    } else {
        STEP_CALLS
    };
    if calls >= limit || !error.is_retryable() {
        of_chain(error, NextTry::Never)
    } else {
        of_chain(error, NextTry::AsProviderAsks(pause_after(calls, attempts)))
    }
}

/// Makes the failure of a model call with a known next call.
pub(crate) fn of_chain(error: &ModelError, next: NextTry) -> ActivityError {
    let delay = match next {
        NextTry::Never => error.retry_after,
        NextTry::AsProviderAsks(pause) => error.retry_after.or(pause),
        NextTry::After(pause) => Some(pause.max(AT_ONCE)),
        NextTry::AtOnce => Some(AT_ONCE),
    };
    let failure = ApplicationFailure::builder(error.message.clone())
        .type_name(error.code.as_str().to_owned())
        .non_retryable(next == NextTry::Never)
        .maybe_next_retry_delay(delay)
        .build();
    ActivityError::application(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_only_waited_make_no_pause_longer() {
        let seconds = |calls, attempts| pause_after(calls, attempts).map(|pause| pause.as_secs());
        assert_eq!(seconds(1, 1), None, "the engine's pause fits");
        for (calls, pause) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (50, 60)] {
            assert_eq!(seconds(calls, 500), Some(pause));
        }
    }

    #[test]
    fn a_call_behind_a_newer_claim_is_tried_again() {
        let superseded = StoreError::Superseded {
            agent_execution_id: "run".to_owned(),
            generation: 1,
        };
        // The newer claim may be of an attempt that the engine gave up, and this attempt is then the living one.
        let ActivityError::Application(failure) = from_store(&superseded, Tries::Over) else {
            panic!("no failure of the application");
        };
        assert!(!failure.is_non_retryable());
    }

    #[test]
    fn a_call_that_waits_for_its_provider_comes_again_after_a_time() {
        for (after, expected) in [(Duration::ZERO, AT_ONCE), (AT_ONCE * 7, AT_ONCE * 7)] {
            let ActivityError::Application(failure) = waits_for_provider("p", after) else {
                panic!("no failure of the application");
            };
            assert_eq!(failure.next_retry_delay(), Some(expected));
            assert!(!failure.is_non_retryable());
        }
    }
}
