//! Texts of SQL that the two databases write differently.

/// A text in the words of each database; a back end's `dialect::words` takes its own.
#[derive(Debug, Clone, Copy)]
pub struct SqlText {
    /// The text for SQLite.
    pub sqlite: &'static str,
    /// The text for PostgreSQL.
    pub postgres: &'static str,
}
