//! Origins: pages that may call this gateway (CORS), and pages that may use the credentials a browser sends by itself.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use everturn_proto::is_loopback;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{
    config::{AuthConfig, Origin, host_of},
    http::problem::REQUEST_ID,
};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The Temporal UI's header for its codec server: the namespace on the screen.
const NAMESPACE: HeaderName = HeaderName::from_static("x-namespace");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const CONVERSATION_ID: HeaderName = HeaderName::from_static("x-conversation-id");

/// How long a browser may cache the CORS answer: two hours, the most that Chromium takes.
const CORS_MAX_AGE: Duration = Duration::from_hours(2);

/// Returns true when the request's page is the gateway's own or in the allow-list. Returns `None` when the request does
/// not name its page; requests of programs other than browsers do not.
///
/// `Sec-Fetch-Site: same-origin` is sufficient: browsers compute the header from the requested URL, whatever proxies
/// make of the header `Host`, and pages cannot set the header.
pub(crate) fn is_trusted_page(headers: &HeaderMap, config: &AuthConfig) -> Option<bool> {
    let site = headers.get(SEC_FETCH_SITE);
    if site.is_some_and(|site| site == "same-origin") {
        return Some(true);
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let public = config.public_origin.as_ref().map(Origin::as_header);
        return Some(
            public == Some(origin)
                || is_allowed(origin, config)
                || is_on_own_machine(origin, headers),
        );
    }
    site.map(|_| false)
}

/// Returns true for an origin of the allow-list, and for a loopback origin where the gateway trusts loopback pages.
fn is_allowed(origin: &HeaderValue, config: &AuthConfig) -> bool {
    let mut listed = config.allowed_origins.iter().map(Origin::as_header);
    listed.any(|known| known == origin)
        || (config.trusts_loopback_pages && is_loopback_origin(origin))
}

fn is_loopback_origin(origin: &HeaderValue) -> bool {
    let parsed = origin.to_str().ok().map(Origin::parse);
    parsed.is_some_and(|parsed| parsed.is_ok_and(|origin| origin.host().is_some_and(is_loopback)))
}

/// Returns true for a page of the gateway that the browser reached by a loopback name. Only for loopback names the
/// header `Host` proves the gateway's own page, because the owner of any other name can point the name at the gateway
/// and serve a page under the same name.
fn is_on_own_machine(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let (Ok(origin), Some(host)) = (origin.to_str(), host(headers)) else {
        return false;
    };
    let is_same = |scheme| origin.strip_prefix(scheme) == Some(host);
    is_own_machine(host) && (is_same("http://") || is_same("https://"))
}

/// Returns true when the request's `Host` is a known name of the gateway. A request without `Host` passes, because
/// browsers always send the header.
pub(crate) fn is_known_host(headers: &HeaderMap, config: &AuthConfig) -> bool {
    let (Some(allowed), Some(asked)) = (&config.allowed_hosts, headers.get(header::HOST)) else {
        return true;
    };
    let Some(asked) = asked.to_str().ok().and_then(host_of) else {
        return false;
    };
    let public = config.public_origin.as_ref().and_then(Origin::host);
    let mut known = allowed.iter().map(String::as_str).chain(public);
    is_loopback(asked) || known.any(|known| known.eq_ignore_ascii_case(asked))
}

/// Returns the authority in the request's `Host`.
fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

/// Returns true when the client reached the gateway by a loopback name.
pub(crate) fn is_asked_on_loopback(headers: &HeaderMap) -> bool {
    host(headers).is_some_and(is_own_machine)
}

fn is_own_machine(host: &str) -> bool {
    host_of(host).is_some_and(is_loopback)
}

/// Makes the CORS layer for the allowed pages. Returns `None` when the configuration allows no page.
pub(crate) fn cors(config: &AuthConfig) -> Option<CorsLayer> {
    if config.allowed_origins.is_empty() && !config.trusts_loopback_pages {
        return None;
    }
    let known = config.clone();
    let allowed = AllowOrigin::predicate(move |origin, _| is_allowed(origin, &known));
    let methods = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    let headers = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        IDEMPOTENCY_KEY,
        LAST_EVENT_ID,
        NAMESPACE,
        REQUEST_ID,
    ];
    let exposed = [REQUEST_ID, header::RETRY_AFTER, CONVERSATION_ID];
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_credentials(true);
    Some(
        layer
            .allow_methods(methods)
            .allow_headers(headers)
            .expose_headers(exposed)
            .max_age(CORS_MAX_AGE),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_is_judged_by_what_the_browser_says() {
        let config = AuthConfig {
            allowed_origins: vec![Origin::parse("https://app.example.com").unwrap()],
            public_origin: Some(Origin::parse("https://api.example.com").unwrap()),
            ..AuthConfig::default()
        };
        let judge = |headers: &[(&'static str, &'static str)]| {
            let pairs = headers.iter().map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            });
            is_trusted_page(&pairs.collect(), &config)
        };
        let host = ("host", "api.example.com");
        assert_eq!(judge(&[host]), None);
        assert_eq!(
            judge(&[host, ("origin", "https://app.example.com")]),
            Some(true)
        );
        assert_eq!(
            judge(&[host, ("origin", "https://api.example.com")]),
            Some(true)
        );
        assert_eq!(
            judge(&[
                ("host", "10.0.0.1"),
                ("origin", "https://api.example.com"),
                ("sec-fetch-site", "same-origin")
            ]),
            Some(true)
        );
        assert_eq!(
            judge(&[
                ("host", "localhost:8080"),
                ("origin", "http://localhost:8080")
            ]),
            Some(true)
        );
        assert_eq!(
            judge(&[("host", "[::1]:8080"), ("origin", "http://[::1]:8080")]),
            Some(true)
        );
        for origin in [
            "https://evil.example",
            "http://api.example.com",
            "http://app.example.com",
            "null",
            "https://api.example.com.evil.example",
            "https://app.example.com:444",
        ] {
            let headers: HeaderMap = [
                (header::HOST, HeaderValue::from_static("api.example.com")),
                (header::ORIGIN, HeaderValue::from_static(origin)),
            ]
            .into_iter()
            .collect();
            assert_eq!(is_trusted_page(&headers, &config), Some(false), "{origin}");
        }
        for site in ["cross-site", "same-site", "none"] {
            let headers: HeaderMap = [(SEC_FETCH_SITE, HeaderValue::from_static(site))]
                .into_iter()
                .collect();
            assert_eq!(is_trusted_page(&headers, &config), Some(false), "{site}");
        }
    }

    #[test]
    fn loopback_pages_are_trusted_only_where_the_gateway_says_so() {
        let of = |origin: &'static str, config: &AuthConfig| {
            let headers: HeaderMap = [
                (header::HOST, HeaderValue::from_static("127.0.0.1:8080")),
                (header::ORIGIN, HeaderValue::from_static(origin)),
            ]
            .into_iter()
            .collect();
            is_trusted_page(&headers, config)
        };
        let production = AuthConfig::default();
        let dev = AuthConfig {
            trusts_loopback_pages: true,
            ..AuthConfig::default()
        };
        assert!(cors(&production).is_none() && cors(&dev).is_some());
        for local in [
            "http://localhost:5173",
            "http://127.0.0.1:3000",
            "https://localhost",
            "http://[::1]:5173",
        ] {
            assert_eq!(of(local, &production), Some(false), "{local}");
            assert_eq!(of(local, &dev), Some(true), "{local}");
        }
        for other in [
            "http://localhost.evil.example:5173",
            "http://127.0.0.1.evil.example",
            "http://192.168.0.7:5173",
            "http://app.localhost.example",
            "null",
            "localhost:5173",
        ] {
            assert_eq!(of(other, &dev), Some(false), "{other}");
        }
    }

    fn asked(host: &str) -> HeaderMap {
        let host = HeaderValue::from_str(host).unwrap();
        [(header::HOST, host)].into_iter().collect()
    }

    /// Whoever can lead a name to this gateway can have a browser send that name as `Host` and `Origin`.
    #[test]
    fn a_name_that_anybody_can_choose_makes_no_page_the_gateways_own() {
        let mut headers = asked("evil.example");
        headers.insert(
            header::ORIGIN,
            HeaderValue::from_static("https://evil.example"),
        );
        assert_eq!(
            is_trusted_page(&headers, &AuthConfig::default()),
            Some(false)
        );
    }

    #[test]
    fn a_gateway_is_known_by_the_names_of_its_machine_and_those_that_are_configured() {
        let config = AuthConfig {
            public_origin: Some(Origin::parse("https://agents.example.com").unwrap()),
            allowed_hosts: Some(vec!["gateway.internal".to_owned()]),
            ..AuthConfig::default()
        };
        for known in [
            "localhost:8080",
            "127.0.0.1",
            "[::1]:8080",
            "gateway.internal:8080",
            "Gateway.Internal",
            "agents.example.com",
        ] {
            assert!(is_known_host(&asked(known), &config), "{known}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1:8080",
            "127.0.0.1.evil.example",
            "localhost:8080:evil",
            "[::1",
            "",
        ] {
            assert!(!is_known_host(&asked(other), &config), "{other}");
        }
        let any = AuthConfig {
            allowed_hosts: None,
            ..config
        };
        assert!(is_known_host(&asked("evil.example"), &any));
        assert!(is_known_host(&HeaderMap::new(), &AuthConfig::default()));
    }

    proptest! {
        #[test]
        fn any_host_or_origin_of_others_is_foreign(host in "\\PC{0,30}", like in "[a-z.:0-9@\\[\\]/]{0,30}") {
            let config = AuthConfig { allowed_hosts: Some(Vec::new()), ..AuthConfig::default() };
            for text in [host, like] {
                let Ok(value) = HeaderValue::from_str(&text) else { continue };
                let own = host_of(&text).is_some_and(is_loopback);
                let mut headers: HeaderMap = [(header::HOST, value)].into_iter().collect();
                prop_assert_eq!(is_known_host(&headers, &config), own, "{}", text);
                prop_assert!(Origin::parse(&text).is_ok_and(|origin| origin.to_string() == text) || Origin::parse(&text).is_err());
                if let Ok(origin) = HeaderValue::try_from(format!("https://{text}")) {
                    headers.insert(header::ORIGIN, origin);
                    prop_assert_eq!(is_trusted_page(&headers, &config), Some(own), "{}", text);
                }
            }
        }
    }
}
