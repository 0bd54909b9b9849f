//! A tail as the body of an HTTP response.
//!
//! The body is pulled: nothing runs, and nothing is buffered beyond the tail's page, while the reader does not
//! read. Dropping the body drops the tail; the turn never notices.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
    response::Response,
};
use everturn_proto::{ids, words::event_type::ends_turn};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    config::GatewayConfig,
    fields::Fields,
    limits::StreamPermit,
    sse,
    tail::{Frame, Tail},
};

/// Bytes of frames handed to the connection at a time.
const CHUNK_BYTES: usize = 32 * 1024;

/// Which frames of a conversation a reader wants.
enum Scope {
    All,
    /// Those of one message's turn, up to its end.
    Turn {
        message_id: String,
        execution_id: String,
    },
}

/// A stream of server-sent events.
pub struct Feed {
    tail: Tail,
    scope: Scope,
    /// What goes out before the tail's frames.
    preface: String,
    heartbeat: Duration,
    shutdown: CancellationToken,
    /// Resolves when the reader may read no more.
    until: BoxFuture<'static, ()>,
    is_over: bool,
    _permit: StreamPermit,
}

impl Feed {
    pub(crate) fn new(tail: Tail, config: &GatewayConfig, shutdown: CancellationToken, permit: StreamPermit) -> Self {
        let preface = sse::retry(config.retry_hint);
        let heartbeat = config.heartbeat;
        let until = Box::pin(std::future::pending());
        Self { tail, scope: Scope::All, preface, heartbeat, shutdown, until, is_over: false, _permit: permit }
    }

    /// Ends when this resolves: the reader's credential does not hold any more.
    #[must_use]
    pub(crate) fn until(mut self, end: BoxFuture<'static, ()>) -> Self {
        self.until = end;
        self
    }

    /// Only the turn of this message, and only until it ends.
    #[must_use]
    pub(crate) fn of_turn(mut self, message_id: &str) -> Self {
        let conversation_id = self.tail.conversation_id();
        self.preface.push_str(&sse::conversation(conversation_id, message_id));
        let execution_id = ids::root_execution_id(conversation_id, message_id);
        self.scope = Scope::Turn { message_id: message_id.to_owned(), execution_id };
        self
    }

    /// The response.
    pub(crate) fn into_response(self) -> Response {
        let chunks = futures::stream::unfold(self, |mut feed| async move {
            let chunk = feed.chunk().await?;
            Some((Ok::<_, Infallible>(Bytes::from(chunk)), feed))
        });
        let mut response = Response::new(Body::from_stream(chunks));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // nginx and its kin would hold small frames back.
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        response
    }

    /// The next frames, or a heartbeat when there are none for long; `None` at the end.
    async fn chunk(&mut self) -> Option<String> {
        if !self.preface.is_empty() {
            return Some(std::mem::take(&mut self.preface));
        }
        let idle = tokio::time::sleep(self.heartbeat);
        tokio::pin!(idle);
        let mut chunk = String::new();
        while chunk.is_empty() && !self.is_over {
            tokio::select! {
                () = self.shutdown.cancelled() => return None,
                () = &mut self.until => return None,
                () = &mut idle => return Some(sse::HEARTBEAT.to_owned()),
                frame = self.tail.next() => match frame {
                    Ok(frame) => self.add(&mut chunk, &frame),
                    Err(error) => {
                        tracing::warn!(%error, "a stream ends; its reader has a cursor to come back with");
                        self.is_over = true;
                    }
                },
            }
            while chunk.len() < CHUNK_BYTES && !self.is_over {
                let Some(frame) = self.tail.next_ready() else { break };
                self.add(&mut chunk, &frame);
            }
        }
        (!chunk.is_empty()).then_some(chunk)
    }

    fn add(&mut self, chunk: &mut String, frame: &Frame) {
        if let Scope::Turn { message_id, execution_id } = &self.scope {
            if frame.message_id() != message_id {
                return;
            }
            self.is_over = ends(frame, execution_id);
        }
        chunk.push_str(&sse::render(self.tail.conversation_id(), frame));
    }
}

/// True for the event that ends the turn, as opposed to the end of a sub-agent in it.
fn ends(frame: &Frame, execution_id: &str) -> bool {
    let Frame::Event(event) = frame else { return false };
    if !ends_turn(&event.event_type) {
        return false;
    }
    let fields = event.event_data.as_ref().map(Fields::of).unwrap_or_default();
    fields.get::<String>("agent_execution_id").is_none_or(|id| id.is_empty() || id == execution_id)
}
