//! `[mcp.NAME.oauth]`: how the worker requests tokens for a server.

use everturn_tools::mcp::{
    ClientAuth, OAuthOptions, SecretSource, TokenSource, is_private_to_its_host,
};
use serde::Deserialize;
use toml::Spanned;
use url::Url;

use super::per::PerWord;
use crate::checker::Checker;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OAuthTable {
    issuer: Option<Spanned<String>>,
    token_url: Option<Spanned<String>>,
    client_auth: Option<Spanned<ClientAuthWord>>,
    client_id: Option<Spanned<String>>,
    client_id_env: Option<Spanned<String>>,
    client_id_file: Option<Spanned<String>>,
    client_secret_env: Option<Spanned<String>>,
    client_secret_file: Option<Spanned<String>>,
    scopes: Option<Vec<Spanned<String>>>,
}

/// How the client authenticates, in the words of RFC 7591.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClientAuthWord {
    ClientSecretBasic,
    ClientSecretPost,
}

impl OAuthTable {
    /// Returns the options, or `None` after a mistake or at a gateway.
    pub(super) fn check(
        &self,
        table: &Spanned<Self>,
        server: &Spanned<String>,
        per: PerWord,
        check: &mut Checker<'_>,
    ) -> Option<OAuthOptions> {
        let server = private_url("url", server, check);
        let issuer = self.issuer(table, check);
        let client_id = self.client_id(table, per, check);
        let client_secret = self.client_secret(table, per, check);
        let scopes = self.scopes(check);
        Some(OAuthOptions {
            server: server?,
            issuer: issuer?,
            client_id: client_id?,
            client_secret: client_secret?,
            scopes,
        })
    }

    fn issuer(&self, table: &Spanned<Self>, check: &mut Checker<'_>) -> Option<TokenSource> {
        if let (Some(word), None) = (&self.client_auth, &self.token_url) {
            check.wrong(
                word,
                "`client_auth` belongs to a `token_url`; the metadata of an `issuer` names the methods",
            );
        }
        match (&self.issuer, &self.token_url) {
            (Some(issuer), None) => {
                let url = private_url("issuer", issuer, check)?;
                if url.query().is_some() {
                    check.wrong(issuer, "`issuer` has no query");
                }
                Some(TokenSource::Issuer(issuer.get_ref().clone()))
            }
            (None, Some(url)) => Some(TokenSource::Endpoint {
                url: private_url("token_url", url, check)?,
                method: match self.client_auth.as_ref().map(Spanned::get_ref) {
                    None | Some(ClientAuthWord::ClientSecretBasic) => ClientAuth::Basic,
                    Some(ClientAuthWord::ClientSecretPost) => ClientAuth::Post,
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
            (Some(id), None, None) => {
                if id.get_ref().is_empty() {
                    check.wrong(id, "`client_id` is empty");
                }
                Some(SecretSource::Value(id.get_ref().clone()))
            }
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

    fn scopes(&self, check: &mut Checker<'_>) -> Option<Vec<String>> {
        let is_fit = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        let written = self.scopes.as_ref()?;
        for scope in written {
            let text = scope.get_ref();
            if text.is_empty() || !text.bytes().all(is_fit) {
                check.wrong(
                    scope,
                    "a scope is a word without spaces, quotes and backslashes, like \"files:read\"",
                );
            }
        }
        Some(written.iter().map(|it| it.get_ref().clone()).collect())
    }
}

fn from_variable(
    key: &str,
    variable: &Spanned<String>,
    check: &mut Checker<'_>,
) -> Option<SecretSource> {
    let value = check.secret(key, variable)?;
    Some(SecretSource::Value(value.trim().to_owned()))
}

/// Returns a URL that receives tokens or secrets.
fn private_url(key: &str, text: &Spanned<String>, check: &mut Checker<'_>) -> Option<Url> {
    let url = text.get_ref().parse::<Url>().ok();
    let url = url.filter(is_private_to_its_host);
    if url.is_none() {
        check.wrong(
            text,
            format!(
                "with `oauth`, `{key}` must be an https URL without a user and a fragment; http is for loopback alone"
            ),
        );
    }
    url
}
