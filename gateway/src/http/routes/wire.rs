//! How times and places in lists are written.

use chrono::{DateTime, SecondsFormat, Utc};
use everturn_proto::ids;

use crate::http::problem::{Code, Problem};

/// A time as every answer has it.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The place of a row in a list, as clients carry it to the next page: they need not understand it.
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
