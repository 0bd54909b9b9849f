//! Inserts of many rows in one statement.

use sqlx::{QueryBuilder, query_builder::Separated};

use super::super::{Connection, dialect::Db};
use crate::api::Result;

/// The most rows of one insert: 25 columns of each stay below SQLite's 32 766 parameters and PostgreSQL's 65 535. Only
/// a tool that emits more than this many events of its own needs a second insert.
const ROWS_AN_INSERT: usize = 1000;

/// An insert of at most this many rows is kept prepared, and a larger one is prepared each time. Each number of rows
/// needs a text of its own, and a connection keeps about a hundred texts.
const ROWS_KEPT_PREPARED: usize = 8;

/// Inserts rows. `bind` binds the columns of one row, and `on_conflict` ends the text.
pub(super) async fn insert_rows<T: Sync>(
    connection: &mut Connection,
    insert_into: &'static str,
    rows: &[T],
    on_conflict: &'static str,
    bind: impl Fn(&mut Separated<'_, Db, &'static str>, &T) + Send,
) -> Result<()> {
    for rows in rows.chunks(ROWS_AN_INSERT) {
        let mut query = QueryBuilder::<Db>::new(insert_into);
        query.push_values(rows, |mut columns, row| bind(&mut columns, row));
        query.push(on_conflict);
        let insert = query.build().persistent(rows.len() <= ROWS_KEPT_PREPARED);
        insert.execute(&mut *connection).await?;
    }
    Ok(())
}
