//! Times to wait in the words of an error: "Please try again in 1m2.5s".

use std::time::Duration;

/// The words before a time. The time stands within a few words behind them.
const MARKS: [&str; 6] = [
    "try again",
    "retry",
    "wait",
    "available again",
    "resets in",
    "reset after",
];
/// The words that may stand between a mark and its time.
const BETWEEN: [&str; 14] = [
    "in",
    "after",
    "for",
    "at",
    "least",
    "about",
    "around",
    "another",
    "approximately",
    "your",
    "request",
    "the",
    "delay",
    "until",
];
/// The units in seconds.
const UNITS: [(&[&str], f64); 5] = [
    (&["ms", "msec", "millisecond", "milliseconds"], 0.001),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3600.0),
    (&["d", "day", "days"], 86400.0),
];

/// Returns the time that a text in small letters asks to wait.
pub(super) fn in_words(text: &str) -> Option<Duration> {
    MARKS.iter().find_map(|mark| {
        text.match_indices(mark)
            .find_map(|(at, _)| after_mark(&text[at + mark.len()..]))
    })
}

fn after_mark(text: &str) -> Option<Duration> {
    let mut rest = text;
    loop {
        rest = rest
            .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | ':' | '=' | '~'));
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return time(rest);
        }
        let end = rest.find(|c: char| !c.is_ascii_alphabetic())?;
        if !BETWEEN.contains(&&rest[..end]) {
            return None;
        }
        rest = &rest[end..];
    }
}

/// Returns the time at the beginning of a text, like `20`, `1.2s`, `6m0s` and `2 minutes`. A number without a unit is
/// seconds, like in the header `Retry-After`.
pub(super) fn time(text: &str) -> Option<Duration> {
    let (mut seconds, mut rest, mut has_unit) = (0.0, text.trim_start(), false);
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let number: f64 = number.trim_end_matches('.').parse().ok()?;
        let unit = behind.trim_start();
        let end = unit.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, behind) = unit.split_at(end.unwrap_or(unit.len()));
        if unit.is_empty() {
            return Duration::try_from_secs_f64(if has_unit { seconds } else { number }).ok();
        }
        let Some((_, factor)) = UNITS.iter().find(|(names, _)| names.contains(&unit)) else {
            break;
        };
        (seconds, rest, has_unit) = (seconds + number * factor, behind.trim_start(), true);
    }
    has_unit
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_found_in_words() {
        for (text, expected) in [
            ("rate limit reached. please try again in 1.2s.", Some(1200)),
            ("please try again in 350ms. visit x", Some(350)),
            ("try again in 6m0s", Some(360_000)),
            ("try again in 1h2m3.5s.", Some(3_723_500)),
            ("please retry in 38.5s.", Some(38_500)),
            ("retry in 20s", Some(20_000)),
            ("please retry after 22 seconds.", Some(22_000)),
            ("try again after 2 minutes", Some(120_000)),
            ("please wait for about 1 minute", Some(60_000)),
            ("please wait 30 seconds and try again", Some(30_000)),
            ("retry-after: 7", Some(7000)),
            ("retry your request after 3 sec", Some(3000)),
            ("please try again later. wait 5 s", Some(5000)),
            ("retry after 3 attempts", None),
            ("please wait before trying again", None),
            ("try again with fewer than 20 tokens", None),
            ("retry in 1e9s", None),
            ("retry in", None),
            ("", None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(in_words(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(try again|retry|wait)?( in | after |[0-9.]{1,40}|ms|s|m|h|d| |é){0,8}") {
            let _is_any = in_words(&text);
        }
    }
}
