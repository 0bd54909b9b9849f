//! The connections of a store, for metrics.

/// Says how many connections a store has. Nothing is asked of the database for it.
pub trait ConnectionUsage: Send + Sync {
    /// The connections as they are now.
    fn connections(&self) -> Connections;
}

/// The connections of a pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Connections that wait for a call.
    pub idle: usize,
    /// Connections that a call has.
    pub busy: usize,
    /// The most connections that there may be.
    pub limit: usize,
}

impl Connections {
    /// Reads a pool of any database.
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
