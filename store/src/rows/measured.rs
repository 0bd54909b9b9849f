//! Rows that are read up to a number of bytes.

use sqlx::FromRow;

use crate::api::PageLimit;

/// A row of a text that adds up, in the order of the rows, how long they are. The text returns one row more than fits,
/// as a sign that there are more.
#[derive(FromRow)]
pub(crate) struct MeasuredRow<T> {
    #[sqlx(flatten)]
    row: T,
    /// From 1.
    place: i64,
    /// Bytes of this row and of all before it.
    total_bytes: i64,
}

impl PageLimit {
    /// Removes the rows that do not fit. Returns those that do, in order, and whether there are more.
    pub(crate) fn cut<T>(self, mut rows: Vec<MeasuredRow<T>>) -> (Vec<T>, bool) {
        // They commonly are in order already, which makes this cheap.
        rows.sort_by_key(|row| row.place);
        let found = rows.len();
        let most = usize::try_from(self.rows).unwrap_or(usize::MAX);
        let bytes = i64::from(self.bytes);
        let fits = |row: &MeasuredRow<T>| row.place == 1 || row.total_bytes <= bytes;
        let kept: Vec<T> = rows
            .into_iter()
            .take(most)
            .take_while(fits)
            .map(|measured| measured.row)
            .collect();
        let has_more = kept.len() < found;
        (kept, has_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(rows: u32, bytes: u32, lengths: &[i64]) -> (Vec<i64>, bool) {
        let mut total_bytes = 0;
        let measured = lengths.iter().zip(1..).map(|(length, place)| {
            total_bytes += length;
            MeasuredRow {
                row: *length,
                place,
                total_bytes,
            }
        });
        let mut measured: Vec<_> = measured.collect();
        measured.reverse();
        PageLimit { rows, bytes }.cut(measured)
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
