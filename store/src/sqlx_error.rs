//! Errors of sqlx, ordered by the caller's remedy.

use sqlx::{
    Error,
    error::{DatabaseError, ErrorKind},
    migrate::MigrateError,
    postgres::PgDatabaseError,
};

use crate::error::StoreError;

/// PostgreSQL's name of the foreign key from an agent execution to the definition of its agent. A turn violates the key
/// when an unused definition is removed at the moment at which the turn begins. SQLite has one writer at a time, so the
/// moment does not exist there.
const OF_DEFINITION: &str = "agent_executions_agent_hash_fkey";

/// The meaning of a database's error for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The call may succeed later.
    Transient,
    /// The disk is full.
    Full,
    /// The database cannot hold the data.
    Refused,
    /// The database is broken, or the file is no database.
    Corrupt,
    /// Any error outside the known classes.
    Unexpected,
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match &error {
            // The turn stores the definition again when the call is repeated.
            Error::Database(database) if database.constraint() == Some(OF_DEFINITION) => {
                Self::Unavailable(error.into())
            }
            Error::Database(database) => match (database.kind(), verdict(database.as_ref())) {
                (ErrorKind::UniqueViolation | ErrorKind::ForeignKeyViolation, _) => {
                    Self::Conflict(format!("the store's keys refuse this: {database}"))
                }
                (_, Verdict::Transient) => Self::Unavailable(error.into()),
                (_, Verdict::Full) => Self::DiskFull(error.into()),
                (_, Verdict::Refused) => {
                    Self::Conflict(format!("the store cannot hold this: {database}"))
                }
                (_, Verdict::Corrupt) => Self::Corrupt(error.to_string()),
                (_, Verdict::Unexpected) => Self::Unexpected(error.into()),
            },
            // `Tls` and `Configuration` are temporary: an operator replaces a certificate or its key, and the file is
            // half written.
            Error::Configuration(_)
            | Error::Io(_)
            | Error::Tls(_)
            | Error::PoolTimedOut
            | Error::PoolClosed
            | Error::WorkerCrashed
            | Error::BeginFailed
            | Error::Protocol(_) => Self::Unavailable(error.into()),
            _ => Self::Corrupt(error.to_string()),
        }
    }
}

/// A database that a build from before the first release made, or a database whose migrations were edited, is `Corrupt`.
impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            MigrateError::VersionMissing(version) => Self::Corrupt(format!(
                "the tables have version {version} of a build from before the first release, which this Everturn \
                 cannot bring up to date; start with an empty database"
            )),
            other => Self::Corrupt(other.to_string()),
        }
    }
}

fn verdict(error: &dyn DatabaseError) -> Verdict {
    let code = error.code().unwrap_or_default();
    if error.try_downcast_ref::<PgDatabaseError>().is_some() {
        postgres::verdict(&code)
    } else {
        sqlite::verdict(&code)
    }
}

/// SQLSTATEs of PostgreSQL.
mod postgres {
    use super::Verdict;

    /// Temporary classes: connection, transaction rollback (serialization, deadlock), resources, operator (shut-down,
    /// statement time-out), system (I/O); and login, because the password may be rotating.
    const TRANSIENT_CLASSES: [&str; 6] = ["08", "28", "40", "53", "57", "58"];
    /// Temporary single states: lock time-out, read-only after a fail-over, transaction ended by a time-out, no such
    /// database yet, object in use, a privilege that was not granted yet.
    const TRANSIENT_STATES: [&str; 7] = [
        "55P03", "25006", "25P03", "25P04", "3D000", "55006", "42501",
    ];
    /// Broken data or a broken index.
    const CORRUPT_STATES: [&str; 2] = ["XX001", "XX002"];
    /// Data outside a column's range (NUL, a number too large), and limits of the program (nesting too deep).
    const REFUSED_CLASSES: [&str; 2] = ["22", "54"];

    /// The disk of the server is full.
    const DISK_FULL: &str = "53100";

    pub(super) fn verdict(state: &str) -> Verdict {
        let class = state.get(..2).unwrap_or_default();
        if state == DISK_FULL {
            Verdict::Full
        } else if TRANSIENT_CLASSES.contains(&class) || TRANSIENT_STATES.contains(&state) {
            Verdict::Transient
        } else if REFUSED_CLASSES.contains(&class) {
            Verdict::Refused
        } else if CORRUPT_STATES.contains(&state) {
            Verdict::Corrupt
        } else {
            Verdict::Unexpected
        }
    }
}

/// Result codes of SQLite.
mod sqlite {
    use super::Verdict;

    /// Temporary primary result codes: busy, locked, no memory, read-only, interrupted, I/O error, cannot open, protocol
    /// (locking).
    const TRANSIENT: [i32; 8] = [5, 6, 7, 8, 9, 10, 14, 15];
    /// Primary result code: the disk is full, or the file has reached its largest size.
    const FULL: i32 = 13;
    /// Primary result codes: a broken file, or a file in another format.
    const CORRUPT: [i32; 2] = [11, 26];
    /// Primary result code: a string or a blob over the limit (1 GB).
    const TOO_BIG: i32 = 18;

    pub(super) fn verdict(code: &str) -> Verdict {
        // The lower byte is the primary code. The other bytes are details.
        match code.parse::<i32>().map(|code| code & 0xff) {
            Ok(code) if TRANSIENT.contains(&code) => Verdict::Transient,
            Ok(FULL) => Verdict::Full,
            Ok(code) if CORRUPT.contains(&code) => Verdict::Corrupt,
            Ok(TOO_BIG) => Verdict::Refused,
            _ => Verdict::Unexpected,
        }
    }
}
