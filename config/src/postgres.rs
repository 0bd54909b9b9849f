//! `[postgres]`: the connection pool of one process.

use std::time::Duration;

use everturn_store::PostgresOptions;
use serde::Deserialize;
use toml::Spanned;

use super::checker::Checker;

/// The largest pool. No server has more connections.
const MAX_CONNECTIONS: u32 = 10_000;
/// The shortest duration, for tests.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest wait for a connection. A database call fails after this wait plus `statement_timeout`.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PostgresTable {
    max_connections: Option<Spanned<u32>>,
    acquire_timeout: Option<Spanned<String>>,
}

impl PostgresTable {
    /// Returns the pool's options with this table's values.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> PostgresOptions {
        let default = PostgresOptions::default();
        PostgresOptions {
            max_connections: check.number(
                "max_connections",
                &self.max_connections,
                default.max_connections,
                1..=MAX_CONNECTIONS,
            ),
            acquire_timeout: check.duration(
                "acquire_timeout",
                &self.acquire_timeout,
                default.acquire_timeout,
                SHORTEST..=LONGEST,
            ),
            ..default
        }
    }
}
