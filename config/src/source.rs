//! The location of a process's configuration. A process keeps the source, and reads the files again after a change.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

use super::{
    agents_d, checker::ReadBy, problem::ConfigError, seen::SeenFiles, settings::Config,
    sources::Sources,
};

/// The configuration file of a command without `--config`.
pub const DEFAULT_FILE: &str = "everturn.toml";

/// The files of a configuration, and the environment of the process at its start. Afterwards the process wipes secrets
/// from its environment, but a later reading of the files needs the secrets again.
pub struct Source {
    path: Option<PathBuf>,
    reader: Reader,
}

enum Reader {
    Worker {
        tools: Vec<String>,
        environment: BTreeMap<String, String>,
    },
    Gateway,
}

/// The outcome of a reading.
pub struct Reading {
    /// The files, also after a mistake in a file.
    pub files: SeenFiles,
    /// The configuration, or the mistakes.
    pub config: Result<Config, ConfigError>,
}

impl Source {
    /// The source of a worker, with the names of its compiled-in tools. Takes a copy of the environment. Without a path,
    /// the file is [`DEFAULT_FILE`] in the working directory, and may be missing.
    pub fn of_worker(path: Option<&Path>, tools: Vec<String>) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment = env::vars_os().filter_map(text);
        let environment = environment.filter(|(_, value)| !value.is_empty());
        Self {
            path: path.map(Path::to_owned),
            reader: Reader::Worker {
                tools,
                environment: environment.collect(),
            },
        }
    }

    /// The source of a gateway, which needs no secrets.
    pub fn of_gateway(path: Option<&Path>) -> Self {
        Self {
            path: path.map(Path::to_owned),
            reader: Reader::Gateway,
        }
    }

    /// Reads the files.
    pub fn read(&self) -> Reading {
        let mut files = SeenFiles::default();
        let config = self.config(&mut files);
        Reading { files, config }
    }

    fn config(&self, seen: &mut SeenFiles) -> Result<Config, ConfigError> {
        let path = self.path.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        seen.note(path);
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.path.is_none() => {
                String::new()
            }
            Err(source) => {
                return Err(ConfigError::Unreadable {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let agents = agents_d::read(path, seen)?;
        let files = [(path.display().to_string(), text)].into_iter();
        let sources = Sources::of(files.chain(agents));
        match &self.reader {
            Reader::Worker { tools, environment } => {
                let environment = |name: &str| environment.get(name).cloned();
                let read_by = ReadBy::Worker {
                    tools,
                    environment: &environment,
                };
                Config::of(&sources, read_by, seen)
            }
            Reader::Gateway => Config::of(&sources, ReadBy::Gateway, seen),
        }
    }
}
