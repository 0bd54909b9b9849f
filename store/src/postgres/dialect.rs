//! What PostgreSQL does its own way, for `backend/`, which is compiled for each database.

use sqlx::{PgConnection, Postgres};

pub(super) use super::PostgresStore as Database;
pub(crate) use super::parts::Parts;
use crate::sql_text::SqlText;

pub(super) type Db = Postgres;
pub(super) type Connection = PgConnection;

/// True: a statement may have several parts that write.
pub(super) const WRITES_IN_PARTS: bool = true;

/// PostgreSQL's form of a text.
pub(super) fn words(text: SqlText) -> &'static str {
    text.postgres
}

/// A list as one parameter: an array, for `= ANY`.
pub(super) fn list(items: &[String]) -> &[String] {
    items
}
