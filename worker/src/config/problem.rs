//! What is wrong with a configuration, and where.

use std::{
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// Something in the file is wrong. All problems are listed, so that they can be corrected at once.
    #[error("{}", List(.0))]
    Wrong(Vec<Problem>),
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `file:line:column`, both counted from 1.
    pub place: String,
    /// The key, like `agents.default.max_steps`. Absent where the file is no TOML, or a whole table is missing.
    pub key: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

struct List<'a>(&'a [Problem]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration cannot be used")?;
        for problem in self.0 {
            write!(f, "\n  {}: {}", problem.place, problem.message)?;
        }
        Ok(())
    }
}

/// The text of a file. Problems find their places in it.
#[derive(Clone, Copy)]
pub(super) struct SourceText<'a> {
    pub(super) file_name: &'a str,
    pub(super) text: &'a str,
}

impl SourceText<'_> {
    /// The problem of the value that begins at this byte.
    pub(super) fn problem(&self, at: usize, message: String) -> Problem {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Problem {
            place: format!("{}:{line}:{column}", self.file_name),
            key: self.key_at(at),
            message,
        }
    }

    /// A path that is written in the file: relative to the file's own folder.
    pub(super) fn beside(&self, path: &Path) -> PathBuf {
        Path::new(self.file_name).with_file_name(path)
    }

    fn key_at(&self, at: usize) -> Option<String> {
        let table = DeTable::parse(self.text).ok()?;
        let mut keys = Vec::new();
        find_in_table(table.get_ref(), at, &mut keys).then(|| keys.join("."))
    }
}

/// Puts the keys on the way to the value at this byte into `keys`. False when it is not in the table.
fn find_in_table(table: &DeTable<'_>, at: usize, keys: &mut Vec<String>) -> bool {
    for (key, value) in table {
        keys.push(key.get_ref().to_string());
        // The span of a table is its header only, so what it holds is searched first.
        let is_here = find_in_value(value.get_ref(), at, keys)
            || contains(&key.span(), at)
            || contains(&value.span(), at);
        if is_here {
            return true;
        }
        keys.pop();
    }
    false
}

fn find_in_value(value: &DeValue<'_>, at: usize, keys: &mut Vec<String>) -> bool {
    match value {
        DeValue::Table(table) => find_in_table(table, at, keys),
        DeValue::Array(items) => items
            .iter()
            .any(|item| find_in_value(item.get_ref(), at, keys)),
        _ => false,
    }
}

fn contains(span: &Range<usize>, at: usize) -> bool {
    span.contains(&at)
}
