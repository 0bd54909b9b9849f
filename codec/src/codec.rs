//! Payloads of Temporal's SDK to sealed payloads and back.

use futures::future::{BoxFuture, FutureExt, ready};
use prost::Message;
use temporalio_common::{
    data_converters::{
        DataConverter, DefaultFailureConverter, PayloadCodec, PayloadConversionError,
        PayloadConverter, SerializationContextData,
    },
    protos::temporal::api::common::v1::Payload,
};

use crate::{error::CodecError, keys::KeyRing, sealed, tenant};

/// The field of a payload's metadata with the encoding of the payload's bytes.
pub const ENCODING: &str = "encoding";
/// The encoding of a sealed payload. The Temporal UI and the CLI know this name.
pub const ENCRYPTED: &str = "binary/encrypted";
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
}

impl Codec {
    /// Makes the codec of a ring. Payloads in clear pass unchanged: those of histories from before the codec, and the input that
    /// an operator typed.
    pub fn new(ring: KeyRing) -> Self {
        Self {
            ring,
            is_required: false,
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
        let data = sealed::seal(key, label.unwrap_or_default(), payload.encode_to_vec())?;
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
        let clear = sealed::open(key, label, &payload.data)?;
        Payload::decode(clear.as_slice()).map_err(|_| CodecError::Malformed("it holds no payload"))
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
        _: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        let decoded = payloads.into_iter().map(|payload| self.open(payload));
        ready(decoded.collect::<Result<_, _>>().map_err(conversion_error)).boxed()
    }
}

/// Makes the error with which the SDK fails the workflow task or the attempt. The engine tries both again.
fn conversion_error(error: CodecError) -> PayloadConversionError {
    PayloadConversionError::EncodingError(Box::new(error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use temporalio_common::{
        data_converters::{GenericPayloadConverter, SerializationContext},
        error::{ApplicationFailure, IncomingError, OutgoingActivityError, OutgoingError},
        payload_visitor::{decode_payloads, encode_payloads},
        protos::{
            coresdk::{
                ActivityTaskCompletion,
                activity_result::{ActivityExecutionResult, activity_execution_result::Status},
            },
            temporal::api::failure::v1::Failure,
        },
    };

    use super::*;
    use crate::keys::generate_key;

    const NONE: SerializationContextData = SerializationContextData::None;

    fn key(id: &str) -> String {
        generate_key(id).unwrap()
    }

    fn codec(ring: &str) -> Codec {
        Codec::new(KeyRing::parse(ring).unwrap())
    }

    fn json(text: &str) -> Payload {
        Payload {
            metadata: [(ENCODING.to_owned(), b"json/plain".to_vec())].into(),
            data: text.as_bytes().to_vec(),
            ..Payload::default()
        }
    }

    fn contains(bytes: &[u8], word: &str) -> bool {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    }

    #[test]
    fn each_vector_opens() {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../vectors.json")).unwrap();
        let codec = codec(file["ring"].as_str().unwrap()).requiring(true);
        for vector in file["vectors"].as_array().unwrap() {
            let text = |name: &str| vector[name].as_str().unwrap();
            let metadata = [(ENCODING, ENCRYPTED), (KEY_ID, text("key_id"))]
                .into_iter()
                .chain(
                    [(TENANT, text("tenant"))]
                        .into_iter()
                        .filter(|it| !it.1.is_empty()),
                );
            let payload = Payload {
                metadata: metadata
                    .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
                    .collect(),
                data: STANDARD.decode(text("sealed")).unwrap(),
                ..Payload::default()
            };
            let opened = codec.open(payload).unwrap();
            assert_eq!(opened.metadata[ENCODING], text("encoding").as_bytes());
            assert_eq!(opened.data, STANDARD.decode(text("data")).unwrap());
        }
    }

    #[tokio::test]
    async fn a_payload_is_for_the_tenant_of_its_request_or_the_one_that_it_names() {
        let codec = codec(&key("a"));
        let encode = async |payload| {
            let encoded = codec.encode(&NONE, vec![payload]).await.unwrap();
            encoded.into_iter().next().unwrap()
        };
        let named = json(r#"{"tenant_id":"acme","content":"canary"}"#);
        let encoded = encode(named.clone()).await;
        assert_eq!(label_of(&encoded), Some("acme"));
        assert!(is_encrypted(&encoded) && !contains(&encoded.encode_to_vec(), "canary"));
        assert_eq!(codec.open(encoded.clone()).unwrap(), named);
        let scoped = tenant::within("beta", encode(named)).await;
        assert_eq!(label_of(&scoped), Some("beta"));
        let nobody = encode(json("1")).await;
        assert_eq!(label_of(&nobody), Some(""));
        let mut stolen = encoded;
        stolen.metadata.insert(TENANT.to_owned(), b"beta".to_vec());
        let refused = codec.open(stolen).unwrap_err();
        assert_eq!(refused, CodecError::NotAuthentic("a".to_owned()));
    }

    #[tokio::test]
    async fn a_rotation_reads_what_the_old_key_wrote() {
        let (old, new) = (key("old"), key("new"));
        let before = codec(&old);
        let written = before.seal(&json("1"), None).unwrap();
        let prepared = codec(&format!("{old}\n{new}"));
        assert_eq!(
            prepared.seal(&json("1"), None).unwrap().metadata[KEY_ID],
            b"old"
        );
        let after = codec(&format!("{new}\n{old}"));
        let newer = after.seal(&json("2"), None).unwrap();
        assert_eq!(newer.metadata[KEY_ID], b"new");
        assert_eq!(after.open(written.clone()).unwrap(), json("1"));
        assert_eq!(prepared.open(newer.clone()).unwrap(), json("2"));
        let unknown = CodecError::UnknownKey("new".to_owned());
        assert_eq!(before.open(newer.clone()).unwrap_err(), unknown);
        let decoded = before.decode(&NONE, vec![newer]).await;
        let error = decoded.unwrap_err().to_string();
        assert!(error.contains("no key `new`"), "{error}");
    }

    #[test]
    fn what_is_in_clear_passes_unless_it_must_not() {
        let codec = codec(&key("a"));
        assert_eq!(codec.open(json("1")).unwrap(), json("1"));
        let strict = codec.clone().requiring(true);
        assert_eq!(strict.open(json("1")).unwrap_err(), CodecError::InClear);
        let mut marked = json("1");
        left_clear(&mut marked);
        assert_eq!(codec.encoded(marked.clone()).unwrap(), marked);
        assert_eq!(strict.open(marked).unwrap_err(), CodecError::InClear);
    }

    /// The SDK's visitor encrypts the result of an activity, the details and the text of its failure, and the texts of the
    /// failure's causes.
    #[tokio::test]
    async fn the_texts_and_details_of_failures_are_encrypted() {
        let codec = codec(&key("a"));
        let converter = codec.converter();
        let cause = std::io::Error::other("canary-cause");
        let failure = ApplicationFailure::builder(Chained(cause))
            .type_name("llm_unavailable".to_owned())
            .details("canary-details".to_owned())
            .build();
        let error = OutgoingError::Activity(OutgoingActivityError::Application(Box::new(failure)));
        let failure = converter.to_failure(&NONE, error);
        let mut completion = ActivityTaskCompletion {
            task_token: Vec::new(),
            result: Some(ActivityExecutionResult::fail(failure)),
        };
        encode_payloads(&mut completion, &codec, &NONE)
            .await
            .unwrap();
        let bytes = completion.encode_to_vec();
        assert!(!contains(&bytes, "canary"));
        assert!(contains(&bytes, "llm_unavailable"), "codes stay in clear");
        let Some(Status::Failed(failed)) = completion.result.unwrap().status else {
            panic!("it has failed");
        };
        let mut failure: Failure = failed.failure.unwrap();
        assert_eq!(failure.message, "Encoded failure");
        decode_payloads(&mut failure, &codec, &NONE).await.unwrap();
        let decoded =
            converter
                .failure_converter()
                .to_error(failure, converter.payload_converter(), &NONE);
        let IncomingError::Application(failure) = decoded.unwrap() else {
            panic!("it is an application's failure");
        };
        assert_eq!(failure.to_string(), "canary-text");
        assert_eq!(failure.type_name(), Some("llm_unavailable"));
    }

    #[derive(Debug, thiserror::Error)]
    #[error("canary-text")]
    struct Chained(#[source] std::io::Error);

    #[tokio::test]
    async fn the_converter_of_the_sdk_uses_the_codec() {
        let converter = codec(&key("a")).converter();
        let payload = converter
            .to_payload(&NONE, &"canary".to_owned())
            .await
            .unwrap();
        assert!(is_encrypted(&payload));
        let plain = PayloadConverter::default();
        let context = SerializationContext::new(&NONE, &plain);
        let undecoded: Result<String, _> = plain.from_payload(&context, payload.clone());
        assert!(undecoded.is_err(), "it is not read without the codec");
        let text: String = converter.from_payload(&NONE, payload).await.unwrap();
        assert_eq!(text, "canary");
    }

    proptest! {
        #[test]
        fn any_payload_is_opened_or_refused(
            metadata in prop::collection::hash_map(
                prop::sample::select(vec![ENCODING, KEY_ID, TENANT, "other"]),
                prop_oneof![
                    Just(ENCRYPTED.as_bytes().to_vec()),
                    Just(b"a".to_vec()),
                    prop::collection::vec(any::<u8>(), 0..20),
                ],
                0..4,
            ),
            data in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let metadata: HashMap<_, _> = metadata
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            let payload = Payload { metadata, data, ..Payload::default() };
            let was_encrypted = is_encrypted(&payload);
            match codec(&key("a")).open(payload.clone()) {
                Ok(opened) => prop_assert!(!was_encrypted && opened == payload),
                Err(_) => prop_assert!(was_encrypted),
            }
        }
    }
}
