//! One call: sends the request, and reads the frames of the answer up to the end of the reply.

use std::{
    borrow::Cow,
    io::{self, Write},
    time::Duration,
};

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use futures::StreamExt;
use reqwest::{RequestBuilder, Response, header::CONTENT_ENCODING};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    calls::Calls,
    frames::{Frame, FrameReader},
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
/// The most bytes of an answer with an HTTP error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

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
    let decoder = Decoder::of(&answer).ok_or_else(|| failure::unknown_encoding(call))?;
    if !answer.status().is_success() {
        return Err(refusal(call, request.silence, answer, decoder).await);
    }
    let offered = request.tools.iter().map(|tool| tool.name.clone());
    let reading = Reading {
        call,
        silence: request.silence,
        reader,
        hearing: Hearing::new(listener, has_tags),
        received: Received {
            calls: Calls::new(offered),
            ..Received::default()
        },
        has_begun: false,
    };
    reading.run(answer, decoder).await
}

/// Returns the error of an answer with an HTTP error.
async fn refusal(
    call: Call<'_>,
    silence: Option<Duration>,
    answer: Response,
    mut decoder: Decoder,
) -> ModelError {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let (mut body, mut chunks) = (Vec::new(), answer.bytes_stream());
    while let Ok(Some(Ok(chunk))) = within(silence, chunks.next()).await {
        let Ok(bytes) = decoder.decode(&chunk) else {
            break;
        };
        body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BYTES - body.len())]);
        if body.len() == MAX_ERROR_BYTES {
            break;
        }
    }
    failure::from_status(call, status, &String::from_utf8_lossy(&body), &headers)
}

/// The reading of one reply.
struct Reading<'a> {
    call: Call<'a>,
    silence: Option<Duration>,
    reader: Box<dyn ReplyReader>,
    hearing: Hearing<'a>,
    received: Received,
    /// True after the first frame of the reply.
    has_begun: bool,
}

impl Reading<'_> {
    async fn run(
        mut self,
        answer: Response,
        mut decoder: Decoder,
    ) -> Result<ModelReply, ModelError> {
        let mut chunks = answer.bytes_stream();
        let (mut frames, mut ready) = (FrameReader::default(), Vec::new());
        let mut last = None;
        loop {
            let next = match self.received.progress {
                Progress::Over => return self.end(),
                Progress::Open => within(self.silence, chunks.next()).await?,
                Progress::Ended => {
                    let last = *last.get_or_insert_with(|| Instant::now() + AFTER_END);
                    match timeout_at(last, chunks.next()).await {
                        Ok(next) => next,
                        Err(_elapsed) => return self.end(),
                    }
                }
            };
            let chunk = match next {
                Some(Ok(chunk)) => chunk,
                None => break,
                Some(Err(_)) if self.received.progress == Progress::Ended => return self.end(),
                Some(Err(error)) => return Err(failure::from_reqwest(self.call, &error)),
            };
            let bytes = decoder
                .decode(&chunk)
                .map_err(|error| failure::unreadable(self.call, &error))?;
            frames
                .push(&bytes, &mut ready)
                .map_err(|error| failure::unreadable(self.call, &error))?;
            self.take(&mut ready)?;
        }
        frames
            .finish(&mut ready)
            .map_err(|error| failure::unreadable(self.call, &error))?;
        self.take(&mut ready)?;
        match self.received.progress {
            Progress::Open => Err(failure::stream_cut(self.call.provider)),
            Progress::Ended | Progress::Over => self.end(),
        }
    }

    fn take(&mut self, frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        for frame in frames.drain(..) {
            if self.received.progress == Progress::Over {
                return Ok(());
            }
            match frame {
                Frame::Done => self.received.progress = Progress::Over,
                Frame::Data { text, is_whole } => match json::read(&text) {
                    Ok(value) => self.read(&value, &text)?,
                    // Only counts of tokens follow the end of a reply.
                    Err(_) if self.received.progress != Progress::Open => {}
                    Err(_) if !is_whole => return Err(failure::stream_cut(self.call.provider)),
                    Err(_) => return Err(failure::unreadable_frame(self.call, &text)),
                },
                Frame::Loose(text) if self.received.progress == Progress::Open => {
                    self.read_loose(&text)?;
                }
                Frame::Loose(_) => {}
            }
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
            .read(value, text, &mut self.received, &mut self.hearing)
    }

    fn end(mut self) -> Result<ModelReply, ModelError> {
        self.reader.finish(&mut self.received)?;
        let texts = self.hearing.finish()?;
        self.received.reply(self.call.provider, texts)
    }
}

/// Decodes the body of an answer. Some servers compress a stream that nobody asked to compress.
enum Decoder {
    Plain,
    Gzip(MultiGzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

impl Decoder {
    /// Returns the decoder of an answer; `None` for an unknown encoding.
    fn of(answer: &Response) -> Option<Self> {
        let Some(encoding) = answer.headers().get(CONTENT_ENCODING) else {
            return Some(Self::Plain);
        };
        match encoding.to_str().ok()?.trim() {
            "" | "identity" => Some(Self::Plain),
            "gzip" | "x-gzip" => Some(Self::Gzip(MultiGzDecoder::new(Vec::new()))),
            "deflate" => Some(Self::Deflate(ZlibDecoder::new(Vec::new()))),
            _ => None,
        }
    }

    fn decode<'a>(&mut self, chunk: &'a [u8]) -> io::Result<Cow<'a, [u8]>> {
        let decoded = match self {
            Self::Plain => return Ok(chunk.into()),
            Self::Gzip(decoder) => {
                write(decoder, chunk)?;
                decoder.get_mut()
            }
            Self::Deflate(decoder) => {
                write(decoder, chunk)?;
                decoder.get_mut()
            }
        };
        Ok(std::mem::take(decoded).into())
    }
}

/// Writes a chunk, and all bytes that it decodes to.
fn write(decoder: &mut impl Write, chunk: &[u8]) -> io::Result<()> {
    decoder.write_all(chunk)?;
    decoder.flush()
}
