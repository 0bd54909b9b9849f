//! The size of one read.

/// The limits of one read: rows, and bytes of rows (invariant 10, nothing grows without a bound). A read always returns
/// the first row, even a row above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// Rows.
    pub rows: u32,
    /// Bytes of the rows' texts and JSON.
    pub bytes: u32,
}

impl PageLimit {
    /// The default bytes of a page. Default 4 MiB: 1000 ordinary events need a tenth, and the largest event a quarter.
    pub const DEFAULT_BYTES: u32 = 4 * 1024 * 1024;

    /// Limits a page to `rows` rows and [`PageLimit::DEFAULT_BYTES`].
    pub const fn rows(rows: u32) -> Self {
        Self {
            rows,
            bytes: Self::DEFAULT_BYTES,
        }
    }
}
