//! The kind of an error: by the words of the provider, and otherwise by the status.

use std::time::Duration;

use super::{
    report::Report,
    table::{BAD_CALL, FIRM, Kind, REST, Row},
    too_long::is_too_long,
};

/// Words for a quota that also report a limit of a minute: Gemini's.
const PERHAPS_QUOTA: [&str; 4] = [
    "exceeded your current quota",
    "exceeded your quota",
    "billing",
    "credits",
];
/// Words of Gemini for a model without any quota.
const ZERO: [&str; 3] = ["limit: 0,", "limit: 0 ", "limit: 0\n"];
/// Words for a limit that lasts until the next day.
const DAILY: [&str; 4] = ["per day", "per-day", "perday", "daily"];
/// A provider that asks to wait for less than this time has no limit of a day.
const LONG_WAIT: Duration = Duration::from_mins(10);

/// Returns the kind of an error, when the words say more than the status.
pub(super) fn by_words(report: &Report, status: Option<u16>) -> Option<Kind> {
    let first = |rows: &[Row]| {
        let row = rows.iter().find(|row| fits(row, report, status));
        row.map(|row| row.kind)
    };
    let too_long = || is_too_long(report, status).then_some(Kind::TooLong);
    let quota = || is_quota(report, status).then_some(Kind::Quota);
    first(&BAD_CALL)
        .or_else(too_long)
        .or_else(|| first(&FIRM))
        .or_else(quota)
        .or_else(|| first(&REST))
}

/// Returns the kind of an error by its status alone.
pub(super) fn by_status(status: Option<u16>) -> Kind {
    match status {
        Some(402) => Kind::Quota,
        Some(401 | 403) => Kind::Key,
        Some(404 | 410) => Kind::NotFound,
        Some(429) => Kind::RateLimited,
        Some(498 | 529) => Kind::Overloaded,
        // An unknown error within a stream may pass.
        Some(408 | 409 | 424 | 425 | 499 | 500..) | None => Kind::Unavailable,
        Some(_) => Kind::BadRequest,
    }
}

fn fits(row: &Row, report: &Report, status: Option<u16>) -> bool {
    (row.at)(status)
        && (row.names.iter().any(|name| report.is_named(name))
            || row.mentions.iter().any(|name| report.mentions(name))
            || row.phrases.iter().any(|phrase| report.says(phrase)))
}

/// True for a quota in the words of a limit that may pass.
fn is_quota(report: &Report, status: Option<u16>) -> bool {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| report.says(phrase));
    let is_of_gemini = report.is_named("resourceexhausted");
    if report.has_name_with("perday") || (is_of_gemini && says(&ZERO)) {
        return true;
    }
    let is_possible = matches!(status, None | Some(400 | 402 | 403 | 429));
    let may_pass = is_of_gemini || report.has_name_with("throttl") || report.wait().is_some();
    let is_long = report.wait().is_none_or(|wait| wait >= LONG_WAIT);
    let is_perhaps = says(&PERHAPS_QUOTA);
    let is_daily = (is_perhaps || report.says("limit") || report.says("too many")) && says(&DAILY);
    is_possible && ((is_perhaps && !may_pass) || (is_daily && is_long))
}
