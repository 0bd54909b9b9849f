//! Errors of sqlx and SQLite, by what the caller can do about them.

use sqlx::{Error, error::ErrorKind, migrate::MigrateError};

use crate::error::StoreError;

/// Primary result codes after which the same call may succeed later: busy, locked, no memory, read-only,
/// interrupted, I/O error, full, cannot open, protocol (locking).
const TRANSIENT: [i32; 9] = [5, 6, 7, 8, 9, 10, 13, 14, 15];

/// Maps an error of a statement.
pub(super) fn sql_error(error: Error) -> StoreError {
    match &error {
        Error::Database(database) => match database.kind() {
            ErrorKind::UniqueViolation | ErrorKind::ForeignKeyViolation => {
                StoreError::Conflict(format!("the store's keys refuse this: {database}"))
            }
            // The lower byte is the primary code, the rest says more about it.
            _ if database.code().and_then(|code| code.parse::<i32>().ok()).is_some_and(is_transient) => {
                StoreError::Unavailable(error.into())
            }
            _ => StoreError::Corrupt(error.to_string()),
        },
        Error::Io(_) | Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed | Error::Protocol(_) => {
            StoreError::Unavailable(error.into())
        }
        _ => StoreError::Corrupt(error.to_string()),
    }
}

/// Maps an error of a statement whose foreign keys name something the caller asked for.
pub(super) fn missing(what: &'static str, id: &str) -> impl FnOnce(Error) -> StoreError {
    move |error| match error.as_database_error() {
        Some(database) if database.is_foreign_key_violation() => StoreError::not_found(what, id),
        _ => sql_error(error),
    }
}

/// Maps an error of a migration. A file of a newer version, or one whose migrations were edited, is `Corrupt`.
pub(super) fn migration_error(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => sql_error(error),
        other => StoreError::Corrupt(other.to_string()),
    }
}

fn is_transient(code: i32) -> bool {
    TRANSIENT.contains(&(code & 0xff))
}
