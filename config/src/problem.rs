//! Mistakes of a configuration, with their positions in the file.

use std::{
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

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

/// The text of a file, in which problems find their positions.
#[derive(Clone, Copy)]
pub(super) struct SourceText<'a> {
    pub(super) file_name: &'a str,
    pub(super) text: &'a str,
}

impl SourceText<'_> {
    /// Returns the problem of the value that begins at byte `at`.
    pub(super) fn problem(&self, at: usize, message: String) -> Problem {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Problem {
            location: format!("{}:{line}:{column}", self.file_name),
            key: self.keys_at(at).map(|keys| keys.join(".")),
            message,
        }
    }

    /// Resolves a path of the file. A relative path starts at the file's own folder.
    pub(super) fn beside(&self, path: &Path) -> PathBuf {
        Path::new(self.file_name).with_file_name(path)
    }

    /// Returns the key of a value, without the keys of its tables.
    pub(super) fn key_at<T>(&self, at: &Spanned<T>) -> Option<String> {
        self.keys_at(at.span().start)?.pop()
    }

    fn keys_at(&self, at: usize) -> Option<Vec<String>> {
        let table = DeTable::parse(self.text).ok()?;
        let mut keys = Vec::new();
        find_in_table(table.get_ref(), at, &mut keys).then_some(keys)
    }
}

/// Adds the keys that lead to the value at byte `at` to `keys`. Returns false when the table does not contain the
/// value.
fn find_in_table(table: &DeTable<'_>, at: usize, keys: &mut Vec<String>) -> bool {
    for (key, value) in table {
        keys.push(key.get_ref().to_string());
        // The span of a table covers its header only. Therefore the table's content is searched first.
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
