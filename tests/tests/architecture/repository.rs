//! The files of the repository, and the prose in them: documents, and the comments of the code.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders of what was built, installed or kept.
const NOT_OURS: [&str; 5] = ["target", ".git", ".tools", ".data", "node_modules"];

/// A file of the repository, with its path from the root.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A line of a document, or the comment in a line of code.
pub(crate) struct Prose<'a> {
    /// `path:line`.
    pub(crate) place: String,
    pub(crate) text: &'a str,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The paths of all files, from the root, in order.
pub(crate) fn paths() -> Vec<String> {
    let mut found = Vec::new();
    collect(&root(), &mut found);
    let mut paths: Vec<_> = found
        .iter()
        .map(|path| path.strip_prefix(root()).unwrap().display().to_string())
        .collect();
    paths.sort();
    paths
}

/// The files with one of these endings.
pub(crate) fn files(endings: &[&str]) -> Vec<Source> {
    let is_wanted = |path: &String| endings.iter().any(|ending| path.ends_with(ending));
    let read = |path: String| Source {
        text: fs::read_to_string(root().join(&path)).unwrap(),
        path,
    };
    paths().into_iter().filter(is_wanted).map(read).collect()
}

/// True for a file of code that only tests use.
pub(crate) fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("tests.rs")
}

/// The code of a file before its module of tests.
pub(crate) fn without_tests(code: &str) -> &str {
    let begins_tests = |(at, mark): &(usize, &str)| {
        let mut behind = code[at + mark.len()..].lines();
        behind
            .find(|line| !line.starts_with("#["))
            .is_some_and(|line| line.starts_with("mod ") && line.contains(" {"))
    };
    let mut marks = code.match_indices("#[cfg(test)]\n");
    marks.find(begins_tests).map_or(code, |(at, _)| &code[..at])
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !NOT_OURS.contains(&name.as_str()) {
                collect(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

impl Source {
    /// Each line of a document, or each comment of code in a language whose comments are known by the file's ending.
    pub(crate) fn prose(&self) -> impl Iterator<Item = Prose<'_>> {
        let mark = match self.path.rsplit(['.', '/']).next() {
            Some("md") => None,
            Some("rs" | "proto") => Some("//"),
            _ => Some("#"),
        };
        self.text.lines().enumerate().filter_map(move |(at, line)| {
            let text = match mark {
                None => Some(line),
                Some(mark) => comment(line, mark),
            };
            let place = format!("{}:{}", self.path, at + 1);
            text.map(|text| Prose { place, text })
        })
    }
}

/// The comment in a line: behind the first mark that is no part of a string or of another word.
fn comment<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let mut marks = line.match_indices(mark);
    let (at, _) = marks.find(|(at, _)| {
        let before = &line[..*at];
        let is_in_string = before.matches('"').count() % 2 == 1;
        !is_in_string && (before.is_empty() || before.ends_with(' '))
    })?;
    Some(&line[at + mark.len()..])
}
