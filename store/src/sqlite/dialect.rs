//! SQLite's own ways, for `backend/`, which is compiled once per database.

use sqlx::{Sqlite, SqliteConnection, types::Json};

pub(super) use super::SqliteStore as Database;
pub(crate) use super::parts::Parts;

/// Parameters of a statement.
pub(crate) type Arguments = <Db as sqlx::Database>::Arguments;

pub(super) type Db = Sqlite;
pub(super) type Connection = SqliteConnection;

/// False: a statement writes to one table.
pub(super) const WRITES_IN_PARTS: bool = false;

/// Returns a list as a single parameter: JSON, for `json_each`.
pub(super) fn list(items: &[String]) -> Json<&[String]> {
    Json(items)
}
