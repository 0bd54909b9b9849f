//! Payloads that are sealed, opened and refused.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use everturn_proto::words::PayloadRefusal;
use proptest::prelude::*;
use temporalio_common::{
    data_converters::{
        ActivitySerializationContext, GenericPayloadConverter, SerializationContext,
        WorkflowSerializationContext,
    },
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
    let file: serde_json::Value = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
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

fn of_workflow() -> SerializationContextData {
    SerializationContextData::Workflow(WorkflowSerializationContext::new())
}

#[tokio::test]
async fn a_workflow_gets_the_reason_of_a_refusal_and_the_label_of_a_payload() {
    let ring = key("a");
    let worker = codec(&ring).requiring(true).of_worker();
    let refusal = async |payload| {
        let decoded = worker.decode(&of_workflow(), vec![payload]).await;
        payload::refusal(&decoded.unwrap()[0], "acme")
    };
    let seal = |label| worker.seal(&json("1"), label).unwrap();
    for own in [Some("acme"), None] {
        assert_eq!(refusal(seal(own)).await, None, "{own:?}");
    }
    let foreign = refusal(seal(Some("beta"))).await;
    assert_eq!(foreign, Some(PayloadRefusal::ForeignTenant));
    let other = codec(&key("b")).seal(&json("1"), None).unwrap();
    assert_eq!(refusal(other.clone()).await, Some(PayloadRefusal::NoKey));
    let same_id = codec(&key("a")).seal(&json("1"), None).unwrap();
    assert_eq!(refusal(same_id).await, Some(PayloadRefusal::NoKey));
    let in_clear = refusal(json("1")).await;
    assert_eq!(in_clear, Some(PayloadRefusal::InClear));
    let mut cut = seal(None);
    cut.data.truncate(3);
    let malformed = Some(PayloadRefusal::Malformed);
    assert_eq!(refusal(cut).await, malformed);
    let invented = payload::refused(&PayloadRefusal::NoKey);
    assert_eq!(refusal(invented).await, malformed);
    // Activities and clients fail, because nothing of theirs would look at the reason.
    let of_activity = SerializationContextData::Activity(ActivitySerializationContext::new());
    assert!(
        worker
            .decode(&of_activity, vec![other.clone()])
            .await
            .is_err()
    );
    let client = codec(&ring);
    assert!(client.decode(&of_workflow(), vec![other]).await.is_err());
}

#[tokio::test]
async fn a_worker_without_require_takes_payloads_in_clear_as_they_are() {
    let worker = codec(&key("a")).of_worker();
    let decoded = worker.decode(&of_workflow(), vec![json("1")]).await;
    assert_eq!(decoded.unwrap(), [json("1")]);
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
