//! Errors of sqlx, by what the caller can do about them. What a database's own codes mean is its `dialect`'s.

use sqlx::{
    Error,
    error::{DatabaseError, ErrorKind},
    migrate::MigrateError,
};

use crate::error::StoreError;

/// What an error that a database reports means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The same call may succeed later.
    Transient,
    /// The database cannot hold what it was given.
    Refused,
    /// Anything else.
    Unexpected,
}

/// Maps an error of a statement; `judge` knows the database's codes.
pub(crate) fn store_error(error: Error, judge: fn(&dyn DatabaseError) -> Verdict) -> StoreError {
    match &error {
        Error::Database(database) => match (database.kind(), judge(database.as_ref())) {
            (ErrorKind::UniqueViolation | ErrorKind::ForeignKeyViolation, _) => {
                StoreError::Conflict(format!("the store's keys refuse this: {database}"))
            }
            (_, Verdict::Transient) => StoreError::Unavailable(error.into()),
            (_, Verdict::Refused) => {
                StoreError::Conflict(format!("the store cannot hold this: {database}"))
            }
            (_, Verdict::Unexpected) => StoreError::Corrupt(error.to_string()),
        },
        Error::Io(_)
        | Error::Tls(_)
        | Error::PoolTimedOut
        | Error::PoolClosed
        | Error::WorkerCrashed
        | Error::BeginFailed
        | Error::Protocol(_) => StoreError::Unavailable(error.into()),
        _ => StoreError::Corrupt(error.to_string()),
    }
}

/// Maps an error of a migration. A database of a newer version, or one whose migrations were edited, is `Corrupt`.
pub(crate) fn migration_error(
    error: MigrateError,
    sql_error: fn(Error) -> StoreError,
) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => sql_error(error),
        MigrateError::VersionMissing(version) => StoreError::Corrupt(format!(
            "its tables (version {version}) are of a newer Everturn than this one"
        )),
        other => StoreError::Corrupt(other.to_string()),
    }
}
