//! Secrets in the store to sealed bytes and back, with the keys of the ring.
//!
//! The form is `length of the key's id (1) ‖ id ‖ sealed bytes` (`sealed`). The label binds the bytes to the owner and the use
//! of the secret: sealed bytes that are moved to the row of another owner do not open.

use crate::{
    error::CodecError,
    keys::KeyRing,
    sealed::{self, Purpose},
};

impl KeyRing {
    /// Seals a secret with the active key. `of` is what the secret belongs to, for example a tenant, a person and a use.
    pub fn seal_stored(&self, of: &[&str], clear: &[u8]) -> Result<Vec<u8>, CodecError> {
        let key = self.active();
        let sealed = sealed::seal(Purpose::Stored, key, &label(of), clear.to_vec())?;
        let length = u8::try_from(key.id.len());
        let length = length.map_err(|_| CodecError::Malformed("the id of a key"))?;
        Ok([&[length], key.id.as_bytes(), &sealed].concat())
    }

    /// Opens a secret that [`Self::seal_stored`] sealed for the same owner and use, with any key of the ring.
    pub fn open_stored(&self, of: &[&str], stored: &[u8]) -> Result<Vec<u8>, CodecError> {
        let short = CodecError::Malformed("it is too short");
        let (&length, rest) = stored.split_first().ok_or(short.clone())?;
        let (id, sealed) = rest.split_at_checked(length.into()).ok_or(short)?;
        sealed::open(Purpose::Stored, self.find(id)?, &label(of), sealed)
    }
}

/// Returns the parts as one text. The lengths keep parts with other boundaries apart.
fn label(of: &[&str]) -> String {
    let parts = of.iter().map(|part| format!("{}:{part}", part.len()));
    parts.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keys::generate_key;

    #[test]
    fn a_secret_opens_for_its_owner_alone_and_after_a_new_key() {
        let old = generate_key("old").unwrap();
        let ring = KeyRing::parse(&old).unwrap();
        let sealed = ring.seal_stored(&["acme", "ann"], b"token").unwrap();
        assert!(!sealed.windows(5).any(|part| part == b"token"));
        let rotated = format!("{}\n{old}", generate_key("new").unwrap());
        let rotated = KeyRing::parse(&rotated).unwrap();
        assert_eq!(
            rotated.open_stored(&["acme", "ann"], &sealed).unwrap(),
            b"token"
        );
        for foreign in [&["acme", "bob"][..], &["acm", "eann"], &["acme"], &[]] {
            assert!(ring.open_stored(foreign, &sealed).is_err(), "{foreign:?}");
        }
        let other = KeyRing::parse(&generate_key("other").unwrap()).unwrap();
        let error = other.open_stored(&["acme", "ann"], &sealed).unwrap_err();
        assert_eq!(error, CodecError::UnknownKey("old".to_owned()));
    }

    proptest! {
        #[test]
        fn any_stored_bytes_are_opened_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let ring = KeyRing::parse(&generate_key("a").unwrap()).unwrap();
            prop_assert!(ring.open_stored(&["acme"], &bytes).is_err());
        }
    }
}
