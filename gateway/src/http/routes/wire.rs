//! What lists have in common: how times and places are written, and how long a page may be.

use chrono::{DateTime, SecondsFormat, Utc};
use everturn_proto::ids;

use crate::http::problem::{Code, Problem};

/// Writes a time as every answer has it.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Checks the `limit` of a page: at least 1, at the most `most`.
pub(super) fn checked_limit(limit: u32, most: u32) -> Result<u32, Problem> {
    if (1..=most).contains(&limit) {
        Ok(limit)
    } else {
        let detail = format!("`limit` is 1 to {most}.");
        Err(Problem::new(Code::InvalidParameter, detail))
    }
}

/// Writes the place of a row in a list, which clients send back for the next page. They need not understand it.
pub(super) fn page_token(at: DateTime<Utc>, id: &str) -> String {
    format!("{}~{id}", at.to_rfc3339_opts(SecondsFormat::Nanos, true))
}

/// Reads a [`page_token`]; `detail` says where clients take it from.
pub(super) fn parse_page_token(
    token: &str,
    detail: &str,
) -> Result<(DateTime<Utc>, String), Problem> {
    let place = token.split_once('~').and_then(|(time, id)| {
        let at = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        ids::is_valid(id).then(|| (at, id.to_owned()))
    });
    place.ok_or_else(|| Problem::new(Code::InvalidParameter, detail))
}
