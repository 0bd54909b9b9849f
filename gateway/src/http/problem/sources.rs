//! Turns errors of the parts below into problems, by what a client can do about each. Nothing internal is told.

use everturn_store::{Missing, StoreError};

use super::{code::Code, response::Problem};
use crate::{limits::LimitReached, turns::TurnError};

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(source) => {
                tracing::warn!(error = %source, "the store is not available");
                Self::new(Code::StoreUnavailable, "Repeat the request in a moment.")
                    .retry_after_s(1)
            }
            StoreError::NotFound {
                what: Missing::Conversation,
                id,
            } => Self::conversation_not_found(&id),
            StoreError::NotFound { what, id } => {
                Self::new(Code::NotFound, format!("There is no {what} `{id}`."))
            }
            StoreError::QueueFull { limit } => {
                let detail = format!(
                    "{limit} messages wait already. Send this one again when a turn has ended."
                );
                Self::new(Code::QueueFull, detail).retry_after_s(5)
            }
            StoreError::TooManyTurns { limit } => {
                let detail = format!(
                    "Turns run or wait in {limit} conversations of your tenant. Send this message again when one has ended."
                );
                Self::new(Code::TooManyTurns, detail).retry_after_s(5)
            }
            StoreError::OtherContent { client_message_id } => {
                let detail = format!(
                    "A message with another text was sent as `{client_message_id}`. Choose another id."
                );
                Self::new(Code::IdempotencyConflict, detail)
            }
            StoreError::Conflict(detail) => {
                tracing::info!(detail, "a request conflicts with what is stored");
                Self::new(Code::Conflict, "Read what is stored before trying again.")
            }
            StoreError::RunReplaced { .. } => {
                tracing::error!(%error, "a gateway was taken for a run");
                Self::internal()
            }
            StoreError::Unexpected(source) => {
                tracing::error!(error = %source, "the store reports an error that is not known");
                Self::internal()
            }
            StoreError::Corrupt(detail) => {
                tracing::error!(detail, "the store holds something unexpected");
                Self::internal()
            }
        }
    }
}

impl From<LimitReached> for Problem {
    fn from(reached: LimitReached) -> Self {
        match reached {
            LimitReached::Requests { wait } => {
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
                let detail = "Your tenant sends more requests than this gateway allows. Wait, then send fewer.";
                Self::new(Code::RateLimited, detail).retry_after_s(seconds.saturating_add(1))
            }
            LimitReached::StreamsOfTenant { open } => {
                let detail =
                    format!("Your tenant has {open} streams open at this gateway. Close some.");
                Self::new(Code::TooManyStreamsOfTenant, detail).retry_after_s(5)
            }
            LimitReached::Streams => {
                Self::new(Code::TooManyStreams, "Connect again in a moment.").retry_after_s(5)
            }
        }
    }
}

impl From<TurnError> for Problem {
    fn from(error: TurnError) -> Self {
        tracing::warn!(error = %error, "the engine did not take a call");
        let detail = "Nothing is lost: a message that was sent is stored as queued. Repeating the request is safe; \
                      give the same message_id or Idempotency-Key to have the message stored once.";
        Self::new(Code::TemporalUnavailable, detail).retry_after_s(1)
    }
}
