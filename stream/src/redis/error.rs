//! Errors of the Redis stream.

use std::{io, path::PathBuf, time::Duration};

use crate::api::StreamError;

/// An error of the Redis stream. The caller always goes on without live texts. The variants differ in the time of the
/// next try.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("Redis is away; the next try is in {} ms", .0.as_millis())]
    Away(Duration),
    #[error("Redis did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the subscriber's connection was lost")]
    Lost,
    #[error("messages are missing after every attempt to read them")]
    Missed,
    #[error("this process already follows {0} conversations")]
    Conversations(usize),
    #[error("the conversation already has {0} followers in this process")]
    Followers(usize),
    #[error("Redis answered with an entry in an unknown format")]
    Odd,
    /// The message names the fault but not the URL, because the URL has a password.
    #[error("the address is not a Redis URL: {0}")]
    Url(&'static str),
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
}

impl From<Error> for StreamError {
    fn from(error: Error) -> Self {
        match error {
            Error::Away(_)
            | Error::Timeout(_)
            | Error::Lost
            | Error::Unreadable { .. }
            | Error::Redis(_) => Self::Away(Box::new(error)),
            Error::Missed
            | Error::Conversations(_)
            | Error::Followers(_)
            | Error::Url(_)
            | Error::Odd => Self::Failed(Box::new(error)),
        }
    }
}
