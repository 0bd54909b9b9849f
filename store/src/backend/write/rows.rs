//! Inserts of many rows in one statement.

use super::super::{dialect::Parts, statement::Rows};
use super::values::renumbered;

/// The most rows of one insert: 27 columns per row stay below SQLite's 32 766 parameters and PostgreSQL's 65 535. Only
/// a tool with more events of its own than this limit needs a second insert.
const ROWS_AN_INSERT: usize = 1000;

/// The most rows of an insert that is kept prepared. A larger insert is prepared on every use, because every number of
/// rows needs its own text and a connection keeps about a hundred texts.
const ROWS_KEPT_PREPARED: usize = 8;

impl Parts {
    /// Adds inserts of rows, `ROWS_AN_INSERT` at a time.
    pub(crate) fn add_rows<R: Rows>(&mut self, rows: impl ExactSizeIterator<Item = R>) {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let count = rows.len().min(ROWS_AN_INSERT);
            self.add_made(count <= ROWS_KEPT_PREPARED, |values| {
                for row in rows.by_ref().take(count) {
                    row.bind(values);
                }
                let rows = (0..count).map(|row| renumbered(R::ROW, row * R::PARAMETERS));
                let rows: Vec<_> = rows.collect();
                format!("{}{}{}", R::BEFORE, rows.join(", "), R::AFTER).into()
            });
        }
    }
}
