//! What a comment or a document names exists: documents and their sections, source files, modules, invariants. Nothing is
//! cited that only some of us can read.
//!
//! The migrations are left out: their text cannot change, because sqlx compares a checksum of it with the database's.

use std::collections::BTreeSet;

use crate::repository::{Prose, Source, files, paths, read};

/// Documents, and code whose comments are prose.
const PROSE: [&str; 8] = [
    ".md", ".rs", ".proto", ".toml", ".py", ".sh", ".yml", "Makefile",
];

/// Books that are not in this repository.
const ELSEWHERE: [&str; 3] = ["FACTS", "DESIGN", "REQUIREMENTS"];

/// Files that documents tell a reader to make, or that a run makes.
const MADE_BY_OTHERS: [&str; 2] = ["main.rs", "src/main.rs"];

/// Runs a check over every line of prose, and fails with all that it found.
fn check(what: &str, find: impl Fn(&Prose<'_>) -> Vec<String>) {
    let mut wrong = Vec::new();
    for source in files(&PROSE) {
        for prose in source.prose() {
            for finding in find(&prose) {
                wrong.push(format!("{}: {finding}", prose.place));
            }
        }
    }
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect()
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn no_requirement_is_cited_by_a_number_that_is_not_here() {
    // A capital letter and a number: an item of a list that is not in the repository.
    let is_id = |word: &&str| {
        let is_section = matches!(word.as_bytes()[0], b'A'..=b'E');
        is_section && (2..=3).contains(&word.len()) && is_number(&word[1..])
    };
    check("name the rule or the fact itself", |prose| {
        let words = words(prose.text);
        let ids = words.iter().filter(|word| is_id(word));
        let books = words.iter().filter(|word| ELSEWHERE.contains(word));
        let traps = words
            .windows(2)
            .filter(|pair| matches!(pair[0], "trap" | "traps") && is_number(pair[1]));
        ids.chain(books)
            .map(|word| (*word).to_owned())
            .chain(traps.map(|pair| pair.join(" ")))
            .collect()
    });
}

#[test]
fn invariants_that_are_cited_are_in_the_list() {
    let architecture = read("ARCHITECTURE.md");
    let list = architecture.split("\n## Invariants\n").nth(1).unwrap();
    let list = list.split("\n## ").next().unwrap();
    let known: BTreeSet<_> = list
        .lines()
        .filter_map(|line| line.split_once(". **"))
        .map(|(number, _)| number)
        .collect();
    assert!(known.len() >= 10, "{known:?}");
    check("ARCHITECTURE.md has no such invariant", |prose| {
        let words = words(prose.text);
        let cited = words.iter().enumerate().flat_map(|(at, word)| {
            let numbers = words[at + 1..]
                .iter()
                .filter(|word| **word != "and")
                .take_while(|word| is_number(word));
            let count = match word.to_lowercase().as_str() {
                "invariant" => 1,
                "invariants" => usize::MAX,
                _ => 0,
            };
            numbers.take(count)
        });
        cited
            .filter(|number| !known.contains(**number))
            .map(|number| format!("invariant {number}"))
            .collect()
    });
}

#[test]
fn files_that_are_named_exist() {
    let known: BTreeSet<_> = paths().iter().map(|path| without_src(path)).collect();
    let is_known = |name: &str| {
        let name = without_src(name);
        let end = format!("/{name}");
        let folder = format!("{}/", name.trim_end_matches('/'));
        known
            .iter()
            .any(|path| *path == name || path.ends_with(&end) || path.starts_with(&folder))
    };
    check("there is no such file", |prose| {
        let is_part = |c: char| c.is_alphanumeric() || "_-./<>{}*…".contains(c);
        let tokens = prose.text.split(|c| !is_part(c));
        let names = tokens
            .map(|token| token.trim_start_matches("../").trim_end_matches(['.', '/']))
            .filter(|token| names_a_file(token) && !MADE_BY_OTHERS.contains(token));
        names
            .filter(|name| !is_known(name))
            .map(str::to_owned)
            .collect()
    });
}

/// True for what can only be meant as a file of this repository.
fn names_a_file(token: &str) -> bool {
    let is_pattern = token.contains(['<', '>', '{', '}', '*', '…']);
    let is_absolute = token.starts_with(['/', '.', '-']);
    let has_ending = [".rs", ".proto", ".md"]
        .iter()
        .any(|ending| token.len() > ending.len() && token.ends_with(ending));
    !is_pattern && !is_absolute && (has_ending || token.starts_with("docs/"))
}

/// Prose leaves `src` out.
fn without_src(path: &str) -> String {
    path.replace("/src/", "/")
}

#[test]
fn sections_that_are_named_exist() {
    check("the document has no such section", |prose| {
        let mut missing = Vec::new();
        for (document, title) in cited_sections(prose.text) {
            let source = files(&[".md"]).into_iter().find(|source| {
                source.path == document || source.path.ends_with(&format!("/{document}"))
            });
            let has_section = source.is_some_and(|source| {
                source
                    .text
                    .lines()
                    .any(|line| line.trim_start_matches(['#', '*', ' ']).starts_with(title))
            });
            if !has_section {
                missing.push(format!("{document}, \"{title}\""));
            }
        }
        missing
    });
}

/// The document and the section of each citation: a quoted title behind a document's name, as in
/// ARCHITECTURE.md, "Invariants".
fn cited_sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(".md").filter_map(move |(at, _)| {
        let (before, after) = text.split_at(at + ".md".len());
        let after = after.strip_prefix('`').unwrap_or(after);
        let quoted = [", \"", " (\"", ": \""]
            .iter()
            .find_map(|opening| after.strip_prefix(opening))?;
        let title = quoted.split('"').next()?;
        let document = before
            .rsplit(|c: char| c.is_whitespace() || "(`".contains(c))
            .next()?;
        Some((document, title))
    })
}

#[test]
fn links_of_documents_lead_somewhere() {
    let documents = files(&[".md"]);
    let mut wrong = Vec::new();
    for Source { path, text } in &documents {
        for link in links(text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let target = if file.is_empty() {
                path.clone()
            } else {
                joined(folder, file)
            };
            let exists = crate::repository::root().join(&target).exists();
            let has_anchor = anchor.is_empty()
                || documents
                    .iter()
                    .find(|document| document.path == target)
                    .is_some_and(|document| anchors(&document.text).contains(anchor));
            if !exists || !has_anchor {
                wrong.push(format!("{path}: {link}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "these links lead nowhere:\n{}",
        wrong.join("\n")
    );
}

/// Links to files of the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
        .filter(|link| !link.contains("://") && !link.starts_with('/'))
}

fn joined(folder: &str, file: &str) -> String {
    let mut parts: Vec<_> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let title = heading.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[test]
fn modules_that_a_header_lists_exist() {
    let paths: BTreeSet<_> = paths().into_iter().collect();
    let mut wrong = Vec::new();
    for Source { path, text } in files(&[".rs"]) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        for name in text.lines().flat_map(listed) {
            let is_module = paths.contains(&format!("{folder}/{name}.rs"))
                || paths.contains(&format!("{folder}/{name}/mod.rs"));
            let is_item = words_of_code(&code).any(|word| word == name);
            if !is_module && !is_item {
                wrong.push(format!("{path}: {name}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a header lists what is not there:\n{}",
        wrong.join("\n")
    );
}

/// The names at the beginning of an item of a header's list: ``//! - [`one`], `two`: …``.
fn listed(line: &str) -> Vec<&str> {
    let Some(item) = line.strip_prefix("//! - ") else {
        return Vec::new();
    };
    let names = item.split(':').next().unwrap_or_default();
    let names = names.split(", ").map(|name| name.trim_matches(['[', ']']));
    names
        .filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'))
        .filter(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
        .collect()
}

fn words_of_code(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}
