//! One call: sends the request, and reads the frames of the answer up to the end of the reply.

use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    body::{Body, Frames, Refusal},
    calls::Calls,
    frames::Frame,
    hearing::Hearing,
    json,
    received::{Progress, Received, ReplyReader},
};
use crate::{
    error::ModelError,
    failure::{self, Call},
    port::{ModelReply, ModelRequest, ReplyListener},
    silence::within,
};

/// The longest wait after the provider has reported the end of the reply. Only counts of tokens may follow, and some
/// servers leave the connection open.
const AFTER_END: Duration = Duration::from_secs(2);

/// A call on one wire.
pub(crate) struct Exchange<'a> {
    pub(crate) request: &'a ModelRequest,
    pub(crate) reader: Box<dyn ReplyReader>,
    /// True when thoughts may be in the text, within `<think>` tags.
    pub(crate) has_tags: bool,
    /// A sentence about the provider's address, for an answer that comes from a wrong address.
    pub(crate) advice: Option<&'a str>,
}

impl<'a> Exchange<'a> {
    fn call(&self) -> Call<'a> {
        Call {
            provider: &self.request.provider,
            model: &self.request.model,
            advice: self.advice,
        }
    }
}

/// Makes the call.
pub(crate) async fn run(
    exchange: Exchange<'_>,
    post: RequestBuilder,
    listener: &mut dyn ReplyListener,
) -> Result<ModelReply, ModelError> {
    let answer = within(exchange.request.silence, post.send()).await?;
    let answer = answer.map_err(|error| failure::from_reqwest(exchange.call(), &error))?;
    read(exchange, answer, listener).await
}

/// Reads the answer to a call.
pub(super) async fn read(
    exchange: Exchange<'_>,
    answer: Response,
    listener: &mut dyn ReplyListener,
) -> Result<ModelReply, ModelError> {
    let call = exchange.call();
    let Exchange {
        request,
        reader,
        has_tags,
        advice: _,
    } = exchange;
    if !answer.status().is_success() {
        let refusal = Refusal::read(call, request.silence, answer).await;
        return Err(refusal.error(call));
    }
    let frames = Body::of(call, request.silence, answer)?.frames();
    let offered = request.tools.iter().map(|tool| tool.name.clone());
    let reading = Reading {
        call,
        reader,
        hearing: Hearing::new(listener, has_tags),
        received: Received {
            calls: Calls::new(offered),
            ..Received::default()
        },
        has_begun: false,
    };
    reading.run(frames).await
}

/// The reading of one reply.
struct Reading<'a> {
    call: Call<'a>,
    reader: Box<dyn ReplyReader>,
    hearing: Hearing<'a>,
    received: Received,
    /// True after the first frame of the reply.
    has_begun: bool,
}

impl Reading<'_> {
    async fn run(mut self, mut frames: Frames<'_>) -> Result<ModelReply, ModelError> {
        let mut last = None;
        loop {
            let next = match self.received.progress {
                Progress::Over => return self.end(),
                Progress::Open => frames.next().await?,
                Progress::Ended => {
                    let last = *last.get_or_insert_with(|| Instant::now() + AFTER_END);
                    match timeout_at(last, frames.next()).await {
                        Ok(Ok(next)) => next,
                        Ok(Err(_)) | Err(_) => return self.end(),
                    }
                }
            };
            let Some(frame) = next else {
                break;
            };
            self.take(frame)?;
        }
        match self.received.progress {
            Progress::Open => Err(failure::stream_cut(self.call.provider)),
            Progress::Ended | Progress::Over => self.end(),
        }
    }

    fn take(&mut self, frame: Frame) -> Result<(), ModelError> {
        let is_open = self.received.progress == Progress::Open;
        match frame {
            Frame::Done => self.received.progress = Progress::Over,
            Frame::Data { text, is_whole } => match json::read(&text) {
                Ok(value) => self.read(&value, &text)?,
                // Only counts of tokens follow the end of a reply.
                Err(_) if !is_open => {}
                Err(_) if !is_whole => return Err(failure::stream_cut(self.call.provider)),
                Err(_) => return Err(failure::unreadable_frame(self.call, &text)),
            },
            Frame::Loose(text) if is_open => self.read_loose(&text)?,
            Frame::Loose(_) => {}
        }
        Ok(())
    }

    /// Reads a body that is no stream.
    fn read_loose(&mut self, text: &str) -> Result<(), ModelError> {
        match json::read_loose(text) {
            Some(values) => self.read_all(&values),
            None if json::is_cut(text) => Err(failure::stream_cut(self.call.provider)),
            None => Err(failure::not_a_stream(self.call, text, self.has_begun)),
        }
    }

    /// Reads frames in their order. The text of a frame stands beside the frame's value.
    fn read_all(&mut self, frames: &[(Value, String)]) -> Result<(), ModelError> {
        for (value, text) in frames {
            if self.received.progress < Progress::Over {
                self.read(value, text)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, value: &Value, text: &str) -> Result<(), ModelError> {
        if value.is_array() {
            return self.read_all(&json::read_loose(text).unwrap_or_default());
        }
        if failure::is_error(value) {
            return Err(failure::from_body(self.call, value));
        }
        self.has_begun = true;
        self.reader
            .read(value, text, &mut self.received, &mut self.hearing)?;
        self.hearing.hear_calls(&self.received.calls);
        Ok(())
    }

    fn end(mut self) -> Result<ModelReply, ModelError> {
        self.reader.finish(&mut self.received)?;
        let texts = self.hearing.finish()?;
        self.received.reply(self.call.provider, texts)
    }
}
