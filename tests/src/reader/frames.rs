//! Parses server-sent events from bytes. A frame that is cut before its blank line does not count.

use serde_json::Value;

/// A frame that has data.
#[derive(Debug, Clone, PartialEq)]
pub struct SseFrame {
    /// The number after `id:`; only persisted events have one.
    pub id: Option<u32>,
    /// All of what is after `id:`.
    pub cursor: Option<String>,
    /// The text after `event:`.
    pub event: String,
    /// The JSON after `data:`.
    pub data: Value,
}

/// Assembles frames from pieces that are cut anywhere.
#[derive(Debug, Default)]
pub struct FrameReader {
    rest: Vec<u8>,
}

impl FrameReader {
    /// Takes bytes, and returns the frames that they complete. An error means that the bytes are not valid frames.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseFrame>, String> {
        self.rest.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let mut begin = 0;
        while let Some(length) = self.rest[begin..]
            .windows(2)
            .position(|pair| pair == b"\n\n")
        {
            frames.extend(parse(&self.rest[begin..begin + length])?);
            begin += length + 2;
        }
        self.rest.drain(..begin);
        Ok(frames)
    }

    /// Returns the beginning of the frame whose end has not come yet.
    pub fn rest(&self) -> &[u8] {
        &self.rest
    }
}

/// Parses a frame. Returns `None` when it has no data, like a comment or `retry:`.
fn parse(bytes: &[u8]) -> Result<Option<SseFrame>, String> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| format!("a frame is not UTF-8: {error}"))?;
    let (mut id, mut cursor, mut event, mut data) = (None, None, String::new(), Vec::new());
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => {
                cursor = Some(value.to_owned());
                let (number, _saved) = value.split_once('-').unwrap_or((value, ""));
                id = Some(
                    number
                        .parse()
                        .map_err(|_| format!("this id is no cursor: {line}"))?,
                );
            }
            "event" => value.clone_into(&mut event),
            "data" => data.push(value),
            _ => {}
        }
    }
    if data.is_empty() {
        return if id.is_none() {
            Ok(None)
        } else {
            Err(format!(
                "this frame moves the cursor, and has no data: {text}"
            ))
        };
    }
    let data = serde_json::from_str(&data.join("\n"))
        .map_err(|error| format!("data is not JSON ({error}): {text}"))?;
    Ok(Some(SseFrame {
        id,
        cursor,
        event,
        data,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STREAM: &str = "retry: 1000\n\nid: 1-19a8f3c2b10\nevent: thought\ndata: {\"thought\":\ndata: \"ü\"}\n\n: still here\n\n\
                          event: text_start\ndata: {}\n\n";

    #[test]
    fn every_cut_gives_the_same_frames() {
        let thought = SseFrame {
            id: Some(1),
            cursor: Some("1-19a8f3c2b10".into()),
            event: "thought".into(),
            data: json!({"thought": "ü"}),
        };
        let start = SseFrame {
            id: None,
            cursor: None,
            event: "text_start".into(),
            data: json!({}),
        };
        for cut in 0..STREAM.len() {
            let mut frames = FrameReader::default();
            let mut found = frames.push(&STREAM.as_bytes()[..cut]).unwrap();
            found.extend(frames.push(&STREAM.as_bytes()[cut..]).unwrap());
            assert_eq!(found, [thought.clone(), start.clone()], "cut at {cut}");
            assert_eq!(frames.rest(), b"");
        }
    }

    #[test]
    fn what_no_reader_could_use_is_said() {
        for bytes in [
            &b"data: {\n\n"[..],
            b"id: x\ndata: {}\n\n",
            b"id: 1\n\n",
            b"data: \xff\n\n",
        ] {
            FrameReader::default().push(bytes).unwrap_err();
        }
    }
}
