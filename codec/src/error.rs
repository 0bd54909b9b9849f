//! Why a payload cannot be read.

use everturn_proto::words::PayloadRefusal;

/// A payload that cannot be read, or cannot be written. The text of the error never has the payload's content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The ring lacks the payload's key. A worker with the key can read the payload.
    #[error(
        "the key ring of [codec] has no key `{0}` of an encrypted payload: add the key to the ring of this process"
    )]
    UnknownKey(String),
    /// The payload was changed after its encryption, or two keys have the same id.
    #[error(
        "a payload does not fit key `{0}`: it was changed, or the ring of [codec] has another key by this id"
    )]
    NotAuthentic(String),
    /// The payload has the encoding of a sealed payload, and not its form.
    #[error("an encrypted payload does not have the form of Everturn's codec: {0}")]
    Malformed(&'static str),
    /// A payload in clear, where the codec takes only encrypted payloads.
    #[error("a payload is not encrypted, and `require` of [codec] takes no other")]
    InClear,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes to encrypt with")]
    NoRandomness,
}

impl CodecError {
    /// Returns the reason for the workflow that gets the payload. A worker with another ring may open a payload that was
    /// changed, when two keys have one id, and no other.
    pub(crate) fn refusal(&self) -> PayloadRefusal {
        match self {
            Self::UnknownKey(_) | Self::NotAuthentic(_) => PayloadRefusal::NoKey,
            Self::InClear => PayloadRefusal::InClear,
            Self::Malformed(_) | Self::NoRandomness => PayloadRefusal::Malformed,
        }
    }
}
