//! `[codec]`: the keys that encrypt all payloads in Temporal, and secrets in the database.

use std::{fmt, fs};

use anyhow::{Context, bail};
use everturn_codec::{Codec, KeyRing};
use everturn_gateway::config::CodecServer;
use serde::Deserialize;
use toml::Spanned;

use super::{
    checker::Checker,
    forms::{Tenant, Variable, Written},
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CodecTable {
    keys_env: Option<Written<Variable>>,
    keys_file: Option<Spanned<String>>,
    require: bool,
    operator_tenants: Vec<Written<Tenant>>,
}

/// The encrypted data and the keys. A command that needs no keys starts even when the keys are wrong; only the
/// use of the keys returns the error.
#[derive(Debug, Clone, Default)]
pub struct CodecConfig {
    keys: Option<Keys>,
    is_required: bool,
    operator_tenants: Vec<String>,
}

/// The text of a key ring, or why it cannot be read. The text is read together with the configuration, because the
/// process removes secrets from its environment afterwards.
#[derive(Clone)]
struct Keys {
    /// Where the keys are, as a text for error messages.
    source: String,
    text: Result<String, String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl CodecTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> CodecConfig {
        CodecConfig {
            keys: self.keys(check),
            is_required: self.require,
            operator_tenants: check.values(&self.operator_tenants),
        }
    }

    fn keys(&self, check: &mut Checker<'_>) -> Option<Keys> {
        match (&self.keys_env, &self.keys_file) {
            (None, None) => {
                if self.require || !self.operator_tenants.is_empty() {
                    check.missing("[codec] needs `keys_env` or `keys_file` to encrypt");
                }
                None
            }
            (Some(_), Some(file)) => {
                check.wrong(file, "[codec] has `keys_env` and `keys_file`; keep one");
                None
            }
            (Some(variable), None) => {
                let checked = check.secret("keys_env", variable);
                let name = variable.value.as_ref().ok()?;
                let found = checked.or_else(|| std::env::var(name).ok());
                Some(Keys {
                    source: format!("the environment variable {name}"),
                    text: found
                        .filter(|text| !text.is_empty())
                        .ok_or_else(|| "it is not set".to_owned()),
                })
            }
            (None, Some(file)) => {
                let path = check.path_beside_file(file);
                Some(Keys {
                    source: path.display().to_string(),
                    text: fs::read_to_string(&path).map_err(|error| error.to_string()),
                })
            }
        }
    }
}

impl CodecConfig {
    /// Returns true when keys are configured. A process notices later whether it can read the keys.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Returns the keys, which also seal secrets in the database. `None` without keys.
    pub fn ring(&self) -> anyhow::Result<Option<KeyRing>> {
        Ok(self.codec()?.map(|codec| codec.ring().clone()))
    }

    /// Returns the clients' codec, or `None` without encryption. The codec also accepts payloads in clear.
    pub fn codec(&self) -> anyhow::Result<Option<Codec>> {
        let Some(keys) = &self.keys else {
            return Ok(None);
        };
        let source = &keys.source;
        let text = match &keys.text {
            Ok(text) => text,
            Err(error) => bail!("cannot read the keys of [codec] from {source}: {error}"),
        };
        let ring = KeyRing::parse(text)
            .with_context(|| format!("cannot use the keys of [codec] from {source}"))?;
        Ok(Some(Codec::new(ring)))
    }

    /// Returns the workers' codec, or `None` without encryption. With `require`, the codec refuses payloads in clear.
    pub fn of_worker(&self) -> anyhow::Result<Option<Codec>> {
        let codec = self.codec()?;
        Ok(codec.map(|codec| codec.requiring(self.is_required).of_worker()))
    }

    /// Returns the service through which a gateway decodes payloads, and the tenants that may use it.
    pub fn server(&self) -> anyhow::Result<Option<CodecServer>> {
        let operator_tenants = self.operator_tenants.clone();
        Ok(self.codec()?.map(|codec| CodecServer {
            codec,
            operator_tenants,
        }))
    }

    /// Describes the configured encryption for people.
    pub fn describe(&self) -> anyhow::Result<String> {
        let Some(codec) = self.codec()? else {
            return Ok("none: Temporal holds payloads in clear".to_owned());
        };
        let mut ids = codec.ring().ids();
        let active = ids.next().unwrap_or_default();
        let older: Vec<_> = ids.collect();
        let strict = if self.is_required {
            ", and workers refuse payloads in clear"
        } else {
            ""
        };
        Ok(match older.as_slice() {
            [] => format!("key {active} encrypts{strict}"),
            older => format!(
                "key {active} encrypts, {} still decrypt{strict}",
                older.join(", ")
            ),
        })
    }
}
