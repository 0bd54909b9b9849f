//! What SQLite does its own way, for `backend/`, which is compiled for each database.

use sqlx::{Sqlite, SqliteConnection, types::Json};

pub(super) use super::SqliteStore as Database;
pub(crate) use super::parts::Parts;
use crate::sql_text::SqlText;

pub(super) type Db = Sqlite;
pub(super) type Connection = SqliteConnection;

/// False: a statement writes to one table.
pub(super) const WRITES_IN_PARTS: bool = false;

/// SQLite's form of a text.
pub(super) fn words(text: SqlText) -> &'static str {
    text.sqlite
}

/// A list as one parameter: JSON, which `json_each` takes apart.
pub(super) fn list(items: &[String]) -> Json<&[String]> {
    Json(items)
}
