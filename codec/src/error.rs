//! Why a payload cannot be read.

/// A payload that cannot be read, or cannot be written. The text never holds what the payload says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The ring has no such key. A worker that has it can read the payload.
    #[error(
        "the key ring of [codec] has no key `{0}`, with which a payload was encrypted: add it to the ring of this process"
    )]
    UnknownKey(String),
    /// The payload was changed after it was encrypted, or its key has the same id as another one.
    #[error(
        "a payload does not fit key `{0}`: it was changed, or the ring of [codec] has another key by this id"
    )]
    NotAuthentic(String),
    /// What calls itself encrypted has not the form of it.
    #[error("a payload says that it is encrypted, and has not the form of it: {0}")]
    Malformed(&'static str),
    /// A payload in clear, where only encrypted ones are taken.
    #[error("a payload is not encrypted, and `require` of [codec] takes no other")]
    InClear,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes to encrypt with")]
    NoRandomness,
}
