//! The versions of the protocol: versions with a handshake (`initialize`), and the version whose requests stand alone.

use axum::http::{HeaderMap, StatusCode};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{ErrorCode, ProtocolVersion, ResultType};
use serde_json::{Value, json};

use super::rpc::{Request, RpcError, meta_of};

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
const SESSION_HEADER: &str = "mcp-session-id";

/// The fields of `_meta` in each request without a handshake.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// The era of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Era {
    /// The client has sent `initialize`. The version is the agreed version, as far as the client tells.
    Handshake(ProtocolVersion),
    /// Each request has the version and the client's capabilities.
    Alone,
}

impl Era {
    /// Finds the era of a request, and checks the headers that repeat parts of the body.
    pub(super) fn of(headers: &HeaderMap, request: &Request) -> Result<Self, RpcError> {
        let in_header = header(headers, VERSION_HEADER);
        let in_body = meta_of(&request.params, VERSION_KEY);
        let is_alone = in_header == Some(ProtocolVersion::NO_INITIALIZE.as_str());
        if !is_alone && in_body.is_none() {
            return Self::with_handshake(in_header);
        }
        let (Some(version), Some(_)) = (in_body, meta_of(&request.params, CAPABILITIES_KEY)) else {
            let message =
                format!("`params._meta` must have `{VERSION_KEY}` and `{CAPABILITIES_KEY}`.");
            return Err(RpcError::params(message));
        };
        let name = match request.method.as_str() {
            "tools/call" => request.text("name"),
            _ => None,
        };
        let repeats = [
            (VERSION_HEADER, version.as_str()),
            (METHOD_HEADER, Some(request.method.as_str())),
            (NAME_HEADER, name),
        ];
        for (header_name, in_body) in repeats {
            let in_header = header(headers, header_name).and_then(decoded);
            if in_body.is_some() && in_header.as_deref() != in_body {
                let message =
                    format!("The header `{header_name}` must repeat the value of the body.");
                return Err(RpcError::new(ErrorCode::HEADER_MISMATCH, message));
            }
        }
        if version != ProtocolVersion::LATEST.as_str() {
            return Err(unsupported(version));
        }
        Ok(Self::Alone)
    }

    /// Finds the era of a client that continues a stream.
    pub(super) fn of_stream(headers: &HeaderMap) -> Result<Self, RpcError> {
        Self::with_handshake(header(headers, VERSION_HEADER))
    }

    fn with_handshake(in_header: Option<&str>) -> Result<Self, RpcError> {
        // A client without the header speaks the version that had no header.
        let Some(version) = in_header else {
            return Ok(Self::Handshake(ProtocolVersion::V_2025_03_26));
        };
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let known = known.find(|known| known.as_str() == version && known.has_initialize());
        known
            .map(|known| Self::Handshake(known.clone()))
            .ok_or_else(|| unsupported(&version.into()))
    }

    /// Returns true for a client that reads the empty first event of a stream, and continues the stream with its id.
    pub(super) fn begins_with_an_id(&self) -> bool {
        match self {
            Self::Handshake(version) => version.as_str() >= ProtocolVersion::V_2025_11_25.as_str(),
            Self::Alone => false,
        }
    }

    /// Returns true when the events of a stream have ids, with which a client continues the stream.
    pub(super) fn can_continue(&self) -> bool {
        matches!(self, Self::Handshake(_))
    }

    /// Completes a result with the fields that only one era has.
    pub(super) fn completed(&self, mut result: Value) -> Value {
        if let Value::Object(fields) = &mut result {
            match self {
                Self::Handshake(_) => {
                    for field in ["resultType", "ttlMs", "cacheScope"] {
                        fields.remove(field);
                    }
                }
                Self::Alone => {
                    let complete = || ResultType::COMPLETE.as_str().into();
                    fields.entry("resultType").or_insert_with(complete);
                }
            }
        }
        result
    }

    /// Returns the status of a response with an error.
    pub(super) fn status(&self, code: ErrorCode) -> StatusCode {
        match (self, code) {
            (Self::Handshake(_), _) | (Self::Alone, ErrorCode::INTERNAL_ERROR) => StatusCode::OK,
            (Self::Alone, ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
            (Self::Alone, _) => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns true for a client that knows tasks of its protocol.
    pub(super) fn knows_tasks(&self, request: &Request) -> bool {
        match self {
            Self::Handshake(_) => true,
            Self::Alone => {
                let capabilities = meta_of(&request.params, CAPABILITIES_KEY);
                let extensions = capabilities.and_then(|found| found.get("extensions"));
                extensions.is_some_and(|found| found.get(rmcp::model::TASKS_EXTENSION_ID).is_some())
            }
        }
    }
}

/// Returns the client's session, which the gateway gave with the answer to `initialize`. The gateway keeps no sessions.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    header(headers, SESSION_HEADER)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Reads the value of a header that repeats a text of the body. Texts that no header can hold are in Base64.
fn decoded(value: &str) -> Option<String> {
    let base64 = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match base64 {
        Some(base64) => String::from_utf8(STANDARD.decode(base64).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn unsupported(version: &Value) -> RpcError {
    let supported: Vec<_> = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .map(ProtocolVersion::as_str)
        .collect();
    let message = format!("Use one of the versions {}.", supported.join(", "));
    let mut error = RpcError::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message);
    error.data = Some(json!({"supported": supported, "requested": version}));
    error
}
