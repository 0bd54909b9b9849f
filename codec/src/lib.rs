//! Encrypts the payloads that go through Temporal, so that the engine, its database and its UI have no text of users in clear.
//! The same keys seal secrets in the store.
//!
//! - [`keys`](KeyRing): the keys of an installation, one of them active
//! - `sealed`: bytes to sealed bytes and back, with a key that is derived anew for each payload
//! - `stored`: secrets in the store to sealed bytes and back
//! - `codec`: payloads of Temporal's SDK to sealed payloads and back
//! - [`tenant`]: the tenant of a payload, which decides about the payload's key
//! - `error`: why a payload cannot be read
//!
//! `docs/operate/codec.md` describes the format for workers in other languages, and lists the data that stays in clear.
//! `vectors.json` has payloads that a codec in any language must read.
//!
//! Must not be here: where keys come from (`config/src/codec.rs`), and who may have payloads decoded
//! (`gateway/src/http/routes/codec.rs`).

mod codec;
mod error;
mod keys;
mod sealed;
mod stored;
pub mod tenant;

pub use self::{
    codec::{Codec, ENCODING, ENCRYPTED, KEY_ID, TENANT, is_encrypted, label_of, left_clear},
    error::CodecError,
    keys::{KeyRing, KeyRingError, generate_key},
};
