//! The signature of a request: an HMAC, by which a service can trust the headers about the caller
//! (docs/tools/http.md).

use std::{fmt, time::SystemTime};

use hmac::{Hmac, Mac};
use reqwest::{
    Method, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use sha2::{Digest, Sha256};

/// The first line of the signed text. A new format gets a new line, so that no signature is valid in two formats.
const FORM: &str = "everturn-v1";
const SIGNATURE: HeaderName = HeaderName::from_static("everturn-signature");

/// The signing key, shared with a service.
#[derive(Clone)]
pub struct SigningKey {
    /// The id of the key, so that a service can hold two keys during a replacement.
    pub id: String,
    /// The secret.
    pub secret: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Signs the requests of a call. Every request of a redirect gets a new signature.
#[derive(Clone, Debug)]
pub struct Signer {
    key: SigningKey,
    caller: Vec<(String, Option<String>)>,
}

impl Signer {
    /// Creates a signer for a caller: a fixed list of header names in a fixed order, with their encoded values. A
    /// header without a value is not sent.
    pub fn new(key: SigningKey, caller: Vec<(String, Option<String>)>) -> Self {
        Self { key, caller }
    }

    /// Adds the headers about the caller and the signature to `headers`, replacing headers with these names.
    pub(super) fn sign(
        &self,
        headers: &mut HeaderMap,
        method: &Method,
        url: &Url,
        body: Option<&str>,
        now: SystemTime,
    ) {
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        let code = self.code(method, url, body.unwrap_or_default(), seconds);
        let signature = format!("key={},time={seconds},v1={code}", self.key.id);
        let caller = self
            .caller
            .iter()
            .map(|(name, value)| (name, value.as_ref()));
        for (name, value) in caller {
            let Ok(name) = HeaderName::try_from(name) else {
                continue;
            };
            headers.remove(&name);
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                headers.insert(name, value);
            }
        }
        headers.remove(SIGNATURE);
        if let Ok(signature) = HeaderValue::try_from(signature) {
            headers.insert(SIGNATURE, signature);
        }
    }

    fn code(&self, method: &Method, url: &Url, body: &str, seconds: u64) -> String {
        let mut signed = format!(
            "{FORM}\n{}\n{seconds}\n{method}\n{}",
            self.key.id,
            url.path()
        );
        if let Some(query) = url.query() {
            signed.extend(["?", query]);
        }
        signed.extend(["\n", &hex::encode(Sha256::digest(body))]);
        for (_, value) in &self.caller {
            signed.extend(["\n", value.as_deref().unwrap_or_default()]);
        }
        // HMAC accepts a key of any length, so this call cannot fail.
        Hmac::<Sha256>::new_from_slice(self.key.secret.as_bytes()).map_or_else(
            |_| String::new(),
            |mut mac| {
                mac.update(signed.as_bytes());
                hex::encode(mac.finalize().into_bytes())
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn signed(body: Option<&str>, url: &str, owner: Option<&str>) -> HeaderMap {
        let key = SigningKey {
            id: "k1".into(),
            secret: "a secret of thirty-two characters".into(),
        };
        let caller = [
            ("everturn-tenant-id", Some("acme")),
            ("everturn-owner-id", owner),
            ("everturn-execution-id", Some("exec_1")),
        ];
        let caller = caller.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        let mut headers = HeaderMap::new();
        headers.insert(
            "everturn-owner-id",
            HeaderValue::from_static("somebody else"),
        );
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_000_000);
        let url = Url::parse(url).unwrap();
        Signer::new(key, caller.into()).sign(&mut headers, &Method::POST, &url, body, now);
        headers
    }

    /// The numbers were made with Python's `hmac`, from the description in docs/tools/http.md.
    #[test]
    fn the_signature_is_the_documented_one() {
        let headers = signed(Some("{\"a\":1}"), "https://h/p%20q/r?x=1&y", Some("ann"));
        assert_eq!(headers["everturn-tenant-id"], "acme");
        assert_eq!(headers["everturn-owner-id"], "ann");
        assert_eq!(headers["everturn-execution-id"], "exec_1");
        assert_eq!(
            headers["everturn-signature"],
            "key=k1,time=1764000000,v1=e042304c8ed54454d843f1576d31f1293abf7f5453c0f3fea0dc65b2394ebbaf"
        );
    }

    #[test]
    fn everything_is_signed() {
        let base = signed(Some("a"), "https://h/p?q", Some("ann"));
        let others = [
            signed(Some("b"), "https://h/p?q", Some("ann")),
            signed(None, "https://h/p?q", Some("ann")),
            signed(Some("a"), "https://h/p?r", Some("ann")),
            signed(Some("a"), "https://h/q?q", Some("ann")),
            signed(Some("a"), "https://h/p?q", Some("bob")),
            signed(Some("a"), "https://h/p?q", None),
        ];
        for other in others {
            assert_ne!(base[SIGNATURE], other[SIGNATURE]);
        }
    }

    #[test]
    fn an_owner_that_there_is_not_is_not_named() {
        assert!(!signed(None, "https://h/", None).contains_key("everturn-owner-id"));
    }

    #[test]
    fn a_key_stays_out_of_logs() {
        let key = SigningKey {
            id: "k1".into(),
            secret: "hunter2".into(),
        };
        assert!(!format!("{key:?}").contains("hunter2"));
    }
}
