//! `everturn.toml` and `agents.d`: reads the files, checks them as a whole, and turns them into the settings of the
//! roles.
//!
//! Each table has a module with the table's fields, its defaults and its checks:
//!
//! - `agents`, `approvals`, `budgets`, `models`, `providers` with `profile`, `worker`, `gateway`, `limits`, `blobs`,
//!   `auth`, `audit`, `codec`, `metrics`, `postgres`, `reconciler`, `reload`, `processes`
//! - `tools`: HTTP, client and remote tools, MCP servers, skills, and the addresses that tools may connect to
//!
//! Shared modules:
//!
//! - `forms`: the forms of single values, which the types of the tables' fields name
//! - `checker`: takes the values out of the fields, and collects all mistakes
//! - `names`: the names that agents may refer to
//! - `tenants`: lists of tenants
//! - `problem`: a mistake and its position
//!
//! `source` names the files, and `agents_d` reads the folder. `sources` has the texts and their positions, and `merge`
//! makes one table of them. `file` puts the tables together, and the result is in `settings`. `seen` notices a change of
//! a file, and `reloaded` makes the next configuration of a running process. The files have no secrets, only the names
//! of environment variables with secrets.
//!
//! Must not be here: the command line and its variables (`worker/src/cli/`), and connections to servers.

mod agents;
mod agents_d;
mod approvals;
mod audit;
mod auth;
mod blobs;
mod budgets;
mod caller;
mod checker;
mod codec;
mod file;
mod forms;
mod gateway;
mod headers;
mod limits;
mod merge;
mod metrics;
mod models;
mod names;
mod postgres;
mod problem;
mod processes;
mod profile;
mod providers;
mod reconciler;
mod reload;
mod reloaded;
mod seen;
mod settings;
mod source;
mod sources;
mod tenants;
#[cfg(test)]
mod tests;
mod tools;
mod worker;

use std::path::Path;

use serde::Deserialize as _;

pub use self::{
    agents::DEFAULT_TOOL_TIMEOUT,
    checker::ReadBy,
    codec::CodecConfig,
    problem::{ConfigError, Problem},
    reloaded::{Changes, Refused},
    seen::SeenFiles,
    settings::{Config, DEMO_PROVIDER},
    source::{DEFAULT_FILE, Reading, Source},
    worker::{MAX_LEASE, WorkerLimits},
};
use self::{checker::Checker, file::File, sources::Sources};

impl Config {
    /// Reads the file at `path`, and the folder `agents.d` beside the file. Without a path, reads ./everturn.toml if the
    /// file exists. `tools` are the names of compiled-in tools, which agents may use besides the tools of the file.
    pub fn load(path: Option<&Path>, tools: &[String]) -> Result<Self, ConfigError> {
        Source::of_worker(path, tools.to_vec()).read().config
    }

    /// Reads the configuration for a gateway.
    pub fn load_for_gateway(path: Option<&Path>) -> Result<Self, ConfigError> {
        Source::of_gateway(path).read().config
    }

    /// Reads the text of a file.
    pub fn parse(text: &str, file_name: &str, read_by: ReadBy<'_>) -> Result<Self, ConfigError> {
        let sources = Sources::of([(file_name.to_owned(), text.to_owned())]);
        Self::of(&sources, read_by, &mut SeenFiles::default())
    }

    fn of(
        sources: &Sources,
        read_by: ReadBy<'_>,
        seen: &mut SeenFiles,
    ) -> Result<Self, ConfigError> {
        let tables = merge::tables(sources).map_err(ConfigError::Wrong)?;
        let file = File::deserialize(toml::Deserializer::from(tables)).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            ConfigError::Wrong(vec![sources.problem(at, error.message().to_owned())])
        })?;
        let mut checker = Checker::new(sources, read_by, seen);
        let config = Self {
            hash: sources.hash(),
            operators: merge::operators(sources),
            ..file.check(&mut checker, read_by)
        };
        checker.finish(config)
    }
}
