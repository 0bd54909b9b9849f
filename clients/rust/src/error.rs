//! Errors between a program and a gateway.

use std::{fmt, time::Duration};

use serde_json::Value;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is not a gateway's URL.
    #[error("`{0}` is not the URL of a gateway; write a URL like http://127.0.0.1:8080")]
    Url(String),
    /// The token cannot be sent.
    #[error("the token has characters that no key or token has")]
    Token,
    /// No answer came.
    #[error("cannot reach the gateway at {url}")]
    Unreachable {
        /// URL of the API.
        url: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The gateway refused.
    #[error(transparent)]
    Refused(#[from] Box<Problem>),
    /// The answer lacks a field that the API promises.
    #[error(
        "the gateway's answer has no `{0}`: the server has a different version, or is not a gateway"
    )]
    Unexpected(&'static str),
}

/// A refusal of the gateway (RFC 9457, problem details).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The stable code, documented in `docs/errors`; empty when a proxy answered.
    pub code: String,
    /// The problem in a few words.
    pub title: String,
    /// The problem in detail, and advice.
    pub detail: String,
    /// When to send the request again.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// Reads the problem from an unsuccessful answer.
    pub(crate) async fn of(response: reqwest::Response) -> Box<Self> {
        let status = response.status().as_u16();
        let retry_after = retry_after(&response)
            .and_then(|text| text.parse().ok())
            .map(Duration::from_secs);
        let body: Value = response.json().await.unwrap_or_default();
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        Box::new(Self {
            status,
            code: text("code"),
            title: text("title"),
            detail: text("detail"),
            retry_after,
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the gateway answered {}", self.status)?;
        // The detail says everything that the title says, and more.
        let said = if self.detail.is_empty() {
            &self.title
        } else {
            &self.detail
        };
        match (said.trim_end_matches('.'), self.code.as_str()) {
            ("", "") => Ok(()),
            ("", code) => write!(formatter, " ({code})"),
            (said, "") => write!(formatter, ": {said}"),
            (said, code) => write!(formatter, ": {said} ({code})"),
        }
    }
}

impl std::error::Error for Problem {}

/// Returns the header `Retry-After`, unparsed.
pub(crate) fn retry_after(response: &reqwest::Response) -> Option<String> {
    let value = response.headers().get(reqwest::header::RETRY_AFTER)?;
    value.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_said_once() {
        let said = |title: &str, detail: &str, code: &str| {
            let [title, detail, code] = [title, detail, code].map(str::to_owned);
            let (status, retry_after) = (404, None);
            Problem {
                status,
                code,
                title,
                detail,
                retry_after,
            }
            .to_string()
        };
        assert_eq!(
            said(
                "No conversation has this id",
                "No conversation has the id `none`.",
                "conversation_not_found"
            ),
            "the gateway answered 404: No conversation has the id `none` (conversation_not_found)"
        );
        assert_eq!(
            said("Not found", "", ""),
            "the gateway answered 404: Not found"
        );
        assert_eq!(said("", "", ""), "the gateway answered 404");
    }
}
