//! The time that a server asks to wait: `Retry-After`, in any form.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The longest accepted wait. After it, the next attempt finds out whether the server is ready.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(10);

/// Reads seconds or an HTTP date, or OpenAI's milliseconds. Returns at most ten minutes.
pub fn from_headers(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let wait = header("retry-after-ms")
        .and_then(|ms| seconds(ms, 0.001))
        .or_else(|| {
            let value = header(RETRY_AFTER.as_str())?;
            seconds(value, 1.0).or_else(|| {
                let at = DateTime::parse_from_rfc2822(value).ok()?;
                Some((at.to_utc() - Utc::now()).to_std().unwrap_or_default())
            })
        });
    wait.map(bounded)
}

/// Shortens a server's requested wait from outside its headers to ten minutes at most.
pub fn bounded(wait: Duration) -> Duration {
    wait.min(MAX_RETRY_AFTER)
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let value: f64 = text.parse().ok().filter(|value: &f64| !value.is_nan())?;
    Duration::try_from_secs_f64((value * unit).min(MAX_RETRY_AFTER.as_secs_f64())).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    proptest! {
        #[test]
        fn any_header_is_a_wait_of_at_most_ten_minutes_or_none(text in "[ -~]{0,30}", number in "[-+]?[0-9.eE]{1,20}|inf|NaN") {
            for text in [text, number] {
                for name in ["retry-after-ms", "retry-after"] {
                    let value = HeaderValue::from_str(&text).unwrap();
                    let headers = [(name.parse().unwrap(), value)].into_iter().collect();
                    prop_assert!(from_headers(&headers).is_none_or(|wait| wait <= MAX_RETRY_AFTER), "{}", text);
                }
            }
        }
    }
}
