//! The texts of a configuration, `everturn.toml` and the files of `agents.d`, and the positions of values in them.
//!
//! A position is a number of bytes in all texts together: each text begins behind the texts before it. Therefore a
//! position alone says in which file a value is.
//!
//! Must not be here: the reading of files (`agents_d`, `seen`), and the tables (`merge`).

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::problem::Problem;

/// The texts of a configuration. The first text is that of `everturn.toml`.
pub(super) struct Sources {
    files: Vec<SourceFile>,
}

/// A file, and the position of its first byte.
pub(super) struct SourceFile {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) begin: usize,
}

impl Sources {
    /// Returns the texts in the order of the files, each with the name of its file.
    pub(super) fn of(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut begin = 0;
        let with_begin = |(name, text): (String, String)| {
            let file = SourceFile { name, text, begin };
            // The position behind the last byte belongs to the file, too.
            begin += file.text.len() + 1;
            file
        };
        Self {
            files: files.into_iter().map(with_begin).collect(),
        }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// Returns the SHA-256 of all texts, in hexadecimal digits. Without `agents.d`, the hash is that of the one file.
    pub(super) fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for file in &self.files {
            hash.update(&file.text);
        }
        format!("{:x}", hash.finalize())
    }

    /// Returns the problem of the value that begins at the position `at`.
    pub(super) fn problem(&self, at: usize, message: String) -> Problem {
        let key = self.keys_at(at).map(|keys| keys.join("."));
        Problem {
            location: self.location(at),
            key,
            message,
        }
    }

    /// Returns `file:line:column` of a position.
    pub(super) fn location(&self, at: usize) -> String {
        self.file_at(at).map_or_else(String::new, |file| {
            let before = file.text.get(..at - file.begin).unwrap_or(&file.text);
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            format!("{}:{line}:{column}", file.name)
        })
    }

    /// Resolves a path. A relative path starts at the folder of the file with the position `at`.
    pub(super) fn beside(&self, at: usize, path: &Path) -> PathBuf {
        let file = self.file_at(at).map_or("", |file| &file.name);
        Path::new(file).with_file_name(path)
    }

    /// Returns the key of a value, without the keys of its tables.
    pub(super) fn key_at<T>(&self, at: &Spanned<T>) -> Option<String> {
        self.keys_at(at.span().start)?.pop()
    }

    fn file_at(&self, at: usize) -> Option<&SourceFile> {
        self.files.iter().rfind(|file| file.begin <= at)
    }

    fn keys_at(&self, at: usize) -> Option<Vec<String>> {
        let file = self.file_at(at)?;
        let table = DeTable::parse(&file.text).ok()?;
        let mut keys = Vec::new();
        find_in_table(table.get_ref(), at - file.begin, &mut keys).then_some(keys)
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
