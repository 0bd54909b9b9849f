//! The grant `client_credentials` (RFC 6749, 4.4): the request for a token, and the response.

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

/// The parameters of a request for a token.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) endpoint: TokenEndpoint,
    /// The server that the token is for (RFC 8707).
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
}

/// A token from a response.
pub(super) struct Issued {
    pub(super) value: String,
    /// The lifetime; `None` when the response has none.
    pub(super) lifetime: Option<Duration>,
}

#[derive(Deserialize)]
struct WrittenToken {
    access_token: String,
    token_type: String,
    expires_in: Option<Value>,
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
        client_id: &str,
        client_secret: &str,
    ) -> Result<Issued, AccessError> {
        let request = self.request(client_id, client_secret)?;
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

    fn request(&self, client_id: &str, client_secret: &str) -> Result<Outgoing, AccessError> {
        let mut request = exchange::request(Method::POST, &self.endpoint.url);
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        form.append_pair("resource", &self.resource);
        if !self.scopes.is_empty() {
            form.append_pair("scope", &self.scopes.join(" "));
        }
        match self.endpoint.method {
            ClientAuth::Basic => {
                let encoded = |text: &str| -> String {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let pair = format!("{}:{}", encoded(client_id), encoded(client_secret));
                let value = format!("Basic {}", STANDARD.encode(pair));
                let mut value = HeaderValue::try_from(value).map_err(|_| {
                    AccessError::Secret("the client's id or secret is not fit".to_owned())
                })?;
                value.set_sensitive(true);
                request.headers.insert(AUTHORIZATION, value);
            }
            ClientAuth::Post => {
                form.append_pair("client_id", client_id);
                form.append_pair("client_secret", client_secret);
            }
        }
        request.headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        request.body = Some(form.finish());
        Ok(request)
    }
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
    Ok(Issued { value, lifetime })
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

    #[test]
    fn the_request_is_that_of_the_standards() {
        const FORM: &str = "grant_type=client_credentials&resource=https%3A%2F%2Fh.example.com%2Fmcp&scope=a+b%3Ac";
        let basic = grant(ClientAuth::Basic).request("my id", "s:1/é").unwrap();
        assert_eq!(basic.body.as_deref(), Some(FORM));
        let header = &basic.headers[AUTHORIZATION];
        let expected = STANDARD.encode("my+id:s%3A1%2F%C3%A9");
        assert_eq!(header.to_str().unwrap(), format!("Basic {expected}"));
        assert!(header.is_sensitive());
        let post = grant(ClientAuth::Post).request("id", "s&t").unwrap();
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
