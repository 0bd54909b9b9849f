//! The ports of Everturn's own servers. Programs of tools may not connect to them unless their rights name a port.

use std::{collections::BTreeSet, env};

use url::Url;

use crate::{cli::Common, connections};

/// The ports that servers have without a port in their address.
const TEMPORAL: u16 = 7233;
const POSTGRES: u16 = 5432;
const REDIS: u16 = 6379;

/// Returns the ports of the engine, the database and Redis of these options.
pub(crate) fn of(common: &Common) -> Vec<u16> {
    let temporal = connections::temporal_options(common);
    let temporal = temporal
        .ok()
        .and_then(|(options, ..)| options.target.port());
    let database = url_of(&common.database()).filter(|url| url.scheme().starts_with("postgres"));
    let database = database.map(|url| postgres_port(&url));
    let redis = common.redis.as_deref().and_then(url_of);
    let redis = redis.map(|url| url.port().unwrap_or(REDIS));
    let ports: BTreeSet<u16> = [Some(temporal.unwrap_or(TEMPORAL)), database, redis]
        .into_iter()
        .flatten()
        .collect();
    ports.into_iter().collect()
}

fn url_of(text: &str) -> Option<Url> {
    Url::parse(text).ok()
}

/// Returns the port as the driver of PostgreSQL reads it: from the query, the address, or the variable PGPORT.
fn postgres_port(url: &Url) -> u16 {
    let mut pairs = url.query_pairs();
    let in_query = pairs.find_map(|(key, value)| (key == "port").then(|| value.parse().ok())?);
    let in_environment = || env::var("PGPORT").ok()?.parse().ok();
    in_query
        .or_else(|| url.port())
        .or_else(in_environment)
        .unwrap_or(POSTGRES)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn ports(arguments: &[&str]) -> Vec<u16> {
        let command = [&["everturn"], arguments, &["config", "check"]].concat();
        of(&Cli::try_parse_from(command).unwrap().common)
    }

    #[test]
    fn the_ports_of_the_own_servers_are_known() {
        assert_eq!(ports(&["--database", "x.db"]), [TEMPORAL]);
        let usual = ["--database", "postgres://u:p@db/e", "--redis", "redis://r"];
        assert_eq!(ports(&usual), [POSTGRES, REDIS, TEMPORAL]);
        let named = [
            "--database",
            "postgresql://u:p@db:6432/e?sslmode=disable",
            "--redis",
            "rediss://:secret@r:6380/1",
        ];
        assert_eq!(ports(&named), [REDIS + 1, 6432, TEMPORAL]);
        let in_query = ["--database", "postgres:///e?host=/run/pg&port=7000"];
        assert_eq!(ports(&in_query), [7000, TEMPORAL]);
    }
}
