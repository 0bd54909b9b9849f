//! Inserts of many rows in one statement.

use super::super::{dialect::Parts, statement::Rows};

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
                let placeholders = placeholders(count, R::COLUMNS);
                format!("{}{placeholders}{}", R::BEFORE, R::AFTER).into()
            });
        }
    }
}

/// Returns the parameter lists for a number of rows: `($1, $2), ($3, $4)`.
fn placeholders(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let numbers = 1 + row * columns..=(row + 1) * columns;
        let placeholders: Vec<_> = numbers.map(|number| format!("${number}")).collect();
        format!("({})", placeholders.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_have_their_placeholders() {
        assert_eq!(super::placeholders(2, 3), "($1, $2, $3), ($4, $5, $6)");
    }
}
