//! Payloads of Temporal's SDK to sealed payloads and back.

use everturn_proto::payload;
use futures::future::{BoxFuture, FutureExt, ready};
use prost::Message;
use temporalio_common::{
    data_converters::{
        DataConverter, DefaultFailureConverter, PayloadCodec, PayloadConversionError,
        PayloadConverter, SerializationContextData,
    },
    protos::temporal::api::common::v1::Payload,
};

use crate::{
    error::CodecError,
    keys::KeyRing,
    sealed::{self, Purpose},
    tenant,
};

/// The field of a payload's metadata with the encoding of the payload's bytes.
pub const ENCODING: &str = "encoding";
/// The encoding of a sealed payload.
pub const ENCRYPTED: &str = payload::ENCRYPTED;
/// The field with the id of the key.
pub const KEY_ID: &str = "encryption-key-id";
/// The field with the label of the tenant; absent when the key is the installation's.
pub const TENANT: &str = "encryption-tenant";
/// The field that keeps a payload in clear. Only encoding reads the field, so a sender cannot use the field to get a payload past
/// decoding.
const LEFT_CLEAR: &str = "everturn-codec";

/// Marks a payload that must stay in clear, because SDKs read the payload without a codec. The caller must not mark a payload
/// with user data.
pub fn left_clear(payload: &mut Payload) {
    let value = b"clear".to_vec();
    payload.metadata.insert(LEFT_CLEAR.to_owned(), value);
}

/// Encrypts payloads with the active key of a ring, and decrypts payloads with any key of the ring.
#[derive(Debug, Clone)]
pub struct Codec {
    ring: KeyRing,
    is_required: bool,
    leaves_refusals: bool,
}

impl Codec {
    /// Makes the codec of a ring. Payloads in clear pass unchanged: those of histories from before the codec, and the input that
    /// an operator typed.
    pub fn new(ring: KeyRing) -> Self {
        Self {
            ring,
            is_required: false,
            leaves_refusals: false,
        }
    }

    /// Makes the codec refuse payloads in clear, when `is_required`.
    #[must_use]
    pub fn requiring(self, is_required: bool) -> Self {
        Self {
            is_required,
            ..self
        }
    }

    /// Makes the codec of a worker. A workflow gets a payload that the codec refuses as a mark with the reason
    /// ([`payload::refused`]), and every opened payload with the label of its key. The workflow then drops a signal, or fails
    /// the workflow task; the codec cannot tell a signal from the result of an activity. An activity with a refused payload
    /// fails its attempt.
    #[must_use]
    pub fn of_worker(self) -> Self {
        Self {
            leaves_refusals: true,
            ..self
        }
    }

    /// The keys.
    pub fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// Returns a converter with this codec for clients and workers. The converter encrypts the texts of failures, too.
    pub fn converter(&self) -> DataConverter {
        DataConverter::new(
            PayloadConverter::default(),
            DefaultFailureConverter::new(true),
            self.clone(),
        )
    }

    /// Encrypts a payload for the tenant of this label, or for the installation when the label is `None`.
    pub fn seal(&self, payload: &Payload, label: Option<&str>) -> Result<Payload, CodecError> {
        let key = self.ring.active();
        let data = sealed::seal(
            Purpose::Payload,
            key,
            label.unwrap_or_default(),
            payload.encode_to_vec(),
        )?;
        let mut metadata = vec![
            (ENCODING.to_owned(), ENCRYPTED.as_bytes().to_vec()),
            (KEY_ID.to_owned(), key.id.as_bytes().to_vec()),
        ];
        if let Some(label) = label.filter(|label| !label.is_empty()) {
            metadata.push((TENANT.to_owned(), label.as_bytes().to_vec()));
        }
        Ok(Payload {
            metadata: metadata.into_iter().collect(),
            data,
            ..Payload::default()
        })
    }

    /// Decrypts a payload. A payload in clear comes back unchanged.
    pub fn open(&self, payload: Payload) -> Result<Payload, CodecError> {
        if !is_encrypted(&payload) {
            return if self.is_required {
                Err(CodecError::InClear)
            } else {
                Ok(payload)
            };
        }
        let id = payload
            .metadata
            .get(KEY_ID)
            .ok_or(CodecError::Malformed("it names no key"))?;
        let key = self.ring.find(id)?;
        let label = label_of(&payload).ok_or(CodecError::Malformed("the label of its tenant"))?;
        let clear = sealed::open(Purpose::Payload, key, label, &payload.data)?;
        Payload::decode(clear.as_slice()).map_err(|_| CodecError::Malformed("it holds no payload"))
    }

    /// Decrypts a payload for a workflow, which decides about a refused payload.
    fn for_workflow(&self, payload: Payload) -> Payload {
        // A sender without a key cannot invent a reason.
        let opened = if payload::is_refused(&payload) {
            Err(CodecError::Malformed("it has the encoding of a refusal"))
        } else {
            let label = is_encrypted(&payload).then(|| label_of(&payload).map(str::to_owned));
            let opened = self.open(payload);
            opened.map(|opened| match label.flatten() {
                Some(label) => payload::opened_for(opened, label),
                None => opened,
            })
        };
        opened.unwrap_or_else(|error| {
            tracing::warn!(%error, "a payload of a workflow is refused");
            payload::refused(&error.refusal())
        })
    }

    fn encoded(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.metadata.contains_key(LEFT_CLEAR) {
            return Ok(payload);
        }
        let label = tenant::current().or_else(|| tenant::named_in(&payload.data));
        self.seal(&payload, label.as_deref())
    }
}

/// True for a payload that an Everturn codec has encrypted.
pub fn is_encrypted(payload: &Payload) -> bool {
    let encoding = payload.metadata.get(ENCODING);
    encoding.is_some_and(|encoding| encoding == ENCRYPTED.as_bytes())
}

/// Returns the label in a payload's metadata: the label of a tenant, or an empty label for the installation. Returns `None` when
/// the label is not UTF-8. The payload does not decrypt with a changed label.
pub fn label_of(payload: &Payload) -> Option<&str> {
    match payload.metadata.get(TENANT) {
        Some(label) => str::from_utf8(label).ok(),
        None => Some(""),
    }
}

impl PayloadCodec for Codec {
    fn encode(
        &self,
        _: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        let encoded = payloads.into_iter().map(|payload| self.encoded(payload));
        ready(encoded.collect::<Result<_, _>>().map_err(conversion_error)).boxed()
    }

    fn decode(
        &self,
        context: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        let is_for_workflow = matches!(context, SerializationContextData::Workflow(_));
        if self.leaves_refusals && is_for_workflow {
            let decoded = payloads.into_iter().map(|it| self.for_workflow(it));
            return ready(Ok(decoded.collect())).boxed();
        }
        let decoded = payloads.into_iter().map(|payload| self.open(payload));
        ready(decoded.collect::<Result<_, _>>().map_err(conversion_error)).boxed()
    }
}

/// Makes the error with which the SDK fails the workflow task or the attempt. The engine tries both again.
fn conversion_error(error: CodecError) -> PayloadConversionError {
    PayloadConversionError::EncodingError(Box::new(error))
}

#[cfg(test)]
mod tests;
