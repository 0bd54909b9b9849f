//! What PostgreSQL does its own way, for `backend/`, which is compiled for each database.

use sqlx::{Error, PgConnection, Postgres, error::DatabaseError};

pub(super) use super::PostgresStore as Store;
use crate::{
    error::StoreError,
    sql::Text,
    sqlx_error::{Verdict, store_error},
};

pub(super) type Db = Postgres;
pub(super) type Connection = PgConnection;

/// SQLSTATE classes after which the same call may succeed later: connection, transaction rollback (serialization,
/// deadlock), resources, operator (shut-down, statement time-out), system (I/O); and login, whose password may be
/// rotating.
const TRANSIENT_CLASSES: [&str; 6] = ["08", "28", "40", "53", "57", "58"];
/// Single states of that kind: lock time-out, read-only after a fail-over, transaction ended by a time-out, no such
/// database yet, object in use, a privilege that was not granted yet.
const TRANSIENT_STATES: [&str; 7] = [
    "55P03", "25006", "25P03", "25P04", "3D000", "55006", "42501",
];
/// Data that a column cannot hold (NUL, a number too large), and limits of the program (nesting too deep).
const REFUSED_CLASSES: [&str; 2] = ["22", "54"];

/// PostgreSQL's words of a text.
pub(super) fn words(text: Text) -> &'static str {
    text.postgres
}

/// A list as one parameter: an array, for `= ANY`.
pub(super) fn list(items: &[String]) -> &[String] {
    items
}

/// Maps an error of a statement.
pub(super) fn sql_error(error: Error) -> StoreError {
    store_error(error, judge)
}

fn judge(error: &dyn DatabaseError) -> Verdict {
    let state = error.code().unwrap_or_default();
    let class = state.get(..2).unwrap_or_default();
    if TRANSIENT_CLASSES.contains(&class) || TRANSIENT_STATES.contains(&&*state) {
        Verdict::Transient
    } else if REFUSED_CLASSES.contains(&class) {
        Verdict::Refused
    } else {
        Verdict::Unexpected
    }
}
