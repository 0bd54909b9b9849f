//! Inserts of many rows in one statement.

use sqlx::{Encode, Type};

use super::{
    super::{
        dialect::{Db, Parts},
        statement::Rows,
    },
    values::Values,
};

/// The most rows of one insert: 27 columns per row stay below SQLite's 32 766 parameters and PostgreSQL's 65 535. Only
/// a tool with more events of its own than this limit needs a second insert.
const ROWS_AN_INSERT: usize = 1000;

/// The most rows of an insert that is kept prepared. A larger insert is prepared on every use, because every number of
/// rows needs its own text and a connection keeps about a hundred texts.
const ROWS_KEPT_PREPARED: usize = 8;

/// The columns of a row with their values. Name and value are set together, so no column gets a wrong value. Every row
/// of an insert sets the same columns in the same order.
pub(super) struct Row<'v, 'a> {
    values: &'v mut Values<'a>,
    columns: Vec<&'static str>,
}

impl Row<'_, '_> {
    /// Sets a column.
    pub(super) fn set<'t, T>(&mut self, column: &'static str, value: T) -> &mut Self
    where
        T: Encode<'t, Db> + Type<Db>,
    {
        self.columns.push(column);
        self.values.bind(value);
        self
    }
}

/// Adds inserts of rows into a table. `set` sets the columns of one row, and `on_conflict` ends the text.
pub(super) fn insert_rows<T>(
    parts: &mut Parts,
    table: &'static str,
    rows: &[T],
    on_conflict: &'static str,
    set: impl Fn(&mut Row<'_, '_>, &T),
) {
    for rows in rows.chunks(ROWS_AN_INSERT) {
        parts.add_made(rows.len() <= ROWS_KEPT_PREPARED, |values| {
            let mut row = Row {
                values,
                columns: Vec::new(),
            };
            for item in rows {
                row.columns.clear();
                set(&mut row, item);
            }
            let placeholders = placeholders(rows.len(), row.columns.len());
            let columns = row.columns.join(", ");
            format!("INSERT INTO {table} ({columns}) VALUES {placeholders}{on_conflict}").into()
        });
    }
}

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
