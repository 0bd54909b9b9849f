//! The connections of a store, for metrics.

/// Counts a store's connections, without a query to the database.
pub trait ConnectionUsage: Send + Sync {
    /// Returns the present number of connections.
    fn connections(&self) -> Connections;
}

/// The connections of a pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Connections without a call.
    pub idle: usize,
    /// Connections in use by a call.
    pub busy: usize,
    /// The largest size of the pool.
    pub limit: usize,
}

impl Connections {
    /// Counts the connections of any database's pool.
    pub(crate) fn of<DB: sqlx::Database>(pool: &sqlx::Pool<DB>) -> Self {
        let to_usize = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let (open, idle) = (to_usize(pool.size()), pool.num_idle());
        Self {
            idle,
            busy: open.saturating_sub(idle),
            limit: to_usize(pool.options().get_max_connections()),
        }
    }
}
