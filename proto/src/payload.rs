//! Payloads of Temporal as the codec of a worker hands them to a workflow: opened, with the label of their key; or refused,
//! with the reason. The workflow decides about the refused payload, because only the workflow knows its own tenant, and
//! whether the payload is a signal or the result of its own activity.
//!
//! Must not be here: keys and encryption (`codec/`).

use serde::de::DeserializeOwned;
use temporalio_common::protos::temporal::api::common::v1::Payload;

use crate::words::PayloadRefusal;

/// The encoding of an encrypted payload. The Temporal UI and the CLI know this name.
pub const ENCRYPTED: &str = "binary/encrypted";

/// The field of a payload's metadata with the encoding of the payload's bytes.
const ENCODING: &str = "encoding";
/// The encoding of a payload that the codec has put into the position of a refused payload.
const REFUSED: &str = "everturn/refused";
/// The field with the reason of a refusal.
const REASON: &str = "everturn-refusal";
/// The field with the label of the key that opened the payload.
const OPENED_FOR: &str = "everturn-opened-for";
/// The encodings of the values that Temporal's SDKs write.
const JSON: &[u8] = b"json/plain";
const NULL: &[u8] = b"binary/null";

/// Adds the label of its key to an opened payload. An empty label is the installation's.
pub fn opened_for(mut payload: Payload, label: String) -> Payload {
    let label = label.into_bytes();
    payload.metadata.insert(OPENED_FOR.to_owned(), label);
    payload
}

/// Makes the payload that stands for a refused payload. No converter takes the payload for a value.
pub fn refused(reason: &PayloadRefusal) -> Payload {
    let metadata = [(ENCODING, REFUSED), (REASON, reason.as_str())];
    let metadata = metadata.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    Payload {
        metadata: metadata.into(),
        ..Payload::default()
    }
}

/// True for a payload that looks refused. A payload in clear may look refused, too, because its sender writes the encoding.
pub fn is_refused(payload: &Payload) -> bool {
    encoding(payload) == Some(REFUSED.as_bytes())
}

/// Returns the reason why the codec could not open a payload. Without a codec, every encrypted payload is refused.
pub fn unopened(payload: &Payload) -> Option<PayloadRefusal> {
    if encoding(payload) == Some(ENCRYPTED.as_bytes()) {
        return Some(PayloadRefusal::NoKey);
    }
    if !is_refused(payload) {
        return None;
    }
    let reason = payload.metadata.get(REASON);
    let reason = reason.and_then(|reason| str::from_utf8(reason).ok());
    Some(match reason.map(PayloadRefusal::from) {
        // The sender of a payload in clear may write any reason. The reason becomes a label of a metric.
        Some(PayloadRefusal::Unknown(_)) | None => PayloadRefusal::Malformed,
        Some(known) => known,
    })
}

/// Returns the reason why a workflow must not take a payload. `label` is the label of the workflow's tenant. Only operators
/// and the processes of the installation can send payloads with the key of the installation, so every workflow takes them.
pub fn refusal(payload: &Payload, label: &str) -> Option<PayloadRefusal> {
    unopened(payload).or_else(|| {
        let own = payload.metadata.get(OPENED_FOR)?;
        let is_foreign = !own.is_empty() && own != label.as_bytes();
        is_foreign.then_some(PayloadRefusal::ForeignTenant)
    })
}

/// Returns the value of a payload, or the reason why the payload has none. The payload is decoded as its text, never by a
/// tree, because a tree would change long numbers and drop repeated keys.
pub(crate) fn json<T: DeserializeOwned>(payload: &Payload) -> Result<T, String> {
    let decoded = |text| serde_json::from_slice(text).map_err(|error| error.to_string());
    match encoding(payload) {
        Some(JSON) => decoded(&payload.data),
        Some(NULL) => decoded(b"null"),
        Some(_) | None => Err("the payload is not JSON".to_owned()),
    }
}

fn encoding(payload: &Payload) -> Option<&[u8]> {
    payload.metadata.get(ENCODING).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn value() -> Payload {
        Payload {
            metadata: [(ENCODING.to_owned(), JSON.to_vec())].into(),
            data: b"1".to_vec(),
            ..Payload::default()
        }
    }

    #[test]
    fn a_payload_is_for_its_tenant_and_the_installations_for_everybody() {
        assert_eq!(refusal(&value(), "acme"), None, "in clear");
        for label in ["acme", ""] {
            let opened = opened_for(value(), label.to_owned());
            assert_eq!(refusal(&opened, "acme"), None, "{label}");
            assert_eq!(json::<u32>(&opened), Ok(1));
        }
        let foreign = opened_for(value(), "beta".to_owned());
        assert_eq!(
            refusal(&foreign, "acme"),
            Some(PayloadRefusal::ForeignTenant)
        );
    }

    #[test]
    fn a_refused_payload_has_a_known_reason_and_no_value() {
        for reason in PayloadRefusal::ALL {
            let refused = refused(reason);
            assert_eq!(unopened(&refused).as_ref(), Some(reason));
            assert!(json::<Value>(&refused).is_err());
        }
        let invented = refused(&PayloadRefusal::from("anything"));
        assert_eq!(unopened(&invented), Some(PayloadRefusal::Malformed));
        let mut sealed = value();
        let encrypted = ENCRYPTED.as_bytes().to_vec();
        sealed.metadata.insert(ENCODING.to_owned(), encrypted);
        assert_eq!(unopened(&sealed), Some(PayloadRefusal::NoKey));
    }
}
