//! The limits for reading an answer (invariant 10, nothing grows without a bound).

use futures::{Stream, StreamExt};
use reqwest::Response;

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
}

/// Returns the chunks of a stream, and fails at a too long line.
pub(super) fn limited_lines<B: AsRef<[u8]>>(
    chunks: impl Stream<Item = reqwest::Result<B>>,
) -> impl Stream<Item = Result<B, LineError>> {
    let mut line = 0;
    chunks.map(move |chunk| {
        let chunk = chunk.map_err(LineError::Transport)?;
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

/// Returns the whole body of an answer; `None` when the body was cut, or is longer than `limit` bytes.
pub(super) async fn read_limited(answer: Response, limit: usize) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut chunks = answer.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.ok()?;
        if body.len() + chunk.len() > limit {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}
