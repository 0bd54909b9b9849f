//! A cache of recently sent files, so that a step does not read a file again.

use std::sync::{Mutex, PoisonError};

use everturn_models::SentFile;
use lru::LruCache;

/// The most bytes of the cache: the files of three parallel turns with the largest allowed request. The least
/// recently used file is removed first.
const MAX_BYTES: usize = 96 * 1024 * 1024;

/// The cache of recently sent files.
#[derive(Debug)]
pub(crate) struct KnownFiles {
    known: Mutex<Known>,
    max_bytes: usize,
}

#[derive(Debug)]
struct Known {
    files: LruCache<(String, String), SentFile>,
    bytes: usize,
}

impl Default for KnownFiles {
    fn default() -> Self {
        Self::with_limit(MAX_BYTES)
    }
}

impl KnownFiles {
    fn with_limit(max_bytes: usize) -> Self {
        let known = Known {
            files: LruCache::unbounded(),
            bytes: 0,
        };
        Self {
            known: Mutex::new(known),
            max_bytes,
        }
    }

    /// Returns a file of a conversation from the cache.
    pub(crate) fn get(&self, conversation_id: &str, blob_id: &str) -> Option<SentFile> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (conversation_id.to_owned(), blob_id.to_owned());
        known.files.get(&key).cloned()
    }

    /// Adds a file to the cache.
    pub(crate) fn put(&self, conversation_id: &str, blob_id: &str, file: SentFile) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.bytes += bytes(&file);
        let key = (conversation_id.to_owned(), blob_id.to_owned());
        if let Some(before) = known.files.put(key, file) {
            known.bytes -= bytes(&before);
        }
        while known.bytes > self.max_bytes
            && let Some((_, oldest)) = known.files.pop_lru()
        {
            known.bytes -= bytes(&oldest);
        }
    }
}

fn bytes(file: &SentFile) -> usize {
    match file {
        SentFile::Base64(text) | SentFile::Text(text) => text.len(),
        SentFile::Told(sentence) => sentence.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_file_goes_first_and_conversations_do_not_share() {
        let known = KnownFiles::with_limit(10);
        let file = |text: &str| SentFile::Text(text.into());
        known.put("a", "1", file("12345"));
        known.put("a", "2", file("12345"));
        assert!(known.get("a", "1").is_some() && known.get("b", "1").is_none());
        known.put("a", "3", file("12345"));
        assert!(known.get("a", "2").is_none() && known.get("a", "1").is_some());
        known.put("a", "3", file("1"));
        known.put("a", "4", file("1234"));
        assert!(
            known.get("a", "1").is_some(),
            "a file that is read again counts once"
        );
    }
}
