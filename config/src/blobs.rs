//! `[blobs]`: the images and files that clients may upload, and where they are stored.

use std::{collections::BTreeSet, fmt, sync::Arc};

use anyhow::Context;
use everturn_store::{BlobFiles, BlobRules, Blobs, ObjectStore, S3Config, S3Store};
use serde::Deserialize;
use toml::Spanned;
use url::Url;

use super::checker::Checker;

/// The largest upload. A larger file would only fill the memory of gateways and workers, because no provider of models
/// accepts it.
const MAX_BYTES: usize = 50 * 1024 * 1024;
const MAX_PER_MESSAGE: usize = 100;
const MAX_UNATTACHED: u64 = 1024 * 1024 * 1024 * 1024;

/// The environment variables with the keys of the object store. Every S3 client reads these names.
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BlobsTable {
    store: Option<Spanned<String>>,
    bucket: Option<Spanned<String>>,
    endpoint: Option<Spanned<String>>,
    region: Option<Spanned<String>>,
    prefix: Option<String>,
    path_style: Option<bool>,
    file_bytes: Option<Spanned<usize>>,
    files_per_message: Option<Spanned<usize>>,
    message_bytes: Option<Spanned<u64>>,
    unattached_bytes: Option<Spanned<u64>>,
    types: Option<Vec<Spanned<String>>>,
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
        let max_bytes = check.number(
            "file_bytes",
            &self.file_bytes,
            default.max_bytes,
            1..=MAX_BYTES,
        );
        let max_per_message = check.number(
            "files_per_message",
            &self.files_per_message,
            default.max_per_message,
            1..=MAX_PER_MESSAGE,
        );
        let max_message_bytes = check.number(
            "message_bytes",
            &self.message_bytes,
            default.max_message_bytes,
            1..=MAX_BYTES as u64,
        );
        let max_unattached_bytes = check.number(
            "unattached_bytes",
            &self.unattached_bytes,
            default.max_unattached_bytes,
            1..=MAX_UNATTACHED,
        );
        BlobRules {
            max_bytes,
            max_per_message,
            max_message_bytes,
            max_unattached_bytes,
            types: self.types(check, default.types),
        }
    }

    fn types(&self, check: &mut Checker<'_>, default: BTreeSet<String>) -> BTreeSet<String> {
        let Some(written) = &self.types else {
            return default;
        };
        for media_type in written {
            let text = media_type.get_ref();
            let is_type = text.split_once('/').is_some_and(|(kind, name)| {
                !kind.is_empty() && !name.is_empty() && !text.contains([' ', ';', '*'])
            });
            if !is_type || *text != text.to_ascii_lowercase() {
                check.wrong(
                    media_type,
                    "a media type is in small letters and without parameters, like \"image/png\"",
                );
            }
        }
        written.iter().map(|it| it.get_ref().clone()).collect()
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
        let endpoint = match &self.endpoint {
            Some(written) => {
                check.http_url("endpoint", written, "https://s3.example.com");
                written.get_ref().clone()
            }
            None => format!("https://s3.{region}.amazonaws.com"),
        };
        let Ok(endpoint) = endpoint.parse() else {
            if self.endpoint.is_none() {
                check.wrong(
                    store,
                    "`region` is the name of a region, like \"eu-central-1\"",
                );
            }
            return None;
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
