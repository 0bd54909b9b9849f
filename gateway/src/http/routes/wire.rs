//! What lists have in common: how times and places are written, and how long a page may be.

use chrono::{DateTime, Utc};
use everturn_proto::ids;

use crate::http::problem::{Code, Problem};
pub(super) use crate::listed::{page_token, time};

/// Checks the `limit` of a page: at least 1, at the most `most`.
pub(super) fn checked_limit(limit: u32, most: u32) -> Result<u32, Problem> {
    if (1..=most).contains(&limit) {
        Ok(limit)
    } else {
        let detail = format!("`limit` is 1 to {most}.");
        Err(Problem::new(Code::InvalidParameter, detail))
    }
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
