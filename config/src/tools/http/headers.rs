//! The headers of an HTTP tool: fixed headers, and secrets from the environment.

use std::collections::BTreeMap;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    checker::Checker,
    forms::{Variable, Written},
    headers::reserved,
};

/// The prefix of headers that a service trusts when they are signed.
const OF_THE_RUNTIME: &str = "everturn-";

pub(super) type Headers = BTreeMap<Spanned<String>, Spanned<String>>;

/// `auth = …`: the names of the environment variables that hold a tool's secrets.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolAuthTable {
    bearer_env: Option<Written<Variable>>,
    headers_env: BTreeMap<Spanned<String>, Written<Variable>>,
}

pub(super) fn fixed(table: &Headers, check: &mut Checker<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in table {
        let Some(header) = checked_name(name, check) else {
            continue;
        };
        if reserved(header.as_str()).is_some() {
            check.wrong(
                name,
                format!("`{header}` cannot be set here; secrets go into `auth`"),
            );
        }
        match HeaderValue::from_str(value.get_ref()) {
            Ok(value) => drop(headers.insert(header, value)),
            Err(_) => check.wrong(value, "the value holds characters that no header has"),
        }
    }
    headers
}

impl ToolAuthTable {
    /// Returns the headers with secrets. Headers are marked as sensitive, and logs show no values of sensitive headers.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> HeaderMap {
        let mut secrets = HeaderMap::new();
        if let Some(variable) = &self.bearer_env {
            let token = check.secret("bearer_env", variable);
            let value = token.map(|token| format!("Bearer {}", token.trim()));
            add_secret(&mut secrets, AUTHORIZATION, &variable.at, value, check);
        }
        for (name, variable) in &self.headers_env {
            if let Some(header) = checked_name(name, check) {
                let value = check.secret("headers_env", variable);
                let value = value.map(|value| value.trim().to_owned());
                add_secret(&mut secrets, header, &variable.at, value, check);
            }
        }
        secrets
    }
}

fn add_secret(
    secrets: &mut HeaderMap,
    header: HeaderName,
    at: &Spanned<()>,
    value: Option<String>,
    check: &mut Checker<'_>,
) {
    match value.map(HeaderValue::try_from) {
        Some(Ok(mut value)) => {
            value.set_sensitive(true);
            secrets.insert(header, value);
        }
        Some(Err(_)) => check.wrong(
            at,
            "the value of this environment variable holds characters that no header has",
        ),
        // The checker has already noted the missing variable, or a gateway reads the file and needs no secrets.
        None => {}
    }
}

pub(super) fn checked_name(name: &Spanned<String>, check: &mut Checker<'_>) -> Option<HeaderName> {
    let text = name.get_ref();
    if text.to_ascii_lowercase().starts_with(OF_THE_RUNTIME) {
        check.wrong(
            name,
            format!(
                "`{text}` cannot be set here; headers `{OF_THE_RUNTIME}…` say for whom a tool runs"
            ),
        );
        return None;
    }
    text.parse()
        .map_err(|_| check.wrong(name, format!("`{text}` is no name of a header")))
        .ok()
}
