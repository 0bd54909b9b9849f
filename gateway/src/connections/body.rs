//! Limits the time of request bodies, and keeps a connection's slot until the response is sent.

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use super::slots::{Answering, Unsent};

/// The time that a request body may take: `base`, and the time of its bytes at `bytes_per_second`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) base: Duration,
    pub(crate) bytes_per_second: u32,
}

impl Pace {
    /// Returns the time by which the next bytes must arrive, after `bytes` bytes have arrived.
    fn deadline(self, begun: Instant, bytes: u64) -> Instant {
        let rate = u64::from(self.bytes_per_second.max(1));
        begun + self.base + Duration::from_millis(bytes.saturating_mul(1000) / rate)
    }
}

/// A request body arrived more slowly than the pace allows.
#[derive(Debug, thiserror::Error)]
#[error("the request body came too slowly")]
struct TooSlow;

/// True when the gateway gave up on a body because the body arrived too slowly.
pub(crate) fn is_too_slow(error: &(dyn Error + 'static)) -> bool {
    error.is::<TooSlow>() || error.source().is_some_and(is_too_slow)
}

/// Wraps a request body so that reading fails when the body arrives too slowly.
pub(crate) fn paced(body: Incoming, pace: Pace) -> Body {
    if body.is_end_stream() {
        return Body::empty();
    }
    let begun = Instant::now();
    Body::new(Paced {
        body,
        pace,
        begun,
        bytes: 0,
        limit: Box::pin(sleep_until(pace.deadline(begun, 0))),
    })
}

struct Paced<B> {
    body: B,
    pace: Pace,
    begun: Instant,
    bytes: u64,
    limit: Pin<Box<Sleep>>,
}

impl<B> HttpBody for Paced<B>
where
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Pending => {
                // Every piece moves the deadline. The timer is set only when the read would block.
                let deadline = this.pace.deadline(this.begun, this.bytes);
                if this.limit.deadline() != deadline {
                    this.limit.as_mut().reset(deadline);
                }
                this.limit
                    .as_mut()
                    .poll(context)
                    .map(|()| Some(Err(TooSlow.into())))
            }
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| {
                let frame = frame.map_err(Into::into)?;
                let length = frame.data_ref().map_or(0, Bytes::len);
                this.bytes = this
                    .bytes
                    .saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
                Ok(frame)
            })),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response. The connection keeps its slot until the socket has taken the last byte of the body.
pub(crate) struct Answer {
    body: Body,
    answering: Option<Answering>,
    unsent: Unsent,
}

impl Answer {
    pub(crate) fn new(body: Body, answering: Answering, unsent: Unsent) -> Self {
        Self {
            body,
            answering: Some(answering),
            unsent,
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(answering) = self.answering.take() {
            self.unsent.keep(answering);
        }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
