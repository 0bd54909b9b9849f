//! Whole results of tools. A model and the readers see a large result cut, and read the rest here.

use async_trait::async_trait;
use everturn_proto::{Thread, limits::TOOL_RESULT_SLICE_MAX_BYTES};

use super::{Access, Result};

/// The smallest slice, in bytes. Cuts fall between characters, therefore a slice must have room for the longest
/// character.
const MIN_SLICE_BYTES: u32 = 4;

/// The largest offset. PostgreSQL counts bytes from 1, in 31 bits. No result is longer.
const MAX_OFFSET_BYTES: u32 = i32::MAX.unsigned_abs() - 1;

/// Reads the whole results of tool executions, a slice at a time. For gateways and workers.
///
/// A JSON string is read as its text. Any other result is read as JSON in the database's notation (PostgreSQL
/// normalizes JSON). The calls return `None` if the tool execution is unknown or has no result yet.
#[async_trait]
pub trait ToolResults: Send + Sync {
    /// Reads the result for a caller. The tool execution must belong to a conversation visible to the caller.
    async fn tool_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>>;

    /// Reads the result for the model. The tool execution must belong to the model's own thread, because the thread's
    /// results are the model's context.
    async fn tool_result_of_thread(
        &self,
        conversation_id: &str,
        thread: &Thread,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>>;
}

/// The part of a result to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultRange {
    offset_bytes: u32,
    max_bytes: u32,
}

impl ResultRange {
    /// Makes a range of at most `max_bytes` bytes from the offset. A range has at most [`TOOL_RESULT_SLICE_MAX_BYTES`]
    /// bytes, and at least one character.
    pub fn new(offset_bytes: u32, max_bytes: u32) -> Self {
        let most = u32::try_from(TOOL_RESULT_SLICE_MAX_BYTES).unwrap_or(u32::MAX);
        Self {
            offset_bytes: offset_bytes.min(MAX_OFFSET_BYTES),
            max_bytes: max_bytes.clamp(MIN_SLICE_BYTES, most),
        }
    }

    /// Returns the range's slice of a text in memory.
    pub fn of(self, text: &str) -> ResultSlice {
        let bytes = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        let from = bytes(self.offset_bytes).min(text.len());
        let end = from.saturating_add(bytes(self.max_bytes)).min(text.len());
        let total_bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.slice(&text.as_bytes()[from..end], total_bytes)
    }

    pub(crate) fn offset_bytes(self) -> u32 {
        self.offset_bytes
    }

    pub(crate) fn max_bytes(self) -> u32 {
        self.max_bytes
    }

    /// Makes the slice from bytes that begin and end anywhere. Cut characters at either end are left out.
    pub(crate) fn slice(self, bytes: &[u8], total_bytes: u32) -> ResultSlice {
        let is_inside_character = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let skipped = bytes.iter().take_while(is_inside_character).count();
        let text = match std::str::from_utf8(&bytes[skipped..]) {
            Ok(text) => text,
            Err(cut) => {
                let whole = &bytes[skipped..skipped + cut.valid_up_to()];
                std::str::from_utf8(whole).unwrap_or_default()
            }
        };
        let skipped = u32::try_from(skipped).unwrap_or(u32::MAX);
        ResultSlice {
            text: text.to_owned(),
            offset_bytes: self.offset_bytes.saturating_add(skipped).min(total_bytes),
            total_bytes,
        }
    }
}

/// A part of a result, cut between characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSlice {
    /// The text; empty past the end of the result.
    pub text: String,
    /// The start of the slice: the first whole character from the requested offset.
    pub offset_bytes: u32,
    /// The length of the whole result.
    pub total_bytes: u32,
}

impl ResultSlice {
    /// Returns the start of the next slice; `None` at the end of the result.
    pub fn next_offset_bytes(&self) -> Option<u32> {
        let length = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        let next = self.offset_bytes.saturating_add(length);
        (next < self.total_bytes).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of a text from this offset.
    fn read(text: &str, offset_bytes: u32, max_bytes: u32) -> ResultSlice {
        ResultRange::new(offset_bytes, max_bytes).of(text)
    }

    #[test]
    fn slices_from_any_offset_give_the_whole_text() {
        let text = "aü€\u{1f600}".repeat(7);
        for max_bytes in 0..12 {
            let (mut whole, mut next) = (String::new(), Some(0));
            while let Some(offset_bytes) = next {
                let slice = read(&text, offset_bytes, max_bytes);
                assert_eq!(slice.offset_bytes, offset_bytes);
                whole.push_str(&slice.text);
                next = slice.next_offset_bytes();
            }
            assert_eq!(whole, text, "{max_bytes}");
        }
    }

    #[test]
    fn a_slice_begins_at_a_character_and_goes_on() {
        let slice = read("\u{1f600}ab", 1, 4);
        assert_eq!((slice.text.as_str(), slice.offset_bytes), ("a", 4));
        assert_eq!(slice.next_offset_bytes(), Some(5));
        let behind = read("ab", 9, 4);
        assert_eq!((behind.text.as_str(), behind.offset_bytes), ("", 2));
        assert_eq!(behind.next_offset_bytes(), None);
    }

    #[test]
    fn a_slice_has_a_limit() {
        let range = ResultRange::new(0, u32::MAX);
        assert_eq!(range.max_bytes() as usize, TOOL_RESULT_SLICE_MAX_BYTES);
    }
}
