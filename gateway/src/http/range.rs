//! Which part of a body a request asks for, with the header `Range` (RFC 9110, section 14).

use std::ops::Range;

use axum::http::{HeaderMap, HeaderName, header};

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The whole body: there is no `Range`, or one that the RFC has us ignore.
    Whole,
    /// These bytes.
    Part(Range<usize>),
    /// Bytes that the body does not have.
    Beyond,
}

/// Says what the headers ask of a body of this length, whose `ETag` is this one. Several ranges at once are ignored, as other
/// units are; and so is every range when `If-Range` names another body.
pub(crate) fn asked(headers: &HeaderMap, etag: &str, length: usize) -> Asked {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if text(header::IF_RANGE).is_some_and(|known| known != etag) {
        return Asked::Whole;
    }
    let range = text(header::RANGE).and_then(|range| range.trim().strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return Asked::Whole;
    };
    let (first, last) = (number(first), number(last));
    let part = match (first, last) {
        (Some(Some(first)), Some(None)) => first..length,
        (Some(Some(first)), Some(Some(last))) if first <= last => {
            first..last.saturating_add(1).min(length)
        }
        (Some(None), Some(Some(count))) => length.saturating_sub(count)..length,
        _ => return Asked::Whole,
    };
    if part.is_empty() {
        Asked::Beyond
    } else {
        Asked::Part(part)
    }
}

/// The number that the text is, or none when the text is empty; `None` for any other text. A number that is too large is the
/// largest one.
fn number(text: &str) -> Option<Option<usize>> {
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((!text.is_empty()).then(|| text.parse().unwrap_or(usize::MAX)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What is asked of ten bytes.
    fn of_ten(range: &str, if_range: Option<&str>) -> Asked {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, range.parse().unwrap());
        if let Some(known) = if_range {
            headers.insert(header::IF_RANGE, known.parse().unwrap());
        }
        asked(&headers, "\"tag\"", 10)
    }

    #[test]
    fn a_range_is_read_as_the_rfc_says() {
        for (range, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-5", 2..6),
            ("bytes=2-", 2..10),
            ("bytes=2-99999999999999999999999", 2..10),
            ("bytes=-3", 7..10),
            ("bytes=-99", 0..10),
            (" bytes=9-9 ", 9..10),
        ] {
            assert_eq!(of_ten(range, None), Asked::Part(part), "{range}");
        }
        for range in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert_eq!(of_ten(range, None), Asked::Beyond, "{range}");
        }
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=0-1,3-4",
            "lines=0-1",
        ] {
            assert_eq!(of_ten(range, None), Asked::Whole, "{range}");
        }
        assert_eq!(asked(&HeaderMap::new(), "t", 10), Asked::Whole);
    }

    #[test]
    fn a_range_of_another_body_is_ignored() {
        assert_eq!(of_ten("bytes=2-5", Some("\"tag\"")), Asked::Part(2..6));
        for other in ["\"other\"", "W/\"tag\"", "Sat, 21 Nov 2026 12:00:00 GMT"] {
            assert_eq!(of_ten("bytes=2-5", Some(other)), Asked::Whole, "{other}");
        }
    }
}
