//! Texts of SQL with a different form for each database.

/// A text of SQL for every database. A back end's `dialect::words` selects its own text.
#[derive(Debug, Clone, Copy)]
pub struct SqlText {
    /// The text for SQLite.
    pub sqlite: &'static str,
    /// The text for PostgreSQL.
    pub postgres: &'static str,
}
