//! Parses server-sent events from bytes. The rules are those of the HTML standard (section 9.2.6), and of
//! `clients/transcripts/sse.json`.
//!
//! A message has only its own id. The standard lets browsers keep an id for later messages, but a kept id would be
//! mistaken for the cursor of frames without an id.

/// The most bytes of a message by default. The largest event of a gateway is a fraction of the limit.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// One message of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Value of `event:`, empty without the field.
    pub event: String,
    /// The lines of `data:`, joined with line feeds; empty without the field.
    pub data: String,
    /// Value of the message's `id:`.
    pub id: Option<String>,
    /// Value of `retry:` in milliseconds.
    pub retry_ms: Option<u64>,
}

/// A message exceeds the limit of bytes. The stream cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit.
    pub max_bytes: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "a message of the event stream has more than {} bytes, so the server is not a gateway",
            self.max_bytes
        )
    }
}

impl std::error::Error for TooLarge {}

/// Cuts the bytes of a stream into messages.
#[derive(Debug)]
pub struct Parser {
    max_bytes: usize,
    /// The bytes of an unfinished line.
    line: Vec<u8>,
    message: Message,
    has_data: bool,
    /// Bytes of the message so far.
    bytes: usize,
    /// True after a CR, because a following LF belongs to the line end.
    after_cr: bool,
    /// True until the first line has ended, because a byte order mark may come first.
    is_first_line: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self::with_limit(MAX_MESSAGE_BYTES)
    }
}

impl Parser {
    /// Returns a parser for messages of at most `max_bytes` bytes.
    pub fn with_limit(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            message: Message::default(),
            has_data: false,
            bytes: 0,
            after_cr: false,
            is_first_line: true,
        }
    }

    /// Takes the next bytes. Returns the messages completed by the bytes.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Vec<Message>, TooLarge> {
        let mut messages = Vec::new();
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.bytes += part.len();
            if self.bytes > self.max_bytes {
                let max_bytes = self.max_bytes;
                return Err(TooLarge { max_bytes });
            }
            self.line.extend_from_slice(part);
            bytes = rest;
            if let Some((end, rest)) = rest.split_first() {
                self.after_cr = *end == b'\r';
                bytes = rest;
                messages.extend(self.end_line());
            }
        }
        Ok(messages)
    }

    /// Adds the finished line to the message. Returns the message at a blank line.
    fn end_line(&mut self) -> Option<Message> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_message();
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.message.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            "id" if !value.contains('\0') => self.message.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.message.retry_ms = value.parse().ok().or(self.message.retry_ms);
            }
            _ => {}
        }
        None
    }

    fn end_message(&mut self) -> Option<Message> {
        self.bytes = 0;
        let has_data = std::mem::take(&mut self.has_data);
        let message = std::mem::take(&mut self.message);
        let is_something = has_data
            || !message.event.is_empty()
            || message.id.is_some()
            || message.retry_ms.is_some();
        is_something.then_some(message)
    }
}
