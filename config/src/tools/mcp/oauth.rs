//! `[mcp.NAME.oauth]`: how the worker requests tokens for a server.

use everturn_tools::mcp::{
    ClientAuth, OAuthOptions, SecretSource, TokenSource, is_private_to_its_host,
};
use serde::Deserialize;
use toml::Spanned;

use super::per::PerWord;
use crate::{
    checker::Checker,
    forms::{Form, HttpUrl, OneOf, Text, Variable, Words, Written, WrittenUrl},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OAuthTable {
    issuer: Option<Written<Issuer>>,
    token_url: Option<Written<PrivateUrl>>,
    client_auth: Option<Written<OneOf<ClientAuth>>>,
    client_id: Option<Written<Text>>,
    client_id_env: Option<Written<Variable>>,
    client_id_file: Option<Spanned<String>>,
    client_secret_env: Option<Written<Variable>>,
    client_secret_file: Option<Spanned<String>>,
    scopes: Option<Vec<Written<ScopeWord>>>,
}

impl Words for ClientAuth {
    // The words of RFC 7591.
    const WORDS: &'static [(&'static str, Self)] = &[
        ("client_secret_basic", Self::Basic),
        ("client_secret_post", Self::Post),
    ];
}

impl OAuthTable {
    /// Returns the options, or `None` after a mistake or at a gateway.
    pub(super) fn check(
        &self,
        table: &Spanned<Self>,
        server: &Written<HttpUrl>,
        per: PerWord,
        check: &mut Checker<'_>,
    ) -> Option<OAuthOptions> {
        let server = server.value.as_ref().ok().and_then(|url| {
            let private = PrivateUrl::read(url.text.clone());
            check.right(&server.at, "url", private)
        });
        let issuer = self.issuer(table, check);
        let client_id = self.client_id(table, per, check);
        let client_secret = self.client_secret(table, per, check);
        let scopes = self.scopes.as_ref();
        let scopes = scopes.map(|scopes| check.values(scopes));
        Some(OAuthOptions {
            server: server?.url,
            issuer: issuer?,
            client_id: client_id?,
            client_secret: client_secret?,
            scopes,
        })
    }

    fn issuer(&self, table: &Spanned<Self>, check: &mut Checker<'_>) -> Option<TokenSource> {
        if let (Some(word), None) = (&self.client_auth, &self.token_url) {
            check.wrong(
                &word.at,
                "`client_auth` belongs to a `token_url`; the metadata of an `issuer` names the methods",
            );
        }
        match (&self.issuer, &self.token_url) {
            (Some(issuer), None) => check.value(issuer).map(TokenSource::Issuer),
            (None, Some(url)) => Some(TokenSource::Endpoint {
                url: check.value(url)?.url,
                method: check.value_or(&self.client_auth, ClientAuth::Basic),
            }),
            _ => {
                check.wrong(
                    table,
                    "`oauth` needs either an `issuer`, which issued the client's secret, or a `token_url`",
                );
                None
            }
        }
    }

    fn client_id(
        &self,
        table: &Spanned<Self>,
        per: PerWord,
        check: &mut Checker<'_>,
    ) -> Option<SecretSource> {
        match (&self.client_id, &self.client_id_env, &self.client_id_file) {
            (Some(id), None, None) => check.value(id).map(SecretSource::Value),
            (None, Some(variable), None) => from_variable("client_id_env", variable, check),
            (None, None, Some(path)) => {
                Some(SecretSource::File(per.file("client_id_file", path, check)))
            }
            _ => {
                check.wrong(
                    table,
                    "`oauth` has one of `client_id`, `client_id_env` and `client_id_file`",
                );
                None
            }
        }
    }

    fn client_secret(
        &self,
        table: &Spanned<Self>,
        per: PerWord,
        check: &mut Checker<'_>,
    ) -> Option<SecretSource> {
        match (&self.client_secret_env, &self.client_secret_file) {
            (Some(variable), None) => from_variable("client_secret_env", variable, check),
            (None, Some(path)) => Some(SecretSource::File(per.file(
                "client_secret_file",
                path,
                check,
            ))),
            _ => {
                check.wrong(
                    table,
                    "`oauth` has either a `client_secret_env` or a `client_secret_file`",
                );
                None
            }
        }
    }
}

fn from_variable(
    key: &str,
    variable: &Written<Variable>,
    check: &mut Checker<'_>,
) -> Option<SecretSource> {
    let value = check.secret(key, variable)?;
    Some(SecretSource::Value(value.trim().to_owned()))
}

/// A URL that receives tokens or secrets.
struct PrivateUrl;

impl Form for PrivateUrl {
    type Toml = String;
    type Value = WrittenUrl;

    fn read(text: String) -> Result<WrittenUrl, String> {
        WrittenUrl::read(text, is_private_to_its_host).ok_or_else(|| {
            "must be an https URL without a user and a fragment, because secrets are sent there; http is for loopback alone"
                .to_owned()
        })
    }
}

/// The URL of an issuer, as the text that the issuer's metadata repeats.
struct Issuer;

impl Form for Issuer {
    type Toml = String;
    type Value = String;

    fn read(text: String) -> Result<String, String> {
        let issuer = PrivateUrl::read(text)?;
        if issuer.url.query().is_some() {
            return Err("has no query".to_owned());
        }
        Ok(issuer.text)
    }
}

/// A scope of OAuth.
struct ScopeWord;

impl Form for ScopeWord {
    type Toml = String;
    type Value = String;

    fn read(word: String) -> Result<String, String> {
        let is_fit = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if !word.is_empty() && word.bytes().all(is_fit) {
            return Ok(word);
        }
        Err("has a wrong scope: a scope is a word without spaces, quotes and backslashes, like \"files:read\"".to_owned())
    }
}
