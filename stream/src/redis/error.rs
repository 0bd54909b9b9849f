//! Why the Redis stream could not do what it was asked.

use std::time::Duration;

use crate::api::StreamError;

/// All of these mean the same to a caller: go on without live texts.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("Redis is away; the next try is in {} ms", .0.as_millis())]
    Away(Duration),
    #[error("Redis did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the subscriber's connection was lost")]
    Lost,
    #[error("this process already follows {0} conversations")]
    Conversations(usize),
    #[error("the conversation already has {0} followers in this process")]
    Followers(usize),
    #[error("Redis answered with something else than this stream writes")]
    Odd,
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
}

impl From<Error> for StreamError {
    fn from(error: Error) -> Self {
        Self(Box::new(error))
    }
}
