//! Shared parts of lists: the text formats of times and cursors, and the maximum length of a page.

use chrono::{DateTime, Utc};
use everturn_proto::ids;
use everturn_store::PageLimit;

use crate::http::problem::{Code, Problem};
pub(super) use crate::listed::{page_cursor, time};

/// Checks the `limit` of a page: from 1 to `most`.
pub(super) fn checked_limit(limit: u32, most: u32) -> Result<u32, Problem> {
    if (1..=most).contains(&limit) {
        Ok(limit)
    } else {
        let detail = format!("`limit` must be 1 to {most}.");
        Err(Problem::new(Code::InvalidParameter, detail))
    }
}

/// Cuts the rows of a page. Returns the last row if a next page exists, which an extra row beyond `limit` shows.
pub(super) fn cut<T>(rows: &mut Vec<T>, limit: u32) -> Option<&T> {
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    rows.last().filter(|_| has_more)
}

/// Returns the maximum bytes of a page.
pub(super) fn bytes_of(limit: PageLimit) -> usize {
    usize::try_from(limit.bytes).unwrap_or(usize::MAX)
}

/// Parses a cursor made by [`page_cursor`]. For an invalid cursor, `detail` tells the client the cursor's source.
pub(super) fn parse_page_cursor(
    token: &str,
    detail: &str,
) -> Result<(DateTime<Utc>, String), Problem> {
    let cursor = token.split_once('~').and_then(|(time, id)| {
        let at = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        ids::is_valid(id).then(|| (at, id.to_owned()))
    });
    cursor.ok_or_else(|| Problem::new(Code::InvalidParameter, detail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_cursor_of_a_list_or_is_refused(
            text in "\\PC{0,40}", seconds in -62_167_219_200_i64..253_402_300_799, id in "[A-Za-z0-9:_-][A-Za-z0-9._:-]{0,99}",
        ) {
            if let Err(problem) = parse_page_cursor(&text, "detail") {
                prop_assert_eq!(problem.code(), Code::InvalidParameter);
            }
            let at = DateTime::from_timestamp(seconds, 123_456_789).unwrap();
            let read = parse_page_cursor(&page_cursor(at, &id), "detail").map_err(|problem| problem.code());
            prop_assert_eq!(read, Ok((at, id)));
        }
    }
}
