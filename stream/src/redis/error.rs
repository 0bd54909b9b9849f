//! Why the Redis stream could not do what it was asked.

use std::{io, path::PathBuf, time::Duration};

use crate::api::StreamError;

/// All of these mean to a caller that it goes on without live texts. They differ in when it tries again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("Redis is away; the next try is in {} ms", .0.as_millis())]
    Away(Duration),
    #[error("Redis did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the subscriber's connection was lost")]
    Lost,
    #[error("messages were missed, however often it was tried")]
    Missed,
    #[error("this process already follows {0} conversations")]
    Conversations(usize),
    #[error("the conversation already has {0} followers in this process")]
    Followers(usize),
    #[error("Redis answered with something else than this stream writes")]
    Odd,
    /// Says what is wrong, and not with which URL: it has a password.
    #[error("this is no URL of a Redis: {0}")]
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
