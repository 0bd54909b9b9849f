//! Finds the id of an answer that is too large to be kept, or that is no JSON.

use rmcp::model::RequestId;
use serde_json::Value;

use super::field::id_of;

/// The most bytes of a key or an id that are kept.
const MAX_KEPT: usize = 128;

/// A pass over the bytes of a message.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the states of a scanner")]
pub(in super::super) struct IdFinder {
    levels: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// True between a colon and the next comma of the outermost object.
    is_at_value: bool,
    kept: Vec<u8>,
    is_id: bool,
    id: Option<RequestId>,
    has_method: bool,
}

impl IdFinder {
    /// Reads further bytes of the message.
    pub(in super::super) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.read_byte(*byte);
        }
    }

    /// Returns the id; `None` for a request or a notification, and for a message without a fit id.
    pub(in super::super) fn found(self) -> Option<RequestId> {
        self.id.filter(|_| !self.has_method)
    }

    /// True while the message has not ended.
    pub(in super::super) fn is_open(&self) -> bool {
        self.is_in_string || self.levels > 0
    }

    fn read_byte(&mut self, byte: u8) {
        if self.is_in_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_in_string = true;
                self.keep(byte);
            }
            b':' if self.levels == 1 => {
                self.is_at_value = true;
                self.is_id = self.kept == b"\"id\"";
                self.has_method |= self.kept == b"\"method\"";
                self.kept.clear();
            }
            b',' if self.levels == 1 => self.end_value(),
            b'{' | b'[' => self.levels += 1,
            b'}' | b']' => {
                if self.levels == 1 {
                    self.end_value();
                }
                self.levels = self.levels.saturating_sub(1);
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    /// Keeps a byte of a key or of a scalar of the outermost object.
    fn keep(&mut self, byte: u8) {
        if self.levels == 1 && self.kept.len() < MAX_KEPT {
            self.kept.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.is_at_value && self.is_id {
            let id: Option<Value> = serde_json::from_slice(&self.kept).ok();
            self.id = id.as_ref().and_then(id_of);
        }
        self.kept.clear();
        (self.is_at_value, self.is_id) = (false, false);
    }
}

/// Finds the id of an answer whose text is no JSON. Servers write the id near the begin, or as the last field.
pub(super) fn id_in(text: &str) -> Option<RequestId> {
    let mut finder = IdFinder::default();
    finder.read(text.as_bytes());
    if finder.has_method {
        return None;
    }
    finder.id.or_else(|| {
        let (_, last) = text.rsplit_once("\"id\"")?;
        let id = last
            .trim_start()
            .strip_prefix(':')?
            .trim()
            .strip_suffix('}')?;
        id_of(&serde_json::from_str(id).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(message: &str) -> Option<String> {
        let mut finder = IdFinder::default();
        // In pieces, as from a pipe.
        for piece in message.as_bytes().chunks(3) {
            finder.read(piece);
        }
        finder.found().map(|id| id.to_string())
    }

    #[test]
    fn the_id_stands_before_or_after_the_result() {
        let before = r#"{"jsonrpc":"2.0", "id" : 17, "result":{"id":1,"a":["}",{"id":2}]}}"#;
        assert_eq!(id_of(before).as_deref(), Some("17"));
        let after = r#"{"result":{"text":"\"id\":3,\\"},"jsonrpc":"2.0","id":"a:1,"}"#;
        assert_eq!(id_of(after).as_deref(), Some("a:1,"));
    }

    #[test]
    fn only_an_answer_has_an_id() {
        assert_eq!(id_of(r#"{"id":1,"method":"roots/list"}"#), None);
        assert_eq!(id_of(r#"{"id":null,"result":{}}"#), None);
        assert_eq!(id_of(r"yyyyyyy"), None);
    }

    #[test]
    fn the_id_of_a_broken_answer_is_found_at_either_end() {
        let id = |text| id_in(text).map(|id| id.to_string());
        let bare_quotes = r#"{"jsonrpc":"2.0","id":7,"result":{"text":"a "b"#;
        assert_eq!(id(bare_quotes).as_deref(), Some("7"));
        let last = r#"{"result":{"text":"a "b" "c"},"jsonrpc":"2.0","id":8}"#;
        assert_eq!(id(last).as_deref(), Some("8"));
        let odd = r#"{"result":{"text":"a "b c"},"jsonrpc":"2.0","id": "8" }"#;
        assert_eq!(id(odd).as_deref(), Some("8"));
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":1,"method":"x"#), None);
    }
}
