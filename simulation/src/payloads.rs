//! The payloads of the engine: values as JSON, as the SDK writes and reads them.

use serde::{Serialize, de::DeserializeOwned};
use temporalio_common::protos::temporal::api::common::v1::Payload;

/// Encodes a value as the SDK does.
pub(crate) fn payload(value: &impl Serialize) -> Payload {
    Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: serde_json::to_vec(value).unwrap_or_default(),
        ..Payload::default()
    }
}

/// Decodes a value.
///
/// # Errors
///
/// A sentence when the payload is not the value.
pub(crate) fn value<T: DeserializeOwned>(payload: &Payload) -> Result<T, String> {
    serde_json::from_slice(&payload.data).map_err(|error| error.to_string())
}
