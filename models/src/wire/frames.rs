//! The lenient reader of server-sent events: bytes of an answer become frames.
//!
//! Servers end lines in three ways, leave out the last empty line, omit the space after a field, and some answer with
//! JSON or HTML in place of a stream. The reader loses no byte that is not a comment (invariant 10, nothing grows
//! without a bound: a line and a loose text have a limit). What a frame means is not decided here.

use std::collections::VecDeque;

/// The most bytes of one line, and of one frame. The longest frame repeats a whole response.
const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;
/// The most bytes of a body that is no stream.
const MAX_LOOSE_BYTES: usize = 16 * 1024 * 1024;
/// The data that ends a stream of OpenAI's wire.
const DONE: &str = "[DONE]";
/// The names of an event's fields.
const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A frame of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The data of one event. `is_whole` is false when the body ended within the event.
    Data { text: String, is_whole: bool },
    /// The end mark `[DONE]`.
    Done,
    /// The text of a body, or of a part of it, that has no field of an event: JSON without `data:`, HTML, a plain text.
    Loose(String),
}

/// A body that grows without a bound.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a line or an event is longer than {MAX_FRAME_BYTES} bytes")]
pub(crate) struct TooLong;

/// Reads frames from the bytes of one body.
#[derive(Default)]
pub(crate) struct FrameReader {
    /// The bytes of the line that has not ended.
    line: Vec<u8>,
    /// True when the last byte was a carriage return, which a line feed may follow.
    after_return: bool,
    /// True after the first line, which may begin with a byte order mark.
    has_begun: bool,
    data: Option<String>,
    loose: String,
}

impl FrameReader {
    /// Takes the next bytes, and adds the frames that end in them.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), TooLong> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let is_rest_of_pair = end == 0 && rest[0] == b'\n' && self.after_return;
            if !is_rest_of_pair {
                self.grow(&rest[..end])?;
                self.end_line(frames)?;
            }
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.grow(rest)?;
        }
        Ok(())
    }

    /// Ends the body, and adds the frames that no empty line has ended.
    pub(crate) fn finish(mut self, frames: &mut VecDeque<Frame>) -> Result<(), TooLong> {
        let is_whole = self.line.is_empty();
        if !is_whole && !self.begins_field() {
            self.end_line(frames)?;
        }
        self.end_event(is_whole, frames);
        if !self.loose.trim().is_empty() {
            frames.push_back(Frame::Loose(std::mem::take(&mut self.loose)));
        }
        Ok(())
    }

    /// True when the line is the beginning of a field's name, and the body ended there.
    fn begins_field(&self) -> bool {
        FIELDS
            .iter()
            .any(|name| name.as_bytes().starts_with(&self.line))
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > MAX_FRAME_BYTES {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, frames: &mut VecDeque<Frame>) -> Result<(), TooLong> {
        let mut bytes = self.line.as_slice();
        if !self.has_begun {
            bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
            self.has_begun = true;
        }
        let line = String::from_utf8_lossy(bytes).into_owned();
        self.line.clear();
        if line.is_empty() {
            self.end_event(true, frames);
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        match field {
            // A comment, which is a sign of life, or a field that says nothing here.
            "" | "event" | "id" | "retry" => Ok(()),
            "data" => self.grow_data(value.strip_prefix(' ').unwrap_or(value)),
            _ => self.grow_loose(&line),
        }
    }

    fn grow_data(&mut self, value: &str) -> Result<(), TooLong> {
        let data = match &mut self.data {
            Some(data) => {
                data.push('\n');
                data
            }
            none => none.insert(String::new()),
        };
        if data.len() + value.len() > MAX_FRAME_BYTES {
            return Err(TooLong);
        }
        data.push_str(value);
        Ok(())
    }

    fn grow_loose(&mut self, line: &str) -> Result<(), TooLong> {
        if self.loose.len() + line.len() > MAX_LOOSE_BYTES {
            return Err(TooLong);
        }
        self.loose.push_str(line);
        self.loose.push('\n');
        Ok(())
    }

    fn end_event(&mut self, is_whole: bool, frames: &mut VecDeque<Frame>) {
        let Some(text) = self.data.take() else {
            return;
        };
        // Servers that end each line with an empty one, and no event otherwise, send empty data.
        if text.trim() == DONE {
            frames.push_back(Frame::Done);
        } else if !text.trim().is_empty() {
            frames.push_back(Frame::Data { text, is_whole });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Frame> {
        let (mut reader, mut frames) = (FrameReader::default(), VecDeque::new());
        for piece in pieces {
            reader.push(piece, &mut frames).unwrap();
        }
        reader.finish(&mut frames).unwrap();
        frames.into()
    }

    fn data(text: &str) -> Frame {
        Frame::Data {
            text: text.to_owned(),
            is_whole: true,
        }
    }

    #[test]
    fn every_form_of_a_stream_gives_its_frames() {
        let two = vec![data("{\"a\":1}"), data("{\"b\":\n2}"), Frame::Done];
        for stream in [
            "data: {\"a\":1}\n\ndata: {\"b\":\ndata: 2}\n\ndata: [DONE]\n\n",
            "data:{\"a\":1}\n\ndata:{\"b\":\ndata:2}\n\ndata:  [DONE] \n\n",
            "\u{feff}data: {\"a\":1}\r\n\r\ndata: {\"b\":\r\ndata: 2}\r\n\r\ndata: [DONE]\r\n\r\n",
            "data: {\"a\":1}\r\rdata: {\"b\":\rdata: 2}\r\rdata: [DONE]\r\r",
            ": ping\n\nevent: message\nid: 1\nretry: 5\ndata: {\"a\":1}\n\n:\ndata: {\"b\":\ndata: 2}\n\n\n\ndata: [DONE]",
        ] {
            assert_eq!(read(&[stream.as_bytes()]), two, "{stream:?}");
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(read(&bytes), two, "{stream:?} byte by byte");
        }
    }

    #[test]
    fn what_is_no_event_is_loose_and_a_cut_event_is_not_whole() {
        let html = "<!doctype html>\n<html></html>";
        assert_eq!(
            read(&[html.as_bytes()]),
            [Frame::Loose(format!("{html}\n"))]
        );
        let json = "{\"error\": \"no\"}";
        assert_eq!(
            read(&[json.as_bytes()]),
            [Frame::Loose(format!("{json}\n"))]
        );
        let cut = [
            data("1"),
            Frame::Data {
                text: "{\"a".into(),
                is_whole: false,
            },
        ];
        assert_eq!(read(&[b"data: 1\n\ndata: {\"a"]), cut);
        assert_eq!(read(&[b""]), []);
        // A name that is cut off is no text.
        assert_eq!(read(&[b"data: 1\n\nda"]), [data("1")]);
    }

    #[test]
    fn a_line_has_a_limit() {
        let (mut reader, mut frames) = (FrameReader::default(), VecDeque::new());
        let half = vec![b'x'; MAX_FRAME_BYTES / 2 + 1];
        reader.push(&half, &mut frames).unwrap();
        assert_eq!(reader.push(&half, &mut frames), Err(TooLong));
    }

    proptest! {
        #[test]
        fn a_split_at_any_byte_changes_nothing(
            parts in prop::collection::vec("(data: ?|:|event: |\\{|\\[DONE\\]|é|x|\r|\n|\r\n|\n\n){0,12}", 0..6),
            cuts in prop::collection::vec(0_usize..80, 0..6),
        ) {
            let stream = parts.concat();
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|at| &bytes[at[0]..at[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }
    }
}
