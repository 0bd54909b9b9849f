//! The cookie of a browser session.

use axum::http::{HeaderMap, HeaderValue, header};
use chrono::TimeDelta;

use super::{origin::is_asked_on_loopback, secret::Secret};
use crate::config::AuthConfig;

/// The cookie's name over https. Browsers accept a `__Host-` cookie only over https and from the gateway's exact host.
/// Other hosts of the domain therefore cannot set the cookie.
pub(crate) const SECURE_NAME: &str = "__Host-everturn";
/// The cookie's name on the gateway's machine, where https is missing.
const LOOPBACK_NAME: &str = "everturn";

/// Returns the cookie's name, which depends on how the browser reached the gateway. The configuration decides; without
/// a configured origin, the header `Host` decides.
fn name(headers: &HeaderMap, config: &AuthConfig) -> &'static str {
    let is_plain = match &config.public_origin {
        Some(origin) => !origin.is_https(),
        None => is_asked_on_loopback(headers),
    };
    if is_plain { LOOPBACK_NAME } else { SECURE_NAME }
}

/// Returns the session in the browser's cookie.
pub(crate) fn sent<'h>(headers: &'h HeaderMap, config: &AuthConfig) -> Option<&'h str> {
    let name = name(headers, config);
    let cookies = headers
        .get_all(header::COOKIE)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Makes the header that tells the browser to keep a session for `lifetime`.
pub(crate) fn keep(
    headers: &HeaderMap,
    config: &AuthConfig,
    session: &Secret,
    lifetime: TimeDelta,
) -> Option<HeaderValue> {
    let seconds = lifetime.num_seconds().max(0);
    set(headers, config, &session.reveal(), seconds)
}

/// Makes the header that tells the browser to forget its session.
pub(crate) fn forget(headers: &HeaderMap, config: &AuthConfig) -> Option<HeaderValue> {
    set(headers, config, "", 0)
}

/// Makes the cookie's header. With `HttpOnly`, no script can read the cookie. With `SameSite=Strict`, pages, links and
/// forms of other sites cannot make a browser send the cookie. `Strict` costs nothing, because the session serves a
/// page's requests and not links to a page.
fn set(
    headers: &HeaderMap,
    config: &AuthConfig,
    value: &str,
    max_age_s: i64,
) -> Option<HeaderValue> {
    let name = name(headers, config);
    let secure = if name == SECURE_NAME { "; Secure" } else { "" };
    let cookie =
        format!("{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}");
    let mut value = HeaderValue::try_from(cookie).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use everturn_store::KeyKind;
    use proptest::prelude::*;

    use super::*;
    use crate::config::Origin;

    fn headers(host: &'static str, cookies: &[&'static str]) -> HeaderMap {
        let cookies = cookies
            .iter()
            .map(|value| (header::COOKIE, HeaderValue::from_static(value)));
        cookies
            .chain([(header::HOST, HeaderValue::from_static(host))])
            .fold(HeaderMap::new(), |mut all, (name, value)| {
                all.append(name, value);
                all
            })
    }

    #[test]
    fn a_cookie_is_bound_to_the_host_but_on_ones_own_machine() {
        let session = Secret::generate(KeyKind::Session).unwrap();
        let cookie = |host| {
            keep(
                &headers(host, &[]),
                &AuthConfig::default(),
                &session,
                TimeDelta::minutes(1),
            )
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
        };
        let rest = "; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(
            cookie("api.example.com"),
            format!("__Host-everturn={}{rest}; Secure", session.reveal())
        );
        for loopback in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"] {
            assert_eq!(
                cookie(loopback),
                format!("everturn={}{rest}", session.reveal())
            );
        }
        assert!(cookie("localhost.example.com").contains("Secure"));
    }

    #[test]
    fn what_the_browser_asked_for_decides_nothing_when_it_is_configured() {
        let config = AuthConfig {
            public_origin: Some(Origin::parse("https://agents.example.com").unwrap()),
            ..AuthConfig::default()
        };
        for host in ["localhost", "agents.example.com", "evil.example"] {
            let cookie = forget(&headers(host, &[]), &config).unwrap();
            let cookie = cookie.to_str().unwrap();
            assert!(
                cookie.starts_with("__Host-") && cookie.ends_with("Secure"),
                "{cookie}"
            );
        }
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let config = AuthConfig::default();
        let sent = |headers: &HeaderMap| sent(headers, &config).map(str::to_owned);
        let found = |value: &str| Some(value.to_owned());
        let own = "a=1; everturn=evs_x; b=2";
        assert_eq!(sent(&headers("localhost", &["c=3", own])), found("evs_x"));
        assert_eq!(
            sent(&headers("api.example.com", &[own])),
            None,
            "a cookie that another host could have planted"
        );
        assert_eq!(
            sent(&headers("api.example.com", &["__Host-everturn=evs_x"])),
            found("evs_x")
        );
        assert_eq!(
            sent(&headers("localhost", &["xeverturn=1; everturn"])),
            None
        );
    }

    proptest! {
        #[test]
        fn any_cookie_header_is_read(value in prop::collection::vec(any::<u8>().prop_filter("a header", |byte| *byte >= 32 && *byte != 127), 0..60), rest in "[a-z_=; ]{0,20}") {
            let mut headers = headers("localhost", &[]);
            headers.append(header::COOKIE, HeaderValue::from_bytes(&value).unwrap());
            let _ = sent(&headers, &AuthConfig::default());
            // What comes before the session's own cookie does not hide it.
            let value = format!("x={rest}; everturn=evs_1").replace("everturn=evs_1;", "");
            headers.insert(header::COOKIE, value.parse().unwrap());
            let is_hidden = rest.contains("everturn");
            prop_assert!(is_hidden || sent(&headers, &AuthConfig::default()) == Some("evs_1"));
        }
    }
}
