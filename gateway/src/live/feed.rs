//! The response body, made from a reader's frames.
//!
//! The HTTP connection polls the body for chunks, so no task runs for the body. Frames of the live tail wait in the
//! reader's bounded queue. Dropping the body drops the reader and has no effect on the turn.

use std::sync::Arc;

use axum::body::Bytes;
use everturn_telemetry::gateway as telemetry;
use futures::{Stream, future::BoxFuture};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    end::ReaderEnd,
    frame::LiveFrame,
    reader::LiveReader,
    sse::{self, RenderedFrame, StreamEnd},
};
use crate::{config::GatewayConfig, limits::StreamPermit};

/// The approximate size of a body chunk during a replay, in bytes.
const CHUNK: usize = 16 * 1024;

/// A stream of server-sent events.
pub struct Feed {
    reader: LiveReader,
    /// The message of the requested turn. The feed ends with the turn. `None` means every turn of the conversation.
    turn: Option<String>,
    /// Text before the reader's frames.
    preface: String,
    config: Arc<GatewayConfig>,
    /// Cancelled when the gateway closes its streams.
    closing: CancellationToken,
    /// Resolves when the reader's credential is no longer valid.
    until: BoxFuture<'static, ()>,
    /// The reason in the last frame. The feed sends the last frame after every other frame.
    last: Option<StreamEnd>,
    is_over: bool,
    _permit: StreamPermit,
}

impl Feed {
    /// Makes a feed of the reader's frames. The frame `replay` comes first.
    pub(crate) fn new(
        reader: LiveReader,
        replay: &str,
        config: Arc<GatewayConfig>,
        closing: CancellationToken,
        permit: StreamPermit,
    ) -> Self {
        Self {
            reader,
            turn: None,
            preface: sse::retry(config.retry_delay()) + replay,
            config,
            closing,
            until: Box::pin(std::future::pending()),
            last: None,
            is_over: false,
            _permit: permit,
        }
    }

    /// Restricts the feed to the turn of a message. The feed ends with the turn.
    #[must_use]
    pub(crate) fn of_turn(mut self, message_id: &str) -> Self {
        let conversation = self.reader.conversation_name();
        self.preface
            .push_str(&sse::conversation(conversation, message_id));
        self.turn = Some(message_id.to_owned());
        self
    }

    /// Ends the feed when `until` resolves, because the reader's credential is no longer valid.
    #[must_use]
    pub fn until(self, until: BoxFuture<'static, ()>) -> Self {
        Self { until, ..self }
    }

    /// Returns the chunks of the body up to the end.
    pub fn into_chunks(self) -> impl Stream<Item = Bytes> + Send + 'static {
        futures::stream::unfold(self, |mut feed| async move {
            let chunk = feed.chunk().await?;
            Some((chunk, feed))
        })
    }

    /// Waits for the next frame. Returns a heartbeat comment after an idle interval, and `None` at the end.
    async fn chunk(&mut self) -> Option<Bytes> {
        if !self.preface.is_empty() {
            return Some(std::mem::take(&mut self.preface).into());
        }
        let idle = sleep(self.config.heartbeat);
        tokio::pin!(idle);
        while !self.is_over {
            tokio::select! {
                biased;
                () = self.closing.cancelled() => {
                    self.is_over = true;
                    return Some(sse::reconnect(self.config.retry_delay()).into());
                }
                () = &mut self.until => self.end(StreamEnd::TokenExpired),
                next = self.reader.next() => match next {
                    Ok(rendered) if self.wants(&rendered) => return Some(self.with_replayed(&rendered)),
                    Ok(_) => {}
                    Err(ReaderEnd::Deleted) => self.end(StreamEnd::ConversationDeleted),
                    Err(end) => {
                        telemetry::cut(end.as_str());
                        tracing::info!(?end, "a stream ends; the reader can connect again with a cursor");
                        self.is_over = true;
                    }
                },
                () = &mut idle => return Some(Bytes::from_static(sse::HEARTBEAT.as_bytes())),
            }
        }
        self.last.take().map(|reason| sse::end(reason).into())
    }

    /// Joins replayed frames into one chunk of the body. In a replay of a hundred thousand events, a chunk per event
    /// costs more than the events. Frames of the live tail are shared by reference and never copied.
    fn with_replayed(&mut self, first: &RenderedFrame) -> Bytes {
        let mut joined = Vec::new();
        while !self.is_over && joined.len() < CHUNK {
            match self.reader.replayed() {
                Some(next) if self.wants(&next) => {
                    if joined.is_empty() {
                        joined.extend_from_slice(&first.bytes);
                    }
                    joined.extend_from_slice(&next.bytes);
                }
                Some(_) => {}
                None => break,
            }
        }
        if joined.is_empty() {
            first.bytes.clone()
        } else {
            self.reader.account().counted(joined)
        }
    }

    fn end(&mut self, reason: StreamEnd) {
        self.last = Some(reason);
        self.is_over = true;
    }

    /// Returns false for a frame of another turn than the requested turn. The turn's last frame ends the feed.
    fn wants(&mut self, rendered: &RenderedFrame) -> bool {
        let Some(message_id) = &self.turn else {
            return true;
        };
        if rendered.frame.message_id() != message_id {
            return false;
        }
        if matches!(&rendered.frame, LiveFrame::Event(event) if event.ends_turn()) {
            self.end(StreamEnd::TurnEnded);
        }
        true
    }
}
