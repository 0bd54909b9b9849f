//! An origin, as configured and as browsers send it.

use std::fmt;

use axum::http::HeaderValue;

/// An origin as browsers write it: scheme, host in lower case, and the port unless the port is the scheme's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(HeaderValue);

/// The error for a text that is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an origin is written as browsers send it, like https://app.example.com or http://localhost:3000: scheme, host, no path"
)]
pub struct NotAnOrigin;

impl Origin {
    /// Reads an origin. `*` is refused, because the configuration must name the pages that may use a session.
    pub fn parse(text: &str) -> Result<Self, NotAnOrigin> {
        let url = reqwest::Url::parse(text).map_err(|_| NotAnOrigin)?;
        // The gateway compares origins byte by byte, and therefore the configuration must use the browsers' spelling.
        let is_as_sent =
            matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text;
        if !is_as_sent {
            return Err(NotAnOrigin);
        }
        HeaderValue::from_str(text)
            .map(Self)
            .map_err(|_| NotAnOrigin)
    }

    /// Returns true for an origin with https, because https protects its pages against changes in transit.
    pub(crate) fn is_https(&self) -> bool {
        self.0.as_bytes().starts_with(b"https:")
    }

    /// Returns the origin's host, as in a URL.
    pub fn host(&self) -> Option<&str> {
        let authority = self.0.to_str().ok()?.split_once("://")?.1;
        host_of(authority)
    }

    /// Returns the origin as a text, like `https://app.example.com`.
    pub fn as_str(&self) -> &str {
        // `parse` takes texts alone.
        self.0.to_str().unwrap_or_default()
    }

    /// Returns the origin as a header's value.
    pub(crate) fn as_header(&self) -> &HeaderValue {
        &self.0
    }
}

/// Returns the host of an authority like `[::1]:8080`, without the port.
pub(crate) fn host_of(authority: &str) -> Option<&str> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    (is_port && !host.is_empty()).then_some(host)
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_browsers_send() {
        for good in [
            "https://app.example.com",
            "http://localhost:3000",
            "https://[::1]:8443",
            "http://127.0.0.1",
        ] {
            assert_eq!(Origin::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "*",
            "null",
            "",
            "app.example.com",
            "https://a.com/",
            "https://a.com/x",
            "https://A.com",
            "https://a.com:443",
            "ftp://a.com",
            "https://u@a.com",
        ] {
            assert_eq!(Origin::parse(bad), Err(NotAnOrigin), "{bad}");
        }
    }
}
