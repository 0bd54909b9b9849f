//! The codec server encrypts and decrypts payloads for the Temporal UI and CLI, because only Everturn has the keys.
//!
//! The bodies have the format of Temporal's remote codecs. A caller reads the payloads of their own tenant, and an
//! operator reads every tenant's payloads. Unreadable and forbidden payloads come back unchanged, because Temporal can
//! then still show the readable rest of a history.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use base64::{
    Engine,
    alphabet::STANDARD as ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use everturn_codec::{is_encrypted, label_of, tenant};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::NewAuditEntry;
use serde::{Deserialize, Serialize};
use temporalio_common::protos::temporal::api::common::v1::Payload;
use utoipa::ToSchema;

use crate::{
    config::CodecServer,
    http::{
        audit::WithDetails,
        extract::{Caller, JsonBody},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
};

/// Maximum bytes of a request: two payloads of Temporal's maximum size, in Base64, with some room.
pub(super) const MAX_BODY_BYTES: usize = 6 * 1024 * 1024;
/// Maximum payloads of a request. The UI and the CLI send only the few payloads of one field.
const MAX_PAYLOADS: usize = 1000;

/// Base64 of the JSON format of Protocol Buffers: the padding is optional.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Payloads of Temporal.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CodecPayloads)]
pub(super) struct PayloadsBody {
    #[serde(default)]
    #[schema(max_items = 1000)]
    payloads: Vec<PayloadBody>,
}

/// One payload of Temporal, in the JSON format of Protocol Buffers.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CodecPayload)]
struct PayloadBody {
    /// Metadata of the payload, such as the encoding of `data`; values are in Base64.
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    /// The data of the payload, in Base64.
    #[serde(default)]
    data: String,
}

impl PayloadBody {
    fn read(self) -> Option<Payload> {
        let metadata = self
            .metadata
            .into_iter()
            .map(|(name, value)| Some((name, bytes(&value)?)));
        Some(Payload {
            metadata: metadata.collect::<Option<_>>()?,
            data: bytes(&self.data)?,
            ..Payload::default()
        })
    }
}

impl From<Payload> for PayloadBody {
    fn from(payload: Payload) -> Self {
        let metadata = payload.metadata.into_iter();
        Self {
            metadata: metadata
                .map(|(name, value)| (name, BASE64.encode(value)))
                .collect(),
            data: BASE64.encode(payload.data),
        }
    }
}

/// Decodes Base64 with either alphabet.
fn bytes(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.replace('-', "+").replace('_', "/")).ok()
}

problems!(CodecRefusals: InvalidBody, BodyTooLarge, NotFound);

/// Decrypts payloads.
///
/// For the Temporal UI and CLI. Payloads of another tenant, payloads with a key unknown to the gateway, and unencrypted
/// payloads come back unchanged. Answers 404 on a gateway without encryption keys.
#[utoipa::path(
    post, path = "/decode", tag = "codec", operation_id = "decode_payloads", request_body = PayloadsBody,
    responses((status = 200, body = PayloadsBody, description = "The payloads, decrypted"), CodecRefusals)
)]
pub(super) async fn decode(
    State(state): State<GatewayState>,
    caller: Caller,
    JsonBody(body): JsonBody<PayloadsBody>,
) -> Result<Json<PayloadsBody>, Problem> {
    let server = server(&state)?;
    let reader = Reader::new(server, &caller);
    let payloads = read(body)?;
    tracing::info!(
        tenant = caller.access.tenant_id,
        principal = caller.principal,
        payloads = payloads.len(),
        "the codec server decrypts payloads for a caller"
    );
    let asked = payloads.len();
    let encrypted = payloads
        .iter()
        .filter(|payload| is_encrypted(payload))
        .count();
    let opened = payloads.into_iter().map(|payload| reader.opened(payload));
    let opened: Vec<_> = opened.collect();
    let closed = opened
        .iter()
        .filter(|payload| is_encrypted(payload))
        .count();
    let decrypted = encrypted.saturating_sub(closed);
    let entry = entry(&state, &caller, AuditAction::PayloadsDecoded, asked);
    state
        .audit
        .append(&entry.with("decrypted", decrypted))
        .await?;
    Ok(written(opened))
}

/// Encrypts payloads.
///
/// For the Temporal CLI, which starts and signals workflows. A payload is encrypted for the caller's tenant. An operator's
/// payload is encrypted for the tenant named in the payload.
#[utoipa::path(
    post, path = "/encode", tag = "codec", operation_id = "encode_payloads", request_body = PayloadsBody,
    responses((status = 200, body = PayloadsBody, description = "The payloads, encrypted"), CodecRefusals)
)]
pub(super) async fn encode(
    State(state): State<GatewayState>,
    caller: Caller,
    JsonBody(body): JsonBody<PayloadsBody>,
) -> Result<Json<PayloadsBody>, Problem> {
    let server = server(&state)?;
    let reader = Reader::new(server, &caller);
    let sealed = read(body)?.into_iter().map(|payload| {
        let label = if reader.is_operator {
            tenant::named_in(&payload.data)
        } else {
            Some(reader.label.clone())
        };
        server.codec.seal(&payload, label.as_deref())
    });
    let sealed: Result<Vec<_>, _> = sealed.collect();
    let sealed = sealed.map_err(|error| {
        tracing::error!(%error, "a payload cannot be encrypted");
        Problem::internal()
    })?;
    let entry = entry(&state, &caller, AuditAction::PayloadsEncoded, sealed.len());
    state.audit.append(&entry).await?;
    Ok(written(sealed))
}

/// Makes the audit entry of a request, without any content of the payloads.
fn entry(
    state: &GatewayState,
    caller: &Caller,
    action: AuditAction,
    payloads: usize,
) -> NewAuditEntry {
    let target = (AuditTargetKind::Tenant, caller.access.tenant_id.as_str());
    let entry = state.audit.entry(caller, action, target);
    entry.with("payloads", payloads)
}

/// The caller's rights to read payloads.
struct Reader<'a> {
    server: &'a CodecServer,
    label: String,
    is_operator: bool,
}

impl<'a> Reader<'a> {
    fn new(server: &'a CodecServer, caller: &Caller) -> Self {
        let tenant_id = &caller.access.tenant_id;
        Self {
            label: tenant::label(tenant_id),
            is_operator: server.operator_tenants.contains(tenant_id),
            server,
        }
    }

    /// Decrypts a payload that the caller may read. The label is bound to the payload's key, so a changed label does not
    /// open another tenant's payload.
    fn opened(&self, payload: Payload) -> Payload {
        // A payload without a label belongs to the installation, not to a tenant.
        let is_own = label_of(&payload).is_some_and(|it| !it.is_empty() && it == self.label);
        let may_read = self.is_operator || is_own;
        if !is_encrypted(&payload) || !may_read {
            return payload;
        }
        match self.server.codec.open(payload.clone()) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(%error, "a payload cannot be decrypted");
                payload
            }
        }
    }
}

fn server(state: &GatewayState) -> Result<&CodecServer, Problem> {
    state.config.codec.as_ref().ok_or_else(|| {
        Problem::new(
            Code::NotFound,
            "The gateway has no encryption keys: `[codec]` in the configuration names no key.",
        )
    })
}

fn read(body: PayloadsBody) -> Result<Vec<Payload>, Problem> {
    if body.payloads.len() > MAX_PAYLOADS {
        let detail =
            format!("`payloads` has more than {MAX_PAYLOADS} entries. Send fewer payloads.");
        return Err(Problem::new(Code::InvalidBody, detail));
    }
    let payloads = body.payloads.into_iter().map(PayloadBody::read);
    payloads.collect::<Option<_>>().ok_or_else(|| {
        Problem::new(
            Code::InvalidBody,
            "`data` and the values of `metadata` must be Base64.",
        )
    })
}

fn written(payloads: impl IntoIterator<Item = Payload>) -> Json<PayloadsBody> {
    Json(PayloadsBody {
        payloads: payloads.into_iter().map(PayloadBody::from).collect(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use everturn_codec::{Codec, KeyRing, generate_key};
    use everturn_store::Access;
    use proptest::prelude::*;

    use super::*;
    use crate::{auth::Credential, config::Scopes, http::audit::Source};

    fn caller(tenant: &str) -> Caller {
        Caller {
            access: Access::tenant(tenant),
            scopes: Scopes::all(),
            expires_at: None,
            signed_in_at: None,
            credential: Credential::Anonymous,
            principal: None,
            key_id: None,
            source: Source::default(),
        }
    }

    fn server() -> CodecServer {
        let ring = KeyRing::parse(&generate_key("a").unwrap()).unwrap();
        CodecServer {
            codec: Codec::new(ring),
            operator_tenants: vec!["ops".to_owned()],
        }
    }

    fn clear() -> Payload {
        Payload {
            data: b"secret".to_vec(),
            ..Payload::default()
        }
    }

    #[test]
    fn each_tenant_reads_its_own_and_operators_read_all() {
        let server = server();
        let of_acme = server.codec.seal(&clear(), Some("acme")).unwrap();
        let of_nobody = server.codec.seal(&clear(), None).unwrap();
        let reads = |tenant: &str, payload: &Payload| {
            let caller = caller(tenant);
            let opened = Reader::new(&server, &caller).opened(payload.clone());
            assert!(opened == clear() || opened == *payload);
            opened == clear()
        };
        assert!(reads("acme", &of_acme) && reads("ops", &of_acme));
        assert!(!reads("beta", &of_acme) && !reads("", &of_acme));
        assert!(reads("ops", &of_nobody));
        assert!(!reads("acme", &of_nobody) && !reads("", &of_nobody));
        // A tenant cannot read a payload by writing a label of its own onto the payload.
        let mut stolen = of_acme;
        let label = b"beta".to_vec();
        stolen
            .metadata
            .insert(everturn_codec::TENANT.to_owned(), label);
        assert!(!reads("beta", &stolen) && !reads("ops", &stolen));
    }

    #[test]
    fn both_alphabets_of_base64_are_read() {
        assert_eq!(bytes("-_8").unwrap(), bytes("+/8=").unwrap());
        assert_eq!(bytes("not base64!"), None);
    }

    proptest! {
        #[test]
        fn any_payload_of_a_caller_is_read_or_refused(
            metadata in prop::collection::btree_map("[a-z-]{0,20}", any::<String>(), 0..3),
            data in any::<String>(),
        ) {
            let server = server();
            if let Some(payload) = (PayloadBody { metadata, data }).read() {
                let opened = Reader::new(&server, &caller("acme")).opened(payload.clone());
                prop_assert_eq!(opened, payload);
            }
        }
    }
}
