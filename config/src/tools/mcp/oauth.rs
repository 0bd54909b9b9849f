//! `[mcp.NAME.oauth]`: how the worker requests tokens for a server, and whether people consent to its use.

use everturn_tools::mcp::{
    ClientAuth, OAuthGrant, OAuthOptions, SecretSource, TokenSource, is_private_to_its_host,
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
    grant: Option<Written<OneOf<OAuthGrant>>>,
    issuer: Option<Written<Issuer>>,
    token_url: Option<Written<PrivateUrl>>,
    authorization_url: Option<Written<PrivateUrl>>,
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

impl Words for OAuthGrant {
    // The words of RFC 6749.
    const WORDS: &'static [(&'static str, Self)] = &[
        ("client_credentials", Self::ClientCredentials),
        ("authorization_code", Self::AuthorizationCode),
    ];
}

impl OAuthTable {
    /// Returns true when people consent to the use of the server in their names.
    pub(super) fn needs_consent(&self) -> bool {
        let grant = self
            .grant
            .as_ref()
            .and_then(|grant| grant.value.as_ref().ok());
        grant == Some(&OAuthGrant::AuthorizationCode)
    }

    /// Returns true for a client without a secret. Only a person's consent is worth something without a secret.
    fn is_public(&self) -> bool {
        let has_secret = self.client_secret_env.is_some() || self.client_secret_file.is_some();
        self.needs_consent() && !has_secret
    }

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
        let grant = check.value_or(&self.grant, OAuthGrant::ClientCredentials);
        let issuer = self.issuer(table, grant, check);
        let client_id = self.client_id(table, per, check);
        let client_secret = if self.is_public() {
            None
        } else {
            let secret = self.client_secret(table, per, check);
            Some(secret)
        };
        let scopes = self.scopes.as_ref();
        let scopes = scopes.map(|scopes| check.values(scopes));
        Some(OAuthOptions {
            server: server?.url,
            issuer: issuer?,
            grant,
            client_id: client_id?,
            client_secret: match client_secret {
                Some(secret) => Some(secret?),
                None => None,
            },
            scopes,
        })
    }

    fn issuer(
        &self,
        table: &Spanned<Self>,
        grant: OAuthGrant,
        check: &mut Checker<'_>,
    ) -> Option<TokenSource> {
        let has_consent = grant == OAuthGrant::AuthorizationCode;
        match (&self.authorization_url, &self.token_url) {
            (None, Some(url)) if has_consent => check.wrong(
                &url.at,
                "`token_url` with the grant `authorization_code` needs an `authorization_url`, where people consent",
            ),
            (Some(url), _) if !has_consent => check.wrong(
                &url.at,
                "`authorization_url` belongs to the grant `authorization_code`",
            ),
            (Some(url), None) => check.wrong(
                &url.at,
                "`authorization_url` belongs to a `token_url`; the metadata of an `issuer` names the URL",
            ),
            _ => {}
        }
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
                authorization_url: match &self.authorization_url {
                    Some(url) => Some(check.value(url)?.url),
                    None => None,
                },
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
            (None, Some(variable), None) => self.variable("client_id_env", variable, check),
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

    /// Returns the value of a variable. A gateway needs the values, too, if people consent: the gateway exchanges the code.
    fn variable(
        &self,
        key: &str,
        variable: &Written<Variable>,
        check: &mut Checker<'_>,
    ) -> Option<SecretSource> {
        let mut value = check.secret(key, variable);
        if value.is_none() && !check.is_of_worker() && self.needs_consent() {
            let name = variable.value.as_ref().ok()?;
            value = std::env::var(name).ok().filter(|value| !value.is_empty());
        }
        Some(SecretSource::Value(value?.trim().to_owned()))
    }

    fn client_secret(
        &self,
        table: &Spanned<Self>,
        per: PerWord,
        check: &mut Checker<'_>,
    ) -> Option<SecretSource> {
        match (&self.client_secret_env, &self.client_secret_file) {
            (Some(variable), None) => self.variable("client_secret_env", variable, check),
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
