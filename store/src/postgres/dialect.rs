//! PostgreSQL's own ways, for `backend/`, which is compiled once per database.

use sqlx::{PgConnection, Postgres};

pub(super) use super::PostgresStore as Database;
pub(crate) use super::parts::Parts;

/// Parameters of a statement.
pub(crate) type Arguments = <Db as sqlx::Database>::Arguments;

pub(super) type Db = Postgres;
pub(super) type Connection = PgConnection;

/// True: one statement may have several writing parts.
pub(super) const WRITES_IN_PARTS: bool = true;

/// Returns a list as one parameter: an array, for `= ANY`.
pub(super) fn list(items: &[String]) -> &[String] {
    items
}
