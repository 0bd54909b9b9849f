//! `[postgres]`: the pool of connections of one process.

use std::time::Duration;

use everturn_store::PostgresOptions;
use serde::Deserialize;
use toml::Spanned;

use super::checker::Checker;

/// More than any server has connections.
const MAX_CONNECTIONS: u32 = 10_000;
/// Short enough for tests.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest wait for a connection. A call gives up after this time and `statement_timeout` together.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PostgresTable {
    max_connections: Option<Spanned<u32>>,
    acquire_timeout: Option<Spanned<String>>,
}

impl PostgresTable {
    /// The options with what this table sets.
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
