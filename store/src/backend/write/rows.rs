//! Inserts of many rows in one statement.

use super::{super::dialect::Parts, values::Values};

/// The most rows of one insert: 25 columns of each stay below SQLite's 32 766 parameters and PostgreSQL's 65 535. Only
/// a tool that emits more than this many events of its own needs a second insert.
const ROWS_AN_INSERT: usize = 1000;

/// An insert of at most this many rows is kept prepared, and a larger one is prepared each time. Each number of rows
/// needs a text of its own, and a connection keeps about a hundred texts.
const ROWS_KEPT_PREPARED: usize = 8;

/// Adds inserts of rows. `bind` binds the columns of one row, and `on_conflict` ends the text.
pub(super) fn insert_rows<T>(
    parts: &mut Parts,
    insert_into: &'static str,
    rows: &[T],
    on_conflict: &'static str,
    bind: impl Fn(&mut Values<'_>, &T),
) {
    for rows in rows.chunks(ROWS_AN_INSERT) {
        parts.add_made(rows.len() <= ROWS_KEPT_PREPARED, |values| {
            for row in rows {
                bind(values, row);
            }
            let columns = values.count() / rows.len();
            let places = places(rows.len(), columns);
            format!("{insert_into}VALUES {places}{on_conflict}").into()
        });
    }
}

/// Returns the places of the parameters of so many rows: `($1, $2), ($3, $4)`.
fn places(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let numbers = 1 + row * columns..=(row + 1) * columns;
        let places: Vec<_> = numbers.map(|number| format!("${number}")).collect();
        format!("({})", places.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_have_their_places() {
        assert_eq!(super::places(2, 3), "($1, $2, $3), ($4, $5, $6)");
    }
}
