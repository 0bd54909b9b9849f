//! Checks the signature of a request from an HTTP tool of Everturn, for a service in Rust (docs/tools/http.md).

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The largest age of a request, and the largest lead of the sender's clock.
const TOLERANCE: Duration = Duration::from_secs(300);
/// The headers about the caller, in the order of the signature.
const HEADERS: [&str; 8] = [
    "everturn-tenant-id",
    "everturn-owner-id",
    "everturn-conversation-id",
    "everturn-agent",
    "everturn-agent-execution-id",
    "everturn-execution-id",
    "everturn-tool-call-id",
    "everturn-depth",
];

/// A received request.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The path with the query, in the encoding of the sender.
    pub path_and_query: &'a str,
    /// The bytes of the body.
    pub body: &'a [u8],
}

/// Checks the signature with `keys` (secrets by id), and returns the headers about the caller by name. The values are
/// percent-encoded. Refuse the request on `None`. Remember the ids of the tool executions of the last minutes, and refuse a
/// repeated request.
pub fn verify<'h>(
    request: Received<'_>,
    header: impl Fn(&str) -> Option<&'h str>,
    keys: &BTreeMap<String, String>,
    now: SystemTime,
) -> Option<BTreeMap<&'static str, &'h str>> {
    let signature = header("everturn-signature")?;
    let part = |name| {
        signature
            .split(',')
            .find_map(|part| part.strip_prefix(name))
    };
    let (id, time, code) = (part("key=")?, part("time=")?, part("v1=")?);
    let sent = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time.parse().ok()?))?;
    let apart = now
        .duration_since(sent)
        .unwrap_or_else(|ahead| ahead.duration());
    if apart > TOLERANCE {
        return None;
    }
    let Received {
        method,
        path_and_query,
        body,
    } = request;
    let body = hex(&Sha256::digest(body));
    let mut signed = format!("everturn-v1\n{id}\n{time}\n{method}\n{path_and_query}\n{body}");
    for name in HEADERS {
        signed.push('\n');
        signed.push_str(header(name).unwrap_or_default());
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(keys.get(id)?.as_bytes()).ok()?;
    mac.update(signed.as_bytes());
    // The comparison takes constant time, so its duration reveals no part of the code.
    mac.verify_slice(&bytes(code)?).ok()?;
    Some(
        HEADERS
            .into_iter()
            .filter_map(|name| Some((name, header(name)?)))
            .collect(),
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let starts = (0..hex.len()).step_by(2);
    starts
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect()
}
