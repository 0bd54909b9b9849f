//! What SQLite does its own way, for `backend/`, which is compiled for each database.

use sqlx::{Error, Sqlite, SqliteConnection, error::DatabaseError, types::Json};

pub(super) use super::SqliteStore as Store;
use crate::{
    error::StoreError,
    sql::Text,
    sqlx_error::{Verdict, store_error},
};

pub(super) type Db = Sqlite;
pub(super) type Connection = SqliteConnection;

/// Primary result codes after which the same call may succeed later: busy, locked, no memory, read-only,
/// interrupted, I/O error, full, cannot open, protocol (locking).
const TRANSIENT: [i32; 9] = [5, 6, 7, 8, 9, 10, 13, 14, 15];
/// Primary result code: a string or a blob over the limit (1 GB).
const TOO_BIG: i32 = 18;

/// SQLite's words of a text.
pub(super) fn words(text: Text) -> &'static str {
    text.sqlite
}

/// A list as one parameter: JSON, which `json_each` takes apart.
pub(super) fn list(items: &[String]) -> Json<&[String]> {
    Json(items)
}

/// Maps an error of a statement.
pub(super) fn sql_error(error: Error) -> StoreError {
    store_error(error, judge)
}

fn judge(error: &dyn DatabaseError) -> Verdict {
    // The lower byte is the primary code, the rest says more about it.
    match error
        .code()
        .and_then(|code| code.parse::<i32>().ok())
        .map(|code| code & 0xff)
    {
        Some(code) if TRANSIENT.contains(&code) => Verdict::Transient,
        Some(TOO_BIG) => Verdict::Refused,
        _ => Verdict::Unexpected,
    }
}
