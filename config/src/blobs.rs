//! `[blobs]`: the images and files that clients may upload, and where they are stored.

use std::{fmt, sync::Arc};

use anyhow::Context;
use everturn_store::{BlobFiles, BlobRules, Blobs, ObjectStore, S3Config, S3Store};
use serde::Deserialize;
use toml::Spanned;
use url::Url;

use super::{
    checker::Checker,
    forms::{Form, HttpUrl, Number, Written},
};

/// The largest upload. A larger file would only fill the memory of gateways and workers, because no provider of models
/// accepts it.
const MAX_BYTES: u64 = 50 << 20;

/// The environment variables with the keys of the object store. Every S3 client reads these names.
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BlobsTable {
    store: Option<Spanned<String>>,
    bucket: Option<Spanned<String>>,
    endpoint: Option<Written<HttpUrl>>,
    region: Option<Spanned<String>>,
    prefix: Option<String>,
    path_style: Option<bool>,
    file_bytes: Option<Written<Number<1, MAX_BYTES, usize>>>,
    files_per_message: Option<Written<Number<1, 100, usize>>>,
    message_bytes: Option<Written<Number<1, MAX_BYTES, u64>>>,
    unattached_bytes: Option<Written<Number<1, { 1 << 40 }, u64>>>,
    types: Option<Vec<Written<MediaType>>>,
}

/// The configuration of images and files.
#[derive(Debug, Clone, Default)]
pub struct BlobsConfig {
    rules: BlobRules,
    s3: Option<S3Address>,
}

/// The address of a bucket.
#[derive(Debug, Clone)]
struct S3Address {
    endpoint: Url,
    region: String,
    bucket: String,
    prefix: String,
    is_path_style: bool,
    keys: S3Keys,
}

/// The keys of the object store. They are read together with the configuration, because the process removes secrets
/// from its environment afterwards.
#[derive(Clone)]
struct S3Keys {
    id: Option<String>,
    secret: Option<String>,
    token: Option<String>,
}

impl S3Keys {
    fn of_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            id: variable(KEY_ID),
            secret: variable(SECRET),
            token: variable(TOKEN),
        }
    }
}

impl fmt::Debug for S3Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("S3Keys")
    }
}

impl BlobsTable {
    pub(super) fn check(&self, check: &mut Checker<'_>) -> BlobsConfig {
        BlobsConfig {
            rules: self.rules(check),
            s3: self.address(check),
        }
    }

    fn rules(&self, check: &mut Checker<'_>) -> BlobRules {
        let default = BlobRules::default();
        let types = self.types.as_ref();
        BlobRules {
            max_bytes: check.value_or(&self.file_bytes, default.max_bytes),
            max_per_message: check.value_or(&self.files_per_message, default.max_per_message),
            max_message_bytes: check.value_or(&self.message_bytes, default.max_message_bytes),
            max_unattached_bytes: check
                .value_or(&self.unattached_bytes, default.max_unattached_bytes),
            types: types.map_or(default.types, |types| check.values(types)),
        }
    }

    /// Returns the address of the bucket, or `None` when files are stored in the database.
    fn address(&self, check: &mut Checker<'_>) -> Option<S3Address> {
        let store = self.store.as_ref()?;
        match store.get_ref().as_str() {
            "s3" => {}
            "database" => return None,
            _ => {
                check.wrong(store, "`store` is \"database\" or \"s3\"");
                return None;
            }
        }
        let Some(bucket) = &self.bucket else {
            check.wrong(store, "`store = \"s3\"` needs the name of a `bucket`");
            return None;
        };
        let region = self.region.as_ref();
        let region = region.map_or_else(|| "us-east-1".to_owned(), |it| it.get_ref().clone());
        let endpoint = if let Some(written) = &self.endpoint {
            check.value(written)?.url
        } else {
            let usual = format!("https://s3.{region}.amazonaws.com").parse();
            let wrong = "`region` is the name of a region, like \"eu-central-1\"";
            usual.map_err(|_| check.wrong(store, wrong)).ok()?
        };
        Some(S3Address {
            endpoint,
            region,
            bucket: bucket.get_ref().clone(),
            prefix: self
                .prefix
                .clone()
                .unwrap_or_else(|| "everturn/".to_owned()),
            is_path_style: self.path_style.unwrap_or(self.endpoint.is_some()),
            keys: S3Keys::of_environment(),
        })
    }
}

/// A media type without parameters.
struct MediaType;

impl Form for MediaType {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        let is_type = text.split_once('/').is_some_and(|(kind, name)| {
            !kind.is_empty() && !name.is_empty() && !text.contains([' ', ';', '*'])
        });
        if is_type && text == text.to_ascii_lowercase() {
            return Ok(text);
        }
        Err(format!(
            "has \"{text}\", but a media type is in small letters and without parameters, like \"image/png\""
        ))
    }
}

impl BlobsConfig {
    /// Connects the database's rows with the object store.
    pub fn files(&self, rows: Arc<dyn Blobs>) -> anyhow::Result<BlobFiles> {
        let objects = match &self.s3 {
            Some(address) => Some(Arc::new(address.store()?) as Arc<dyn ObjectStore>),
            None => None,
        };
        Ok(BlobFiles::new(rows, objects, self.rules.clone()))
    }
}

impl S3Address {
    fn store(&self) -> anyhow::Result<S3Store> {
        let needed = |name: &str, value: &Option<String>| {
            value.clone().with_context(|| {
                format!("[blobs] keeps files in S3, and the environment variable {name} is not set")
            })
        };
        let config = S3Config {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            bucket: self.bucket.clone(),
            prefix: self.prefix.clone(),
            is_path_style: self.is_path_style,
            key_id: needed(KEY_ID, &self.keys.id)?,
            secret: needed(SECRET, &self.keys.secret)?,
            token: self.keys.token.clone(),
        };
        S3Store::new(config).context("cannot set up the client of [blobs]")
    }
}
