//! Turns errors of the store, the limits and the engine into problems. The conversion chooses the code by the client's
//! possible reaction, and shows no internals.

use everturn_proto::ConversationName;
use everturn_store::{Missing, RefusedBlob, StoreError, UploadError};

use super::{code::Code, response::Problem};
use crate::{
    limits::{LimitReached, Party},
    turns::TurnError,
};

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(source) => {
                tracing::warn!(error = %source, "the store is not available");
                Self::away_for_a_moment(Code::StoreUnavailable)
            }
            StoreError::DiskFull(source) => {
                tracing::warn!(error = %source, "the disk of the store is full");
                let detail = "The disk of the store is full. Repeat the request when an operator has freed space.";
                Self::new(Code::StoreUnavailable, detail).retry_after_s(10)
            }
            StoreError::NotFound {
                what: Missing::Conversation,
                id,
            } => Self::conversation_not_found(ConversationName::of_id(&id)),
            StoreError::NotFound {
                what: Missing::Blob,
                id,
            } => Self::blob_not_found(&id),
            StoreError::NotFound { what, id } => {
                Self::new(Code::NotFound, format!("No {what} has the id `{id}`."))
            }
            StoreError::QueueFull { limit } => {
                let detail = format!(
                    "{limit} messages wait already. Send the message again when a turn has ended."
                );
                Self::new(Code::QueueFull, detail).retry_after_s(5)
            }
            StoreError::TooManyTurns { limit, of } => {
                let detail = format!(
                    "Turns run or wait in {limit} conversations of the {of}. Send the message again when a turn has ended."
                );
                Self::new(Code::TooManyTurns, detail).retry_after_s(5)
            }
            StoreError::OtherContent { client_message_id } => {
                let detail =
                    format!("Other content has the id `{client_message_id}`. Choose a new id.");
                Self::new(Code::IdempotencyConflict, detail)
            }
            StoreError::NotRetryable(why) => Self::new(Code::NotRetryable, why.to_string()),
            StoreError::TooManyBlobs { limit } => {
                let detail = format!(
                    "Your tenant has {limit} bytes of files without a message. Name the files in messages, or wait: the \
                     gateway removes a file without a message after a day."
                );
                Self::new(Code::TooManyBlobs, detail).retry_after_s(60)
            }
            StoreError::AttachmentsTooLarge { limit } => Self::new(
                Code::TooManyAttachments,
                format!("A message may have at most {limit} bytes of attachments."),
            ),
            StoreError::ObjectsUnavailable(detail) => {
                tracing::warn!(detail, "the object store is not available");
                Self::away_for_a_moment(Code::BlobsUnavailable)
            }
            StoreError::Conflict(detail) => {
                tracing::info!(detail, "a request conflicts with stored data");
                Self::new(Code::Conflict, "Read the stored data, then try again.")
            }
            StoreError::RunReplaced { .. }
            | StoreError::Superseded { .. }
            | StoreError::ForeignConversation(_)
            | StoreError::Unexpected(_)
            | StoreError::Corrupt(_) => {
                tracing::error!(%error, "the store reports an error that no request causes");
                Self::internal()
            }
        }
    }
}

impl Problem {
    fn away_for_a_moment(code: Code) -> Self {
        Self::new(code, "Repeat the request in a moment.").retry_after_s(1)
    }
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        let refused = match error {
            UploadError::Store(error) => return error.into(),
            UploadError::Refused(refused) => refused,
        };
        let code = match &refused {
            RefusedBlob::TooLarge { .. } => Code::BlobTooLarge,
            RefusedBlob::Empty => Code::InvalidBody,
            RefusedBlob::Type { .. } | RefusedBlob::NotWhatItSays { .. } => Code::BlobTypeRefused,
        };
        Self::new(code, refused.to_string())
    }
}

impl From<LimitReached> for Problem {
    fn from(reached: LimitReached) -> Self {
        match reached {
            LimitReached::Requests { of, wait } => {
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
                let detail = match of {
                    Party::Tenant => {
                        "Your tenant sends too many requests. Wait, then send fewer requests."
                    }
                    Party::Owner => {
                        "You send more requests than an owner may. Wait, then send fewer requests."
                    }
                };
                Self::new(Code::RateLimited, detail).retry_after_s(seconds.saturating_add(1))
            }
            LimitReached::StreamsOf { of, open } => {
                let (code, who) = match of {
                    Party::Tenant => (Code::TooManyStreamsOfTenant, "Your tenant has"),
                    Party::Owner => (Code::TooManyStreamsOfOwner, "You have"),
                };
                Self::new(
                    code,
                    format!("{who} {open} streams open. Close some streams."),
                )
                .retry_after_s(5)
            }
            LimitReached::Streams => {
                Self::new(Code::TooManyStreams, "Connect again in a moment.").retry_after_s(5)
            }
        }
    }
}

impl From<TurnError> for Problem {
    fn from(error: TurnError) -> Self {
        tracing::warn!(error = %error, "a call to the workflow engine failed");
        let detail = "No message is lost: a sent message is stored as queued. Repeating the request is safe; with an \
                      unchanged message_id or Idempotency-Key, the message is stored once.";
        Self::new(Code::TemporalUnavailable, detail).retry_after_s(1)
    }
}
