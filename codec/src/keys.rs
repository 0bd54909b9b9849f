//! The keys of an installation.
//!
//! A ring is a text with a key a line, `<id>:<32 bytes in Base64>`. The first key encrypts. All of them decrypt.

use std::{collections::HashSet, fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::CodecError;

pub(crate) const KEY_BYTES: usize = 32;
/// Bytes of a key's id. Every payload carries the id of its key.
const MAX_ID_BYTES: usize = 64;
/// Keys of a ring. Nobody ever removed old keys from a ring with more keys.
const MAX_KEYS: usize = 64;

/// A text that is not a ring. The message never repeats the text, which contains secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// The text has no key.
    #[error("the ring has no key; make a key with `everturn codec key`")]
    Empty,
    /// More keys than a ring may have.
    #[error("the ring has more than {MAX_KEYS} keys")]
    TooMany,
    /// A line without the form of a key.
    #[error(
        "line {line} of the ring must be `<id>:<32 bytes in Base64>`, with letters, digits, dots, dashes and underscores \
         in the id; `everturn codec key` makes one"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The id of two keys in the ring.
    #[error("line {line} of the ring has the id of another key")]
    SameId {
        /// Number of the line, from 1.
        line: usize,
    },
}

/// The keys of an installation. Clones share them.
#[derive(Clone)]
pub struct KeyRing {
    /// The keys, at least one. The first one is active.
    keys: Arc<[Key]>,
}

/// A key of the ring. The codec derives the keys of payloads from the keys of the ring, and encrypts no payload with a ring key
/// itself.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: [u8; KEY_BYTES],
}

impl KeyRing {
    /// Reads a ring. Line ends or commas separate the lines. Empty lines and lines that begin with `#` are comments.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let (mut keys, mut ids) = (Vec::new(), HashSet::new());
        for (at, line) in text.split(['\n', ',']).map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = Key::parse(line).ok_or(KeyRingError::Line { line: at + 1 })?;
            if !ids.insert(key.id.clone()) {
                return Err(KeyRingError::SameId { line: at + 1 });
            }
            keys.push(key);
        }
        match keys.len() {
            0 => Err(KeyRingError::Empty),
            1..=MAX_KEYS => Ok(Self { keys: keys.into() }),
            _ => Err(KeyRingError::TooMany),
        }
    }

    /// The key that encrypts.
    pub(crate) fn active(&self) -> &Key {
        &self.keys[0]
    }

    pub(crate) fn find(&self, id: &[u8]) -> Result<&Key, CodecError> {
        let found = self.keys.iter().find(|key| key.id.as_bytes() == id);
        found.ok_or_else(|| CodecError::UnknownKey(shown(id)))
    }

    /// Returns the ids of the keys, beginning with the active key.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.id.as_str())
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

impl Key {
    fn parse(line: &str) -> Option<Self> {
        let (id, secret) = line.split_once(':')?;
        let secret = STANDARD.decode(secret.trim()).ok()?;
        Some(Self {
            id: is_id(id.as_bytes()).then(|| id.to_owned())?,
            secret: secret.try_into().ok()?,
        })
    }
}

/// Makes a key and returns the key as a line of a ring.
pub fn generate_key(id: &str) -> Result<String, CodecError> {
    if !is_id(id.as_bytes()) {
        return Err(CodecError::Malformed("the id of a key"));
    }
    let mut secret = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| CodecError::NoRandomness)?;
    Ok(format!("{id}:{}", STANDARD.encode(secret)))
}

fn is_id(id: &[u8]) -> bool {
    let is_fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.iter().all(is_fit)
}

/// Returns an id in a form for people. The id comes from a payload, so its bytes are not trusted.
fn shown(id: &[u8]) -> String {
    match str::from_utf8(id) {
        Ok(text) if is_id(id) => text.to_owned(),
        _ => "(not an id)".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_key_is_active_and_no_key_is_shown() {
        let (new, old) = (
            generate_key("2026-12").unwrap(),
            generate_key("2026-11").unwrap(),
        );
        let text = format!("# of December\n{new}\n\n{old}\n");
        let ring = KeyRing::parse(&text).unwrap();
        assert_eq!(ring.active().id, "2026-12");
        assert!(ring.find(b"2026-11").is_ok());
        assert_eq!(format!("{ring:?}"), r#"["2026-12", "2026-11"]"#);
        let in_one_line = KeyRing::parse(&format!("{new},{old}")).unwrap();
        assert!(in_one_line.ids().eq(ring.ids()));
        let unknown = ring.find(b"2025").err().unwrap();
        assert_eq!(unknown, CodecError::UnknownKey("2025".to_owned()));
        let hostile = ring.find(b"\x1b[2J").err().unwrap();
        assert_eq!(hostile, CodecError::UnknownKey("(not an id)".to_owned()));
    }

    #[test]
    fn what_is_no_ring_is_refused_without_being_repeated() {
        let key = generate_key("a").unwrap();
        let refused = |text: &str| KeyRing::parse(text).unwrap_err();
        assert_eq!(refused("\n# nothing\n"), KeyRingError::Empty);
        assert_eq!(
            refused(&format!("{key}\n{key}")),
            KeyRingError::SameId { line: 2 }
        );
        for wrong in [
            "secret",
            "a:c2VjcmV0",
            "a:",
            ":",
            "a b:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        ] {
            let error = refused(wrong);
            assert_eq!(error, KeyRingError::Line { line: 1 }, "{wrong}");
            assert!(!error.to_string().contains("c2VjcmV0"));
        }
        let many: Vec<_> = (0..=MAX_KEYS)
            .map(|number| generate_key(&number.to_string()).unwrap())
            .collect();
        assert_eq!(refused(&many.join("\n")), KeyRingError::TooMany);
        assert!(generate_key("with space").is_err());
    }

    proptest! {
        #[test]
        fn any_ring_is_read_or_refused(text in any::<String>()) {
            let _ = KeyRing::parse(&text);
        }
    }
}
