//! Requests for tokens with the grants of RFC 6749 (4.4 `client_credentials`, 4.1 `authorization_code`, 6 `refresh_token`),
//! and the responses.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{
    Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use super::{error::AccessError, exchange, metadata::TokenEndpoint, options::ClientAuth};
use crate::egress::{Egress, Outgoing};

/// The longest token, in bytes: more than servers accept in a header.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The limits on a token's lifetime. The minimum prevents endless requests for a token that expires at once.
const MIN_LIFETIME: Duration = Duration::from_secs(1);
const MAX_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The known reasons for a refusal (RFC 6749, 5.2; RFC 8707, 2). No other text of an authorization server is shown.
const REASONS: [&str; 7] = [
    "invalid_client",
    "unauthorized_client",
    "invalid_scope",
    "invalid_target",
    "invalid_grant",
    "invalid_request",
    "unsupported_grant_type",
];

/// The parameters of requests for tokens.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) endpoint: TokenEndpoint,
    /// The server that the token is for (RFC 8707).
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
}

/// The client of a request.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) id: String,
    /// `None` for a public client.
    pub(super) secret: Option<String>,
}

/// The right by which the client gets a token.
#[derive(Clone, Copy)]
pub(super) enum Right<'a> {
    /// The client's own right.
    Client,
    /// The code of a person's consent.
    Code {
        code: &'a str,
        verifier: &'a str,
        redirect_uri: &'a str,
    },
    /// The refresh token of an earlier response.
    Refresh(&'a str),
}

/// A token from a response.
pub(super) struct Issued {
    pub(super) value: String,
    /// The lifetime; `None` when the response has none.
    pub(super) lifetime: Option<Duration>,
    /// The token for later tokens, if any.
    pub(super) refresh: Option<String>,
}

#[derive(Deserialize)]
struct WrittenToken {
    access_token: String,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct WrittenError {
    error: String,
}

impl Grant {
    /// Requests a token.
    pub(super) async fn ask(
        &self,
        egress: &Egress,
        client: &Client,
        right: Right<'_>,
    ) -> Result<Issued, AccessError> {
        let request = self.request(client, right)?;
        let answer = exchange::send(egress, request, None).await?;
        match answer.status {
            StatusCode::OK => issued(&answer.body),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(exchange::unexpected(&answer))
            }
            status if status.is_client_error() => Err(refusal(status, &answer.body)),
            _ => Err(exchange::unexpected(&answer)),
        }
    }

    fn request(&self, client: &Client, right: Right<'_>) -> Result<Outgoing, AccessError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        match right {
            Right::Client => form.append_pair("grant_type", "client_credentials"),
            Right::Code {
                code,
                verifier,
                redirect_uri,
            } => form
                .append_pair("grant_type", "authorization_code")
                .append_pair("code", code)
                .append_pair("code_verifier", verifier)
                .append_pair("redirect_uri", redirect_uri),
            Right::Refresh(token) => form
                .append_pair("grant_type", "refresh_token")
                .append_pair("refresh_token", token),
        };
        form.append_pair("resource", &self.resource);
        // A refreshed token has the scopes of the consent.
        if matches!(right, Right::Client) && !self.scopes.is_empty() {
            form.append_pair("scope", &self.scopes.join(" "));
        }
        of_client(&self.endpoint, client, form)
    }
}

/// Makes the request with the form by the client.
pub(super) fn of_client(
    endpoint: &TokenEndpoint,
    client: &Client,
    mut form: form_urlencoded::Serializer<'_, String>,
) -> Result<Outgoing, AccessError> {
    let mut request = exchange::request(Method::POST, &endpoint.url);
    match (endpoint.method, &client.secret) {
        (ClientAuth::Basic, Some(secret)) => {
            let encoded = |text: &str| -> String {
                form_urlencoded::byte_serialize(text.as_bytes()).collect()
            };
            let pair = format!("{}:{}", encoded(&client.id), encoded(secret));
            let value = format!("Basic {}", STANDARD.encode(pair));
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                AccessError::Secret("the client's id or secret is not fit".to_owned())
            })?;
            value.set_sensitive(true);
            request.headers.insert(AUTHORIZATION, value);
        }
        (ClientAuth::Post, Some(secret)) => {
            form.append_pair("client_id", &client.id);
            form.append_pair("client_secret", secret);
        }
        (ClientAuth::Basic | ClientAuth::Post, None) => {
            form.append_pair("client_id", &client.id);
        }
    }
    request.headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    request.body = Some(form.finish());
    Ok(request)
}

/// Parses a response with a token.
fn issued(body: &[u8]) -> Result<Issued, AccessError> {
    let unfit = |why: &str| AccessError::Unavailable(format!("the answer is not a token: {why}"));
    let written: WrittenToken =
        serde_json::from_slice(body).map_err(|_| unfit("the format is not of RFC 6749, 5.1"))?;
    if !written.token_type.eq_ignore_ascii_case("bearer") {
        return Err(unfit("the type is not `Bearer`"));
    }
    let value = written.access_token;
    let is_fit = value.bytes().all(|byte| byte.is_ascii_graphic());
    let refresh = written.refresh_token.filter(|token| !token.is_empty());
    if refresh
        .as_ref()
        .is_some_and(|token| token.len() > MAX_TOKEN_BYTES)
    {
        return Err(unfit("the refresh token is too long"));
    }
    if value.is_empty() || value.len() > MAX_TOKEN_BYTES || !is_fit {
        return Err(unfit("the token cannot be sent in a header"));
    }
    // Some servers write the number as a string.
    let seconds = written.expires_in.and_then(|seconds| match seconds {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    });
    let lifetime = seconds
        .filter(|seconds| seconds.is_finite())
        .map(|seconds| {
            Duration::from_secs_f64(
                seconds.clamp(MIN_LIFETIME.as_secs_f64(), MAX_LIFETIME.as_secs_f64()),
            )
        });
    Ok(Issued {
        value,
        lifetime,
        refresh,
    })
}

/// Returns the reason for a refusal.
fn refusal(status: StatusCode, body: &[u8]) -> AccessError {
    let said = serde_json::from_slice::<WrittenError>(body).ok();
    let reason = said.and_then(|said| REASONS.into_iter().find(|reason| *reason == said.error));
    match reason {
        Some(reason @ ("invalid_client" | "unauthorized_client")) => AccessError::Client(reason),
        Some(reason) => AccessError::Request(reason),
        None if status == StatusCode::UNAUTHORIZED => AccessError::Client("it answered with 401"),
        None => AccessError::Request("it does not say why"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn grant(method: ClientAuth) -> Grant {
        Grant {
            endpoint: TokenEndpoint {
                url: "https://login.example.com/token".parse().unwrap(),
                method,
            },
            resource: "https://h.example.com/mcp".to_owned(),
            scopes: vec!["a".into(), "b:c".into()],
        }
    }

    fn client(id: &str, secret: &str) -> Client {
        Client {
            id: id.to_owned(),
            secret: Some(secret.to_owned()),
        }
    }

    #[test]
    fn a_public_client_shows_its_verifier_and_no_secret() {
        let public = Client {
            id: "id".to_owned(),
            secret: None,
        };
        let right = Right::Code {
            code: "c&d",
            verifier: "v",
            redirect_uri: "https://e.example.com/oauth/callback",
        };
        let request = grant(ClientAuth::Basic).request(&public, right).unwrap();
        let expected = "grant_type=authorization_code&code=c%26d&code_verifier=v&redirect_uri=https%3A%2F%2F\
             e.example.com%2Foauth%2Fcallback&resource=https%3A%2F%2Fh.example.com%2Fmcp&client_id=id";
        assert_eq!(request.body.as_deref(), Some(expected));
        assert!(!request.headers.contains_key(AUTHORIZATION));
        let refresh = grant(ClientAuth::Post)
            .request(&public, Right::Refresh("r"))
            .unwrap();
        let expected = "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fh.example.com%2Fmcp&client_id=id";
        assert_eq!(refresh.body.as_deref(), Some(expected));
    }

    #[test]
    fn the_request_is_that_of_the_standards() {
        const FORM: &str = "grant_type=client_credentials&resource=https%3A%2F%2Fh.example.com%2Fmcp&scope=a+b%3Ac";
        let basic = grant(ClientAuth::Basic)
            .request(&client("my id", "s:1/é"), Right::Client)
            .unwrap();
        assert_eq!(basic.body.as_deref(), Some(FORM));
        let header = &basic.headers[AUTHORIZATION];
        let expected = STANDARD.encode("my+id:s%3A1%2F%C3%A9");
        assert_eq!(header.to_str().unwrap(), format!("Basic {expected}"));
        assert!(header.is_sensitive());
        let post = grant(ClientAuth::Post)
            .request(&client("id", "s&t"), Right::Client)
            .unwrap();
        let expected = format!("{FORM}&client_id=id&client_secret=s%26t");
        assert_eq!(post.body, Some(expected));
        assert!(!post.headers.contains_key(AUTHORIZATION));
    }

    #[test]
    fn a_token_holds_as_long_as_is_said() {
        let lifetime = |expires_in: Value| {
            let body =
                json!({"access_token": "t", "token_type": "bearer", "expires_in": expires_in});
            issued(body.to_string().as_bytes()).unwrap().lifetime
        };
        assert_eq!(lifetime(json!(3600)), Some(Duration::from_secs(3600)));
        assert_eq!(lifetime(json!("60")), Some(Duration::from_secs(60)));
        assert_eq!(lifetime(json!(-1)), Some(MIN_LIFETIME));
        assert_eq!(lifetime(json!(1e300)), Some(MAX_LIFETIME));
        assert_eq!(lifetime(json!("soon")), None);
        assert_eq!(lifetime(Value::Null), None);
    }

    #[test]
    fn a_refusal_says_whose_fault_it_is_and_repeats_nothing() {
        let code = |status: u16, body: &str| {
            refusal(StatusCode::from_u16(status).unwrap(), body.as_bytes()).code()
        };
        let error = |word: &str| json!({"error": word, "error_description": "hunter2"}).to_string();
        assert_eq!(code(401, &error("invalid_client")), "mcp_client_refused");
        assert_eq!(
            code(400, &error("unauthorized_client")),
            "mcp_client_refused"
        );
        assert_eq!(code(401, "no JSON"), "mcp_client_refused");
        assert_eq!(code(400, &error("invalid_target")), "mcp_grant_refused");
        let own = refusal(StatusCode::BAD_REQUEST, error("hunter2").as_bytes());
        assert!(!own.to_string().contains("hunter2"), "{own}");
    }

    proptest! {
        #[test]
        fn any_answer_is_a_token_for_a_header_or_is_refused(
            body in prop::collection::vec(any::<u8>(), 0..200), token in "\\PC{0,60}", kind in "(bearer|\\PC{0,8})",
            seconds in any::<f64>(),
        ) {
            let _refused = issued(&body).err().map(|error| error.to_string());
            let _refused = refusal(StatusCode::BAD_REQUEST, &body);
            let written = json!({"access_token": token, "token_type": kind, "expires_in": seconds});
            if let Ok(read) = issued(written.to_string().as_bytes()) {
                let header = HeaderValue::try_from(format!("Bearer {}", read.value));
                prop_assert!(header.is_ok());
                prop_assert!(read.lifetime.is_none_or(|it| (MIN_LIFETIME..=MAX_LIFETIME).contains(&it)));
            }
        }
    }
}
