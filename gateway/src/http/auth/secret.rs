//! The secrets of keys and sessions: `evk_<id>_<random>` for a key, `evs_…` for a session.
//!
//! The id finds the row and is not secret. The rest is 32 random bytes. A plain SHA-256 of the bytes is enough, because
//! random bytes cannot be guessed, and a slow hash would only cost every request.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use everturn_store::KeyKind;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const ID_BYTES: usize = 8;
const RANDOM_BYTES: usize = 32;

/// A credential made by the gateway or presented by a caller. Logs never show the secret: `Debug` shows the id.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    kind: KeyKind,
    id: String,
    random: String,
}

impl Secret {
    /// Makes a new secret.
    pub fn generate(kind: KeyKind) -> Result<Self, getrandom::Error> {
        let (mut id, mut random) = ([0; ID_BYTES], [0; RANDOM_BYTES]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut random)?;
        let id = format!("{:016x}", u64::from_be_bytes(id));
        Ok(Self {
            kind,
            id,
            random: URL_SAFE_NO_PAD.encode(random),
        })
    }

    /// Reads a secret. Returns `None` when the text is not a secret of the gateway.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('_')?;
        let kind = [KeyKind::Key, KeyKind::Session]
            .into_iter()
            .find(|kind| prefix_of(*kind) == prefix)?;
        let (id, random) = rest.split_once('_')?;
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_random = URL_SAFE_NO_PAD
            .decode(random)
            .is_ok_and(|bytes| bytes.len() == RANDOM_BYTES);
        (is_id && is_random).then(|| Self {
            kind,
            id: id.to_owned(),
            random: random.to_owned(),
        })
    }

    /// Returns the kind of the secret: key or session.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Returns the id, which is not secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the complete text of the credential, for its owner.
    pub fn reveal(&self) -> String {
        format!("{}_{}_{}", prefix_of(self.kind), self.id, self.random)
    }

    /// Returns the hash of the secret, for the store.
    pub fn hash(&self) -> Vec<u8> {
        Sha256::digest(&self.random).to_vec()
    }

    /// Returns true when the secret has the hash. The comparison takes constant time.
    pub fn has_hash(&self, hash: &[u8]) -> bool {
        self.hash().ct_eq(hash).into()
    }
}

/// Returns the prefix of a kind's text. Scanners for leaked secrets recognize the prefix.
fn prefix_of(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Key => "evk",
        KeyKind::Session => "evs",
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_…", prefix_of(self.kind), self.id)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_is_read_as_it_was_made() {
        for kind in [KeyKind::Key, KeyKind::Session] {
            // Some of these have a `_` in the secret.
            for _ in 0..50 {
                let made = Secret::generate(kind).unwrap();
                let read = Secret::parse(&made.reveal()).unwrap();
                assert_eq!(read, made);
                assert!(read.has_hash(&made.hash()));
                assert!(!format!("{made:?}").contains(&made.random));
            }
        }
    }

    #[test]
    fn another_secret_does_not_fit() {
        let (one, other) = (
            Secret::generate(KeyKind::Key).unwrap(),
            Secret::generate(KeyKind::Key).unwrap(),
        );
        assert_ne!(one.id(), other.id());
        assert!(
            !one.has_hash(&other.hash()) && !one.has_hash(&[]) && !one.has_hash(&one.hash()[..31])
        );
    }

    #[test]
    fn what_is_no_secret_is_not_read() {
        let text = Secret::generate(KeyKind::Key).unwrap().reveal();
        let longer = format!("{text}A");
        for bad in [
            "",
            "evk",
            "evk__",
            "evk_0011223344556677_",
            "a.b.c",
            &text[1..],
            &text[..40],
            &longer,
            &text.replace("evk", "evx"),
        ] {
            assert_eq!(Secret::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_secret_as_it_is_written_or_none(text in "\\PC{0,80}", like in "ev[ks]_[0-9a-f]{16}_[A-Za-z0-9_-]{42,44}") {
            for text in [text, like] {
                if let Some(secret) = Secret::parse(&text) {
                    prop_assert_eq!(secret.reveal(), text);
                    prop_assert_eq!(secret.hash().len(), 32);
                }
            }
        }
    }
}
