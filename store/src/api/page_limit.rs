//! How much is read at a time.

/// The most that one read returns: of rows, and of their bytes (invariant 10, nothing grows without a bound). The first
/// row is always returned, however large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// Rows.
    pub rows: u32,
    /// Bytes of the rows' texts and JSON.
    pub bytes: u32,
}

impl PageLimit {
    /// Bytes of a page for which nothing else is said. Default 4 MiB: 1000 ordinary events are a tenth of it, and the
    /// largest event a quarter.
    pub const DEFAULT_BYTES: u32 = 4 * 1024 * 1024;

    /// Limits a page to so many rows, and to [`PageLimit::DEFAULT_BYTES`].
    pub const fn rows(rows: u32) -> Self {
        Self {
            rows,
            bytes: Self::DEFAULT_BYTES,
        }
    }
}
