//! Reads the events of a server's stream as servers really send them.
//!
//! The parser below rmcp ends a stream at an unknown field, at a text that is no UTF-8, and at a large event (docs/libraries.md,
//! sse-stream: a strict parser). The parser of this file skips an unreadable part of a stream.
//!
//! Must not be here: the messages in the events (`lenient`).

use std::{collections::VecDeque, io};

use futures::{StreamExt, stream};
use reqwest::Response;
use rmcp::{model::RequestId, transport::common::client_side_sse::BoxedSseResponse};
use sse_stream::Sse;

use super::lenient::{self, IdFinder, MAX_SKIPPED};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const DATA: &[u8] = b"data:";

/// Returns the events of a response. An event over the limit becomes the error of its request.
pub(super) fn events(response: Response, max_bytes: usize) -> BoxedSseResponse {
    let open = (Some(response), Parser::new(max_bytes));
    let events = stream::unfold(open, |(mut response, mut parser)| async move {
        loop {
            if let Some(event) = parser.found.pop_front() {
                return Some((Ok(event), (response, parser)));
            }
            let body = response.as_mut()?;
            let read = match body.chunk().await {
                Ok(Some(chunk)) => parser.read(&chunk),
                Ok(None) => {
                    response = None;
                    parser.end();
                    Ok(())
                }
                Err(error) => Err(io::Error::other(error)),
            };
            if let Err(error) = read {
                let error = sse_stream::Error::Body(Box::new(error));
                return Some((Err(error), (None, parser)));
            }
        }
    });
    events.boxed()
}

/// Returns the events of a whole text.
pub(super) fn events_in(text: &str, max_bytes: usize) -> Vec<Sse> {
    let mut parser = Parser::new(max_bytes);
    if parser.read(text.as_bytes()).is_ok() {
        parser.end();
    }
    parser.found.into()
}

/// Returns the reason why an answer over the limit cannot be read.
pub(super) fn over_limit(max_bytes: usize) -> String {
    format!("it has more than {max_bytes} bytes (`max_message_bytes`)")
}

/// Returns the answer in the stead of an event over the limit.
fn too_large(id: RequestId, max_bytes: usize) -> Option<Sse> {
    let error = lenient::unreadable(id, &over_limit(max_bytes));
    let error = serde_json::to_string(&error).ok()?;
    Some(Sse::default().data(error))
}

struct Parser {
    max_bytes: usize,
    found: VecDeque<Sse>,
    event: Option<Sse>,
    /// The bytes of the event before the line.
    bytes: usize,
    /// The line so far. Of a skipped event, the line has only the name of its field.
    line: Vec<u8>,
    skipped: Option<Skipped>,
    is_first_line: bool,
    was_return: bool,
}

/// An event over the limit.
#[derive(Default)]
struct Skipped {
    id: IdFinder,
    bytes: usize,
}

impl Parser {
    fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            found: VecDeque::new(),
            event: None,
            bytes: 0,
            line: Vec::new(),
            skipped: None,
            is_first_line: true,
            was_return: false,
        }
    }

    /// Reads further bytes. Lines end with LF, CR, or both. Fails when an event does not end soon after its limit.
    fn read(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.was_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => self.end_line(),
                byte => self.take(*byte)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, byte: u8) -> io::Result<()> {
        if let Some(skipped) = &mut self.skipped {
            skipped.bytes += 1;
            if skipped.bytes > self.max_bytes.saturating_mul(MAX_SKIPPED) {
                return Err(io::Error::other("an event has no end"));
            }
            if self.line.len() < DATA.len() {
                self.line.push(byte);
            } else if self.line == DATA {
                skipped.id.read(&[byte]);
            }
            return Ok(());
        }
        self.line.push(byte);
        if self.bytes + self.line.len() > self.max_bytes {
            let mut skipped = Skipped::default();
            let data = self.event.take().and_then(|event| event.data);
            skipped.id.read(data.unwrap_or_default().as_bytes());
            if let Some(data) = self.line.strip_prefix(DATA) {
                skipped.id.read(data);
            }
            self.line.truncate(DATA.len());
            self.skipped = Some(skipped);
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            self.end_event();
        } else if self.skipped.is_none() {
            self.bytes += line.len();
            self.field(&String::from_utf8_lossy(&line));
        }
    }

    fn end_event(&mut self) {
        self.bytes = 0;
        if let Some(skipped) = self.skipped.take() {
            let id = skipped.id.found();
            let error = id.and_then(|id| too_large(id, self.max_bytes));
            tracing::warn!(
                max_bytes = self.max_bytes,
                "an MCP server sent an event over the limit (`max_message_bytes`)"
            );
            self.found.extend(error);
        }
        self.found.extend(self.event.take());
    }

    /// Reads a field. Unknown fields and comments tell nothing.
    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                let event = self.event.get_or_insert_default();
                match &mut event.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => event.data = Some(value.to_owned()),
                }
            }
            "event" => self.event.get_or_insert_default().event = Some(value.to_owned()),
            "id" if !value.contains('\0') => {
                self.event.get_or_insert_default().id = Some(value.to_owned());
            }
            "retry" => {
                if let Ok(retry) = value.trim().parse() {
                    self.event.get_or_insert_default().retry = Some(retry);
                }
            }
            _ => {}
        }
    }

    /// Ends the stream. A server that ends the stream in order may leave out the empty line after the last event.
    fn end(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a text in pieces of this many bytes.
    fn read(bytes: &[u8], size: usize, max_bytes: usize) -> Vec<Sse> {
        let mut parser = Parser::new(max_bytes);
        for piece in bytes.chunks(size) {
            parser.read(piece).unwrap();
        }
        parser.end();
        parser.found.into()
    }

    #[test]
    fn events_are_read_as_servers_send_them() {
        let first = || Sse::default().data("a\nb").id("7");
        for text in [
            "id: 7\ndata: a\ndata: b\n\n",
            "id:7\r\ndata:a\r\ndata:b\r\n\r\n",
            "\u{feff}id: 7\rdata: a\rdata: b\r\r",
            ": hello\n\nid: 6\nid: 7\nfoo: bar\nnonsense\nretry: soon\ndata: a\ndata: b",
        ] {
            for size in [1, 2, 1000] {
                assert_eq!(read(text.as_bytes(), size, 1000), [first()], "{text:?}");
            }
        }
        let bytes = b"event: message\nretry: 20\ndata: caf\xe9\n\ndata\n\n";
        let expected = [
            Sse::default()
                .event("message")
                .retry(20)
                .data("caf\u{FFFD}"),
            Sse::default().data(""),
        ];
        assert_eq!(read(bytes, 3, 1000), expected);
    }

    #[test]
    fn an_event_over_the_limit_ends_its_request_alone() {
        let long = "x".repeat(200);
        let text = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"result\":{{\"a\":\"{long}\"}},\ndata: \"id\":3}}\n\ndata: next\n\n"
        );
        for size in [1, 7, 1000] {
            let found = read(text.as_bytes(), size, 100);
            let data = |at: usize| found[at].data.clone().unwrap();
            assert!(data(0).contains("\"id\":3") && data(0).contains("100 bytes"));
            assert_eq!((data(1).as_str(), found.len()), ("next", 2));
        }
        assert!(Parser::new(10).read(long.repeat(10).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_stream_is_read_within_the_limit(bytes in prop::collection::vec("data: ?|[a-z: \r\n]|id|\n", 0..60), size in 1..9_usize) {
            let text = bytes.concat();
            let whole = read(text.as_bytes(), text.len().max(1), 40);
            prop_assert!(whole.iter().all(|event| event.data.as_ref().is_none_or(|data| data.len() <= 200)));
            prop_assert_eq!(read(text.as_bytes(), size, 40), whole);
        }
    }
}
