//! The body of an answer: its bytes, decoded and bounded, as frames or as a whole (invariant 10, nothing grows without a
//! bound). A silence of the provider ends the reading.

use std::{
    collections::VecDeque,
    io::{self, Write},
    time::Duration,
};

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_ENCODING, HeaderMap},
};

use super::frames::{Frame, FrameReader};
use crate::{
    error::ModelError,
    failure::{self, Call},
    silence::within,
};

/// The most bytes of an answer with an HTTP error that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A body that can no longer be read.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection is lost, or the provider was silent for too long. Another connection may give the rest.
    Lost(ModelError),
    /// Everturn cannot read the bytes. Another connection would give the same bytes.
    Unreadable(ModelError),
}

impl From<Broken> for ModelError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Lost(error) | Broken::Unreadable(error) => error,
        }
    }
}

/// The bytes of one answer.
pub(crate) struct Body<'a> {
    call: Call<'a>,
    silence: Option<Duration>,
    answer: Response,
    decoder: Decoder,
}

impl<'a> Body<'a> {
    /// Takes the answer to a call. A silence longer than `silence` breaks the body.
    ///
    /// # Errors
    ///
    /// The error of an answer in an unknown encoding.
    pub(crate) fn of(
        call: Call<'a>,
        silence: Option<Duration>,
        answer: Response,
    ) -> Result<Self, ModelError> {
        let decoder = Decoder::of(&answer).ok_or_else(|| failure::unknown_encoding(call))?;
        Ok(Self {
            call,
            silence,
            answer,
            decoder,
        })
    }

    /// Returns the frames of the body.
    pub(crate) fn frames(self) -> Frames<'a> {
        Frames {
            body: self,
            reader: Some(FrameReader::default()),
            ready: VecDeque::new(),
        }
    }

    /// Returns the whole body.
    ///
    /// # Errors
    ///
    /// The body breaks, or has more than `limit` bytes.
    pub(crate) async fn whole(mut self, limit: usize) -> Result<String, Broken> {
        let mut whole = Vec::new();
        if !self.read(&mut whole, limit + 1).await? {
            let error = format!("the body has more than {limit} bytes");
            return Err(self.unreadable(&error));
        }
        Ok(String::from_utf8_lossy(&whole).into_owned())
    }

    /// Reads the first `limit` bytes. Returns false for a body with so many bytes or more.
    async fn read(&mut self, read: &mut Vec<u8>, limit: usize) -> Result<bool, Broken> {
        let mut grow = |bytes: &[u8]| {
            let room = limit - read.len();
            read.extend_from_slice(&bytes[..bytes.len().min(room)]);
            bytes.len() < room
        };
        while let Some(has_room) = self.next(&mut grow).await? {
            if !has_room {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Hands the next bytes to `take`, and returns its result; `None` at the end.
    async fn next<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, Broken> {
        let chunk = within(self.silence, self.answer.chunk()).await;
        let chunk = chunk.map_err(Broken::Lost)?;
        let chunk =
            chunk.map_err(|error| Broken::Lost(failure::from_reqwest(self.call, &error)))?;
        let taken = chunk.map(|chunk| self.decoder.decode(&chunk, take));
        taken.transpose().map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &dyn std::fmt::Display) -> Broken {
        Broken::Unreadable(failure::unreadable(self.call, error))
    }
}

/// The frames of one answer.
pub(crate) struct Frames<'a> {
    body: Body<'a>,
    /// `None` after the end of the body.
    reader: Option<FrameReader>,
    ready: VecDeque<Frame>,
}

impl Frames<'_> {
    /// Returns the next frame; `None` at the end. A caller may stop waiting and call again later.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, Broken> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let Some(reader) = &mut self.reader else {
                return Ok(None);
            };
            let ready = &mut self.ready;
            let pushed = self.body.next(|bytes| reader.push(bytes, ready)).await?;
            let read = pushed.unwrap_or_else(|| {
                let reader = self.reader.take().unwrap_or_default();
                reader.finish(&mut self.ready)
            });
            read.map_err(|error| self.body.unreadable(&error))?;
        }
    }
}

/// An answer with an HTTP error.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    pub(crate) body: String,
}

impl Refusal {
    /// Reads the beginning of the answer. The status counts even when the body cannot be read.
    pub(crate) async fn read(call: Call<'_>, silence: Option<Duration>, answer: Response) -> Self {
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut read = Vec::new();
        if let Ok(mut body) = Body::of(call, silence, answer) {
            let _is_whole = body.read(&mut read, MAX_ERROR_BYTES).await;
        }
        Self {
            status,
            headers,
            body: String::from_utf8_lossy(&read).into_owned(),
        }
    }

    /// Returns the error of the call.
    pub(crate) fn error(&self, call: Call<'_>) -> ModelError {
        failure::from_status(call, self.status, &self.body, &self.headers)
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

    /// Hands the decoded bytes of a chunk to `take`.
    fn decode<T>(&mut self, chunk: &[u8], take: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        let decoded = match self {
            Self::Plain => return Ok(take(chunk)),
            Self::Gzip(decoder) => {
                write(decoder, chunk)?;
                decoder.get_mut()
            }
            Self::Deflate(decoder) => {
                write(decoder, chunk)?;
                decoder.get_mut()
            }
        };
        Ok(take(&std::mem::take(decoded)))
    }
}

/// Writes a chunk into a decoder, and flushes the decoded bytes.
fn write(decoder: &mut impl Write, chunk: &[u8]) -> io::Result<()> {
    decoder.write_all(chunk)?;
    decoder.flush()
}
