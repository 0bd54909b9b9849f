//! Compatible versions of the tables: this Everturn's own version, and newer versions with a low enough
//! `oldest_version`.
//!
//! A migration only makes additions that earlier versions do not need. Earlier versions continue to work, can restart,
//! and an operator can roll back to them. A later release removes what only earlier versions need, in a
//! migration that raises `schema_range.oldest_version`.
//!
//! Must not be here: the migration of a database (`postgres/schema.rs`, `sqlite/mod.rs`).

use std::cmp::Ordering;

use sqlx::migrate::Migrator;

use crate::{api::Result, error::StoreError};

/// Selects the version of the tables.
pub(crate) const VERSION: &str = "SELECT MAX(version) FROM _sqlx_migrations WHERE success";
/// Selects the version of the oldest Everturn that works with the tables.
pub(crate) const OLDEST_VERSION: &str = "SELECT oldest_version FROM schema_range";

/// The version of tables, compared with this Everturn's own version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// The tables are older or missing. `everturn migrate` updates the tables.
    Older(i64),
    /// The tables have the version of this Everturn.
    Current,
    /// The tables are newer, and allow this Everturn.
    Newer,
}

/// Compares the tables' version with this Everturn's version. `oldest` is the result of [`OLDEST_VERSION`], and is
/// needed if `found` is newer. Incompatible tables are an error with a remedy.
pub(crate) fn compare(found: i64, oldest: Option<i64>, own: i64) -> Result<Tables> {
    match found.cmp(&own) {
        Ordering::Less => Ok(Tables::Older(found)),
        Ordering::Equal => Ok(Tables::Current),
        Ordering::Greater if oldest.is_some_and(|oldest| oldest <= own) => Ok(Tables::Newer),
        Ordering::Greater => Err(StoreError::Corrupt(format!(
            "the tables have version {found}, newer than this Everturn with version {own}; update Everturn"
        ))),
    }
}

/// Returns the newest version in a migrator.
pub(crate) fn newest(migrator: &Migrator) -> i64 {
    let versions = migrator.iter().map(|migration| migration.version);
    versions.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_tables_are_worked_with_when_they_say_so() {
        assert_eq!(compare(0, None, 20).unwrap(), Tables::Older(0));
        assert_eq!(compare(10, None, 20).unwrap(), Tables::Older(10));
        assert_eq!(compare(20, Some(10), 20).unwrap(), Tables::Current);
        assert_eq!(compare(30, Some(10), 20).unwrap(), Tables::Newer);
        assert_eq!(compare(30, Some(20), 20).unwrap(), Tables::Newer);
        for oldest in [Some(21), Some(30), None] {
            let refused = compare(30, oldest, 20).unwrap_err().to_string();
            assert!(refused.contains("newer than this Everturn"), "{refused}");
        }
    }

    /// The build of an index locks its table against writes, unless the index is built concurrently. The tables of the first
    /// migration have no rows yet.
    #[test]
    fn large_indexes_are_built_concurrently() {
        static POSTGRES: Migrator = sqlx::migrate!("./migrations/postgres");
        for migration in POSTGRES.iter().skip(1) {
            let text = migration.sql.as_str();
            let of_new_tables = |line: &&str| {
                let table = line
                    .split(" ON ")
                    .nth(1)
                    .and_then(|rest| rest.split([' ', '(']).next());
                table.is_some_and(|table| text.contains(&format!("CREATE TABLE {table} (")))
            };
            let blocking = text
                .lines()
                .filter(|line| {
                    line.starts_with("CREATE INDEX") || line.starts_with("CREATE UNIQUE INDEX")
                })
                .filter(|line| !line.contains(" CONCURRENTLY ") && !of_new_tables(line));
            let blocking: Vec<_> = blocking.collect();
            assert!(blocking.is_empty(), "{}: {blocking:?}", migration.version);
        }
    }
}
