//! Pages of rows, limited by their number of bytes.

use sqlx::FromRow;

use crate::api::PageLimit;

/// A row of a statement that adds up the bytes of its rows, in order. The statement returns one row past the limit, as
/// a sign of more rows.
#[derive(FromRow)]
pub(crate) struct RankedRow<T> {
    #[sqlx(flatten)]
    row: T,
    /// The row's position. Positions rise from row to row.
    page_rank: i64,
    bytes: i32,
}

impl PageLimit {
    /// Removes the rows past the limit. Returns the remaining rows in order, and true if more rows exist.
    pub(crate) fn cut<T>(self, mut rows: Vec<RankedRow<T>>) -> (Vec<T>, bool) {
        // The rows usually arrive in order, which makes the sort cheap.
        rows.sort_by_key(|row| row.page_rank);
        let found = rows.len();
        let most = usize::try_from(self.rows).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let mut kept: Vec<T> = Vec::with_capacity(found.min(most));
        for ranked in rows.into_iter().take(most) {
            bytes += i64::from(ranked.bytes);
            if bytes > i64::from(self.bytes) && !kept.is_empty() {
                break;
            }
            kept.push(ranked.row);
        }
        let has_more = kept.len() < found;
        (kept, has_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(rows: u32, bytes: u32, lengths: &[i32]) -> (Vec<i32>, bool) {
        let ranked = lengths
            .iter()
            .zip(1..)
            .map(|(length, page_rank)| RankedRow {
                row: *length,
                page_rank,
                bytes: *length,
            });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.reverse();
        PageLimit { rows, bytes }.cut(ranked)
    }

    #[test]
    fn a_page_ends_at_its_rows_or_its_bytes() {
        assert_eq!(cut(3, 100, &[10, 10, 10]), (vec![10, 10, 10], false));
        assert_eq!(cut(2, 100, &[10, 10, 10]), (vec![10, 10], true));
        assert_eq!(cut(9, 20, &[10, 10, 10]), (vec![10, 10], true));
        assert_eq!(cut(9, 5, &[10, 10]), (vec![10], true), "one always fits");
        assert_eq!(cut(0, 5, &[10]), (vec![], true));
        assert_eq!(cut(9, 5, &[]), (vec![], false));
    }
}
