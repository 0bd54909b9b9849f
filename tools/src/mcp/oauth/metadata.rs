//! The metadata of a server (RFC 9728) and of an authorization server (RFC 8414, OpenID Discovery), with the checks
//! that decide whether the metadata is trusted.

use reqwest::Url;
use serde::Deserialize;

use super::{
    challenge,
    error::AccessError,
    options::{ClientAuth, is_private_to_its_host},
};

/// A server as the resource of tokens.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// The identifier, which tokens are bound to.
    pub(super) id: String,
    /// The scopes that the server supports.
    pub(super) scopes: Vec<String>,
}

/// The source of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenEndpoint {
    pub(super) url: Url,
    pub(super) method: ClientAuth,
}

#[derive(Deserialize)]
struct WrittenResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// An authorization server, as its metadata or the operator describes the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) token: TokenEndpoint,
    /// Where people consent.
    pub(super) authorization: Option<Url>,
    /// Takes tokens back (RFC 7009).
    pub(super) revocation: Option<Url>,
    /// True when the server checks the code verifier of a client (PKCE with S256).
    pub(super) has_pkce: bool,
}

#[derive(Deserialize)]
struct WrittenServer {
    issuer: String,
    token_endpoint: String,
    authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Returns the URLs of a server's metadata for a challenge without a URL: below the server's path, then at the root.
pub(super) fn urls_of_resource(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut candidates = vec![at(
        server,
        &format!("/.well-known/oauth-protected-resource{path}"),
    )];
    if !path.is_empty() {
        candidates.push(at(server, "/.well-known/oauth-protected-resource"));
    }
    candidates
}

/// Returns the URLs of an authorization server's metadata, in the order of the specification of MCP.
pub(super) fn urls_of_issuer(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    paths.iter().map(|path| at(issuer, path)).collect()
}

fn at(url: &Url, path: &str) -> Url {
    let mut candidate = url.clone();
    candidate.set_path(path);
    candidate.set_query(None);
    candidate.set_fragment(None);
    candidate
}

/// Parses a URL from a foreign document. A request will go to the URL.
pub(super) fn checked_url(what: &str, text: &str) -> Result<Url, AccessError> {
    let url = text.parse::<Url>().ok();
    url.filter(is_private_to_its_host).ok_or_else(|| {
        AccessError::Metadata(format!(
            "{what} is refused: the URL must be https, without a user and a fragment (http is for loopback alone)"
        ))
    })
}

/// Parses the metadata of a server. The metadata must belong to this server, and must name the issuer that the
/// client's secret is for.
pub(super) fn resource(body: &[u8], server: &Url, issuer: &str) -> Result<Resource, AccessError> {
    let refused =
        |why: &str| AccessError::Metadata(format!("the metadata of the server is refused: {why}"));
    let written: WrittenResource = serde_json::from_slice(body)
        .map_err(|_| refused("the document does not describe a protected resource (RFC 9728)"))?;
    if !is_of(&written.resource, server) {
        return Err(refused(
            "`resource` differs from the server's `url`, and the tokens would be for another server",
        ));
    }
    let mut issuers = written.authorization_servers.iter();
    if !issuers.any(|named| is_same_issuer(named, issuer)) {
        return Err(refused(
            "the configured `issuer` is not among the authorization servers, and the client's secret stays here",
        ));
    }
    let scopes = challenge::scopes(&written.scopes_supported.join(" "));
    Ok(Resource {
        id: written.resource,
        scopes: scopes.unwrap_or_default(),
    })
}

/// Returns true when the resource is the server, or a parent path at the server's origin: `https://h` for
/// `https://h/mcp`.
fn is_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = resource.parse::<Url>() else {
        return false;
    };
    if resource == *server {
        return true;
    }
    let path = resource.path().trim_end_matches('/');
    let is_above = server
        .path()
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_private_to_its_host(&resource)
        && resource.origin() == server.origin()
        && resource.query().is_none()
        && is_above
}

/// Parses the metadata of an authorization server. The metadata must name the requested issuer. A public client has no
/// secret, and needs no way to show a secret.
pub(super) fn authority(
    body: &[u8],
    issuer: &str,
    has_secret: bool,
) -> Result<Authority, AccessError> {
    let refused = |why: &str| {
        AccessError::Metadata(format!(
            "the metadata of the authorization server is refused: {why}"
        ))
    };
    let written: WrittenServer = serde_json::from_slice(body).map_err(|_| {
        refused("the document does not describe an authorization server (RFC 8414)")
    })?;
    if !is_same_issuer(&written.issuer, issuer) {
        return Err(refused("`issuer` differs from the configured `issuer`"));
    }
    let url = checked_url("the token endpoint", &written.token_endpoint)?;
    let method = match written.token_endpoint_auth_methods_supported {
        None => ClientAuth::Basic,
        Some(methods) if methods.iter().any(|it| it == "client_secret_basic") => ClientAuth::Basic,
        Some(methods) if methods.iter().any(|it| it == "client_secret_post") => ClientAuth::Post,
        Some(_) if !has_secret => ClientAuth::Post,
        Some(_) => {
            return Err(refused(
                "the token endpoint takes neither `client_secret_basic` nor `client_secret_post`",
            ));
        }
    };
    let optional =
        |what: &str, text: Option<String>| text.map(|text| checked_url(what, &text)).transpose();
    let methods = &written.code_challenge_methods_supported;
    Ok(Authority {
        token: TokenEndpoint { url, method },
        has_pkce: methods.iter().any(|method| method == "S256"),
        authorization: optional("the authorization endpoint", written.authorization_endpoint)?,
        revocation: optional("the revocation endpoint", written.revocation_endpoint)?,
    })
}

/// Returns true for equal identifiers. The slash of an empty path is optional.
fn is_same_issuer(one: &str, other: &str) -> bool {
    let is_root = |text: &str| text.parse::<Url>().is_ok_and(|url| url.path() == "/");
    one == other
        || (is_root(one)
            && is_root(other)
            && one.trim_end_matches('/') == other.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://login.example.com/acme";

    fn server() -> Url {
        "https://h.example.com/v1/mcp".parse().unwrap()
    }

    fn texts(candidates: &[Url]) -> Vec<&str> {
        candidates.iter().map(Url::as_str).collect()
    }

    #[test]
    fn metadata_is_looked_for_where_the_standards_say() {
        assert_eq!(
            texts(&urls_of_resource(&server())),
            [
                "https://h.example.com/.well-known/oauth-protected-resource/v1/mcp",
                "https://h.example.com/.well-known/oauth-protected-resource",
            ]
        );
        let root = "https://h.example.com:8443/?a=b".parse().unwrap();
        assert_eq!(
            texts(&urls_of_resource(&root)),
            ["https://h.example.com:8443/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            texts(&urls_of_issuer(&ISSUER.parse().unwrap())),
            [
                "https://login.example.com/.well-known/oauth-authorization-server/acme",
                "https://login.example.com/.well-known/openid-configuration/acme",
                "https://login.example.com/acme/.well-known/openid-configuration",
            ]
        );
        assert_eq!(urls_of_issuer(&root).len(), 2);
    }

    fn read(resource_id: &str, issuers: &Value) -> Result<Resource, AccessError> {
        let body = json!({"resource": resource_id, "authorization_servers": issuers, "scopes_supported": ["a", "b"]});
        resource(body.to_string().as_bytes(), &server(), ISSUER)
    }

    #[test]
    fn a_server_speaks_for_itself_alone() {
        let issuers = json!(["https://other.example.com", ISSUER]);
        for own in [
            "https://h.example.com/v1/mcp",
            "https://h.example.com/v1",
            "https://h.example.com",
        ] {
            let expected = Resource {
                id: own.to_owned(),
                scopes: vec!["a".into(), "b".into()],
            };
            assert_eq!(read(own, &issuers).unwrap(), expected);
        }
        for foreign in [
            "https://other.example.com/v1/mcp",
            "http://h.example.com/v1/mcp",
            "https://h.example.com:444/v1/mcp",
            "https://h.example.com/v1/mcp/deeper",
            "https://h.example.com/v",
            "https://h.example.com/v1/mcp?x=y",
            "https://h.example.com@other.example.com/v1/mcp",
            "h.example.com",
            "",
        ] {
            let error = read(foreign, &issuers).unwrap_err();
            assert_eq!(error.code(), "mcp_metadata_refused", "{foreign}");
        }
    }

    #[test]
    fn the_secret_is_for_one_issuer() {
        for issuers in [
            json!([]),
            json!(["https://attacker.example.com"]),
            json!(["https://login.example.com"]),
            json!(["https://login.example.com/acme/"]),
        ] {
            let error = read("https://h.example.com/v1/mcp", &issuers).unwrap_err();
            assert!(error.to_string().contains("secret stays here"), "{error}");
        }
    }

    #[test]
    fn an_authorization_server_is_the_one_that_was_asked() {
        let read = |issuer: &str, endpoint: &str, methods: Value| {
            let body = json!({"issuer": issuer, "token_endpoint": endpoint,
                "token_endpoint_auth_methods_supported": methods});
            authority(body.to_string().as_bytes(), ISSUER, true).map(|it| it.token)
        };
        let endpoint = "https://tokens.example.com/t";
        let basic = read(ISSUER, endpoint, Value::Null).unwrap();
        assert_eq!(
            (basic.url.as_str(), basic.method),
            (endpoint, ClientAuth::Basic)
        );
        let both = json!(["client_secret_post", "client_secret_basic"]);
        assert_eq!(
            read(ISSUER, endpoint, both).unwrap().method,
            ClientAuth::Basic
        );
        let post = json!(["client_secret_post"]);
        assert_eq!(
            read(ISSUER, endpoint, post).unwrap().method,
            ClientAuth::Post
        );
        for (issuer, endpoint, methods) in [
            ("https://login.example.com", endpoint, Value::Null),
            (ISSUER, "http://tokens.example.com/t", Value::Null),
            (ISSUER, "/t", Value::Null),
            (ISSUER, endpoint, json!(["private_key_jwt"])),
        ] {
            let error = read(issuer, endpoint, methods).unwrap_err();
            assert_eq!(error.code(), "mcp_metadata_refused");
        }
        assert!(
            is_same_issuer("https://a/", "https://a")
                && !is_same_issuer("https://a//", "https://a")
        );
    }

    proptest! {
        #[test]
        fn any_metadata_is_of_this_server_and_issuer_or_refused(
            body in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,60}", named in any::<bool>(),
        ) {
            let _refused = resource(&body, &server(), ISSUER).unwrap_err();
            let _refused = authority(&body, ISSUER, true).unwrap_err();
            let issuer = if named { ISSUER } else { text.as_str() };
            let written = json!({"resource": text, "authorization_servers": [issuer], "scopes_supported": [text]});
            if let Ok(read) = resource(written.to_string().as_bytes(), &server(), ISSUER) {
                prop_assert_eq!(read.id.parse::<Url>().unwrap().origin(), server().origin());
                prop_assert!(named);
            }
            let written = json!({"issuer": issuer, "token_endpoint": text, "authorization_endpoint": text});
            if let Ok(read) = authority(written.to_string().as_bytes(), ISSUER, true) {
                prop_assert!(named && is_private_to_its_host(&read.token.url));
                prop_assert!(read.authorization.is_some_and(|it| is_private_to_its_host(&it)));
            }
        }
    }
}
