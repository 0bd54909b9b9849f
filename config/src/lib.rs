//! `everturn.toml`: reads the file, checks it as a whole, and turns it into the settings of the roles.
//!
//! Each table has a module with the table's fields, its defaults and its checks:
//!
//! - `agents`, `approvals`, `budgets`, `models`, `providers`, `worker`, `gateway`, `limits`, `blobs`, `auth`, `audit`,
//!   `codec`, `postgres`, `reconciler`, `processes`
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
//! `file` puts the tables together, and the result is in `settings`. The file has no secrets, only the names of
//! environment variables with secrets.
//!
//! Must not be here: the command line and its variables (`worker/src/cli/`), and connections to servers.

mod agents;
mod approvals;
mod audit;
mod auth;
mod blobs;
mod budgets;
mod checker;
mod codec;
mod file;
mod forms;
mod gateway;
mod limits;
mod models;
mod names;
mod postgres;
mod problem;
mod processes;
mod providers;
mod reconciler;
mod settings;
mod tenants;
#[cfg(test)]
mod tests;
mod tools;
mod worker;

use std::{fs, io, path::Path};

use sha2::{Digest, Sha256};

pub use self::{
    agents::DEFAULT_TOOL_TIMEOUT,
    checker::ReadBy,
    codec::CodecConfig,
    problem::{ConfigError, Problem},
    settings::{Config, DEMO_PROVIDER},
    worker::{MAX_LEASE, WorkerLimits},
};
use self::{checker::Checker, file::File, problem::SourceText};

/// The configuration file of a command without `--config`.
pub const DEFAULT_FILE: &str = "everturn.toml";

impl Config {
    /// Reads the file at `path`. Without a path, reads ./everturn.toml if it exists; otherwise the built-in defaults
    /// apply. `tools` are the names of compiled-in tools, which agents may use besides the tools of the file.
    pub fn load(path: Option<&Path>, tools: &[String]) -> Result<Self, ConfigError> {
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::load_by(
            path,
            ReadBy::Worker {
                tools,
                environment: &environment,
            },
        )
    }

    /// Reads the configuration for a gateway.
    pub fn load_for_gateway(path: Option<&Path>) -> Result<Self, ConfigError> {
        Self::load_by(path, ReadBy::Gateway)
    }

    fn load_by(path: Option<&Path>, read_by: ReadBy<'_>) -> Result<Self, ConfigError> {
        let (path, is_named) = path.map_or((Path::new(DEFAULT_FILE), false), |path| (path, true));
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &path.display().to_string(), read_by),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => {
                Self::parse("", DEFAULT_FILE, read_by)
            }
            Err(source) => Err(ConfigError::Unreadable {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Reads the text of a file.
    pub fn parse(text: &str, file_name: &str, read_by: ReadBy<'_>) -> Result<Self, ConfigError> {
        let source = SourceText { file_name, text };
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            ConfigError::Wrong(vec![source.problem(at, error.message().to_owned())])
        })?;
        let mut checker = Checker::new(source, read_by);
        let config = Self {
            hash: format!("{:x}", Sha256::digest(text)),
            ..file.check(&mut checker, read_by)
        };
        checker.finish(config)
    }
}
