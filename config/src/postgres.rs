//! `[postgres]`: the connection pool of one process.

use everturn_store::PostgresOptions;
use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{Number, SECOND, Time, Written},
};

/// No server has more connections.
type Connections = Number<1, 10_000>;
/// The wait for a connection. A database call fails after this wait plus `statement_timeout`. The shortest wait is for
/// tests.
type AcquireTimeout = Time<100, { 10 * SECOND }>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PostgresTable {
    max_connections: Option<Written<Connections>>,
    acquire_timeout: Option<Written<AcquireTimeout>>,
}

impl PostgresTable {
    /// Returns the pool's options with this table's values.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> PostgresOptions {
        let default = PostgresOptions::default();
        PostgresOptions {
            max_connections: check.value_or(&self.max_connections, default.max_connections),
            acquire_timeout: check.value_or(&self.acquire_timeout, default.acquire_timeout),
            ..default
        }
    }
}
