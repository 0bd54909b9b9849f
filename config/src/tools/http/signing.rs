//! `signing = …` of an HTTP tool: the key that signs its requests.

use everturn_tools::egress::SigningKey;
use serde::Deserialize;
use toml::Spanned;

use crate::{
    checker::Checker,
    forms::{Variable, Written},
};

/// The fewest characters of a secret. HMAC-SHA256 is only as strong as its key.
const MIN_SECRET_CHARS: usize = 32;
/// The most characters of a key's id. The limit exists because each request contains the id.
const MAX_ID_CHARS: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SigningTable {
    key_id: Spanned<String>,
    secret_env: Written<Variable>,
}

impl SigningTable {
    /// Returns the key, or `None` after a mistake or at a gateway.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> Option<SigningKey> {
        let id = self.key_id.get_ref();
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if id.is_empty() || id.len() > MAX_ID_CHARS || !id.bytes().all(is_fit) {
            check.wrong(
                &self.key_id,
                format!("`key_id` has 1 to {MAX_ID_CHARS} letters, digits, `-`, `_` and `.`"),
            );
        }
        let secret = check.secret("secret_env", &self.secret_env)?;
        if secret.len() < MIN_SECRET_CHARS {
            let message = format!(
                "the environment variable of `secret_env` is too short for a signing key; it needs {MIN_SECRET_CHARS} characters, for example from `openssl rand -hex 32`"
            );
            check.wrong(&self.secret_env.at, message);
        }
        Some(SigningKey {
            id: id.clone(),
            secret,
        })
    }
}
