//! Wraps the writing side of the stream, and counts its errors.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_proto::LogId;
use everturn_stream::{Announcement, Notice, Piece, Published, StreamError, StreamWriter};
use everturn_telemetry::process;

/// A stream writer with counted errors.
pub(super) struct MeasuredStream {
    stream: Arc<dyn StreamWriter>,
}

impl MeasuredStream {
    pub(super) fn new(stream: Arc<dyn StreamWriter>) -> Self {
        Self { stream }
    }
}

fn noted<T>(answer: Result<T, StreamError>) -> Result<T, StreamError> {
    if let Err(error) = &answer {
        process::stream_failed(matches!(error, StreamError::Away(_)));
    }
    answer
}

#[async_trait]
impl StreamWriter for MeasuredStream {
    async fn publish(&self, log: &LogId, piece: Piece) -> Result<Published, StreamError> {
        noted(self.stream.publish(log, piece).await)
    }

    async fn announce(&self, log: &LogId, announcement: Announcement) -> Result<(), StreamError> {
        noted(self.stream.announce(log, announcement).await)
    }

    async fn notify(&self, log: &LogId, notice: Notice) -> Result<(), StreamError> {
        noted(self.stream.notify(log, notice).await)
    }

    async fn may_publish(&self) {
        self.stream.may_publish().await;
    }
}
