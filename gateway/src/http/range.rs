//! The part of a body that a request asks for with the header `Range` (RFC 9110, section 14).

use std::ops::Range;

use axum::http::{HeaderMap, HeaderName, header};

/// The requested part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The whole body: the request has no `Range`, or the RFC demands to ignore its `Range`.
    Whole,
    /// The range of the requested bytes.
    Part(Range<usize>),
    /// Bytes that the body does not have.
    Beyond,
}

/// Returns the requested part of a body with the given `ETag` and length. A request for several ranges or for units
/// other than bytes gets the whole body. A request with an `If-Range` of another body gets the whole body, too.
pub(crate) fn asked(headers: &HeaderMap, etag: &str, length: usize) -> Asked {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if text(header::IF_RANGE).is_some_and(|known| known != etag) {
        return Asked::Whole;
    }
    match text(header::RANGE).and_then(|range| part_of(range, length)) {
        None => Asked::Whole,
        Some(part) if part.is_empty() => Asked::Beyond,
        Some(part) => Asked::Part(part),
    }
}

/// Returns the bytes of a range, cut to the length of the body. Returns `None` when the text is not a range of bytes.
fn part_of(range: &str, length: usize) -> Option<Range<usize>> {
    let (first, last) = range.trim().strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        return Some(length.saturating_sub(number(last)?)..length);
    }
    let first = number(first)?;
    if last.is_empty() {
        return Some(first..length);
    }
    let last = number(last)?;
    (first <= last).then(|| first..last.saturating_add(1).min(length))
}

/// Parses a number in decimal digits. A number that is too large becomes the largest number.
fn number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn any_range_is_a_part_of_the_body_or_none(
            range in "(bytes=)?[0-9, -]{0,30}", any in "[ -~]{0,30}", known in "[ -~]{0,10}", length in 0_usize..50,
        ) {
            for text in [range, any] {
                let mut headers = HeaderMap::new();
                headers.insert(header::RANGE, text.parse().unwrap());
                headers.insert(header::IF_RANGE, known.parse().unwrap());
                prop_assert!(known == "tag" || asked(&headers, "tag", length) == Asked::Whole);
                headers.remove(header::IF_RANGE);
                if let Asked::Part(part) = asked(&headers, "tag", length) {
                    prop_assert!(part.start < part.end && part.end <= length, "{}: {:?}", text, part);
                }
            }
        }
    }
}
