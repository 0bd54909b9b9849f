//! Mistakes of a configuration, with their positions in the files.

use std::{fmt, io, path::PathBuf};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The named file cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// Why the file cannot be read.
        source: io::Error,
    },
    /// The file has mistakes. The error lists every mistake, so an operator can correct the whole file at once.
    #[error("{}", List(.0))]
    Wrong(Vec<Problem>),
}

/// A mistake and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `file:line:column`. Lines and columns count from 1.
    pub location: String,
    /// The key, like `agents.default.max_steps`. `None` when the file is not TOML, or when a whole table is missing.
    pub key: Option<String>,
    /// The mistake, and how to correct the value.
    pub message: String,
}

struct List<'a>(&'a [Problem]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration cannot be used")?;
        for problem in self.0 {
            write!(f, "\n  {}: {}", problem.location, problem.message)?;
        }
        Ok(())
    }
}
