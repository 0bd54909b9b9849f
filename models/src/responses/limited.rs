//! The limits for reading an answer (invariant 10, nothing grows without a bound).

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use reqwest::Response;

use crate::{error::ModelError, silence::within};

/// The most bytes without the end of a line. An event is one line. The longest event is the last, with the whole
/// response.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// A stream that can no longer be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    /// The connection is lost.
    #[error(transparent)]
    Transport(reqwest::Error),
    /// A line does not end.
    #[error("a line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The provider was silent for too long.
    #[error(transparent)]
    Silent(ModelError),
}

/// Returns the chunks of a stream, and fails at a too long line, and after a silence longer than `silence`.
pub(super) fn limited_lines<B: AsRef<[u8]>>(
    chunks: impl Stream<Item = reqwest::Result<B>>,
    silence: Option<Duration>,
) -> impl Stream<Item = Result<B, LineError>> {
    let mut line = 0;
    Box::pin(heard(chunks, silence)).map(move |chunk| {
        let chunk = chunk?;
        let bytes = chunk.as_ref();
        line = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => bytes.len() - end,
            None => line + bytes.len(),
        };
        if line > MAX_LINE_BYTES {
            return Err(LineError::TooLong);
        }
        Ok(chunk)
    })
}

/// Returns the chunks of a stream, and fails after a silence longer than `silence`.
fn heard<B>(
    chunks: impl Stream<Item = reqwest::Result<B>>,
    silence: Option<Duration>,
) -> impl Stream<Item = Result<B, LineError>> {
    stream::unfold(Box::pin(chunks), move |mut chunks| async move {
        let chunk = match within(silence, chunks.next()).await {
            Ok(chunk) => chunk?.map_err(LineError::Transport),
            Err(silent) => Err(LineError::Silent(silent)),
        };
        Some((chunk, chunks))
    })
}

/// Returns the whole body of an answer; `None` when the body was cut, is longer than `limit` bytes, or stops for longer
/// than `silence`.
pub(super) async fn read_limited(
    answer: Response,
    limit: usize,
    silence: Option<Duration>,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut chunks = answer.bytes_stream();
    while let Some(chunk) = within(silence, chunks.next()).await.ok()? {
        let chunk = chunk.ok()?;
        if body.len() + chunk.len() > limit {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}
