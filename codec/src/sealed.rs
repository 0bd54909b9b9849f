//! Bytes to sealed bytes and back: AES-256-GCM, with a derived key for every payload.
//!
//! The form is `1 ‖ salt (16) ‖ nonce (12) ‖ ciphertext ‖ tag (16)`. The key of the payload is HKDF-SHA256 of a key of the
//! ring, with the salt and the tenant's label. Because a derived key encrypts a single payload, a key of the ring serves any number
//! of payloads. A key that encrypted the payloads itself would serve some 2^32 payloads, because nonces are random.

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    rand::{SecureRandom, SystemRandom},
};

use crate::{error::CodecError, keys::Key};

/// The first byte, which is the version of the form.
const VERSION: u8 = 1;
const SALT_LEN: usize = 16;
const RANDOM_LEN: usize = SALT_LEN + NONCE_LEN;

/// The purpose of derived keys and tags. Each use of the ring's keys has a purpose of its own, and so derives other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Payloads of Temporal.
    Payload,
    /// Secrets in the store.
    Stored,
}

impl Purpose {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Payload => b"everturn/codec/1",
            Self::Stored => b"everturn/stored/1",
        }
    }
}

/// Seals bytes with a random salt and a random nonce.
pub(crate) fn seal(
    purpose: Purpose,
    key: &Key,
    label: &str,
    clear: Vec<u8>,
) -> Result<Vec<u8>, CodecError> {
    let mut random = [0; RANDOM_LEN];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| CodecError::NoRandomness)?;
    seal_with(random, purpose, key, label, clear)
}

fn seal_with(
    random: [u8; RANDOM_LEN],
    purpose: Purpose,
    key: &Key,
    label: &str,
    mut clear: Vec<u8>,
) -> Result<Vec<u8>, CodecError> {
    let (salt, nonce) = random.split_at(SALT_LEN);
    let derived = derived(purpose, key, label, salt)?;
    let nonce =
        Nonce::try_assume_unique_for_key(nonce).map_err(|_| CodecError::Malformed("its nonce"))?;
    derived
        .seal_in_place_append_tag(nonce, Aad::from(bound(purpose, key, label)), &mut clear)
        .map_err(|_| CodecError::Malformed("more bytes than can be encrypted"))?;
    let mut sealed = Vec::with_capacity(1 + RANDOM_LEN + clear.len());
    sealed.push(VERSION);
    sealed.extend_from_slice(&random);
    sealed.extend_from_slice(&clear);
    Ok(sealed)
}

/// Opens bytes that [`seal`] sealed for this purpose with this key and label.
pub(crate) fn open(
    purpose: Purpose,
    key: &Key,
    label: &str,
    sealed: &[u8],
) -> Result<Vec<u8>, CodecError> {
    let Some((&VERSION, rest)) = sealed.split_first() else {
        return Err(CodecError::Malformed("its version is not known"));
    };
    let short = CodecError::Malformed("it is too short");
    let (salt, rest) = rest.split_at_checked(SALT_LEN).ok_or(short.clone())?;
    let (nonce, rest) = rest.split_at_checked(NONCE_LEN).ok_or(short)?;
    let derived = derived(purpose, key, label, salt)?;
    let nonce =
        Nonce::try_assume_unique_for_key(nonce).map_err(|_| CodecError::Malformed("its nonce"))?;
    let mut sealed = rest.to_vec();
    let length = derived
        .open_in_place(nonce, Aad::from(bound(purpose, key, label)), &mut sealed)
        .map_err(|_| CodecError::NotAuthentic(key.id.clone()))?
        .len();
    sealed.truncate(length);
    Ok(sealed)
}

/// The key of one payload.
fn derived(
    purpose: Purpose,
    key: &Key,
    label: &str,
    salt: &[u8],
) -> Result<LessSafeKey, CodecError> {
    let label = [purpose.word(), b"\0", label.as_bytes()];
    let unusable = |_| CodecError::Malformed("its label");
    let secret = Salt::new(HKDF_SHA256, salt).extract(&key.secret);
    let key = secret.expand(&label, &AES_256_GCM).map_err(unusable)?;
    Ok(LessSafeKey::new(UnboundKey::from(key)))
}

/// Returns the associated data of a payload, which the tag binds: the id of the key, and the label. An id has no NUL.
fn bound(purpose: Purpose, key: &Key, label: &str) -> Vec<u8> {
    [
        purpose.word(),
        b"\0",
        key.id.as_bytes(),
        b"\0",
        label.as_bytes(),
    ]
    .concat()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keys::{KEY_BYTES, KeyRing};

    fn key(id: &str, byte: u8) -> Key {
        Key {
            id: id.to_owned(),
            secret: [byte; KEY_BYTES],
        }
    }

    #[test]
    fn only_the_same_key_and_label_open() {
        let sealed = seal(Purpose::Payload, &key("a", 1), "acme", b"secret".to_vec()).unwrap();
        assert_eq!(
            open(Purpose::Payload, &key("a", 1), "acme", &sealed).unwrap(),
            b"secret"
        );
        let not_authentic = |id: &str| Err(CodecError::NotAuthentic(id.to_owned()));
        assert_eq!(
            open(Purpose::Payload, &key("a", 2), "acme", &sealed),
            not_authentic("a")
        );
        assert_eq!(
            open(Purpose::Payload, &key("b", 1), "acme", &sealed),
            not_authentic("b")
        );
        assert_eq!(
            open(Purpose::Payload, &key("a", 1), "other", &sealed),
            not_authentic("a")
        );
        assert_eq!(
            open(Purpose::Payload, &key("a", 1), "", &sealed),
            not_authentic("a")
        );
        assert_eq!(
            open(Purpose::Stored, &key("a", 1), "acme", &sealed),
            not_authentic("a")
        );
        let again = seal(Purpose::Payload, &key("a", 1), "acme", b"secret".to_vec()).unwrap();
        assert_ne!(sealed[1..=RANDOM_LEN], again[1..=RANDOM_LEN]);
        assert_ne!(sealed[1 + RANDOM_LEN..], again[1 + RANDOM_LEN..]);
    }

    #[test]
    fn the_vectors_are_sealed_to_the_byte() {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../vectors.json")).unwrap();
        let ring = KeyRing::parse(file["ring"].as_str().unwrap()).unwrap();
        let vectors = file["vectors"].as_array().unwrap();
        assert!(vectors.len() > 2);
        for vector in vectors {
            let text = |name: &str| vector[name].as_str().unwrap_or_default();
            let bytes = |name: &str| STANDARD.decode(text(name)).unwrap();
            let key = ring.find(text("key_id").as_bytes()).unwrap();
            let random = bytes("random").try_into().unwrap();
            let sealed = seal_with(
                random,
                Purpose::Payload,
                key,
                text("tenant"),
                bytes("clear"),
            )
            .unwrap();
            assert_eq!(STANDARD.encode(sealed), text("sealed"), "{vector}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_and_no_changed_byte_does(
            clear in prop::collection::vec(any::<u8>(), 0..200),
            label in "[a-z]{0,8}",
            at in any::<prop::sample::Index>(),
            change in 1u8..,
        ) {
            let key = key("a", 7);
            let mut sealed = seal(Purpose::Payload, &key, &label, clear.clone()).unwrap();
            prop_assert_eq!(open(Purpose::Payload, &key, &label, &sealed).unwrap(), clear);
            let at = at.index(sealed.len());
            sealed[at] ^= change;
            prop_assert!(open(Purpose::Payload, &key, &label, &sealed).is_err());
        }

        #[test]
        fn any_sealed_bytes_are_opened_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(open(Purpose::Payload, &key("a", 1), "", &bytes).is_err());
        }
    }
}
