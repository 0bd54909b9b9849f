//! The documents as tests: links lead somewhere, paths exist, and facts that comments cite have a heading.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Pages whose facts comments cite by heading.
const CITED_PAGES: [&str; 2] = ["docs/libraries.md", "docs/engine.md"];
/// Folders that are not the project's own text.
const SKIPPED: [&str; 5] = ["target", ".git", ".tools", "node_modules", "errors"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// All files below the folder with one of these extensions.
fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let extension = path.extension().and_then(|text| text.to_str());
        if path.is_dir() {
            if !SKIPPED.contains(&name) {
                found.extend(files(&path, extensions));
            }
        } else if extension.is_some_and(|extension| extensions.contains(&extension)) {
            found.push(path);
        }
    }
    found
}

fn documents() -> Vec<PathBuf> {
    let mut found = files(&root(), &["md"]);
    found.extend(files(&root().join("docs/errors"), &["md"]));
    found
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    let parts = text.split("\n```");
    let outside = parts.enumerate().filter(|(index, _)| index % 2 == 0);
    outside.map(|(_, part)| part).collect::<Vec<_>>().join("\n")
}

fn headings(text: &str) -> Vec<(usize, String)> {
    let prose = prose(text);
    let lines = prose.lines().filter(|line| line.starts_with('#'));
    lines
        .map(|line| {
            let title = line.trim_start_matches('#');
            (line.len() - title.len(), title.trim().to_owned())
        })
        .collect()
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    headings(text)
        .iter()
        .map(|(_, title)| anchor(title))
        .collect()
}

/// The targets of `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut count = 0;
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        for link in links(&text) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => file.clone(),
                path => file.parent().unwrap().join(path),
            };
            assert!(
                target.exists(),
                "{} links to {link}: no such file",
                file.display()
            );
            if !fragment.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                assert!(
                    anchors(&text).contains(fragment),
                    "{} links to {link}: no such heading",
                    file.display()
                );
            }
        }
    }
    assert!(count > 100, "{count} links found");
}

#[test]
fn every_path_of_the_repository_that_a_document_names_exists() {
    let root = root();
    let is_folder = |name: &str| !name.is_empty() && root.join(name).is_dir();
    let mut count = 0;
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        for code in prose(&text).split('`').skip(1).step_by(2) {
            let first = code.split('/').next().unwrap();
            let is_path = code.contains('/')
                && is_folder(first)
                && !matches!(first, "target" | ".tools")
                && !code.contains(['<', '*', '…', ' ', '{']);
            if is_path {
                count += 1;
                assert!(
                    root.join(code).exists(),
                    "{} names `{code}`, which does not exist",
                    file.display()
                );
            }
        }
    }
    assert!(count > 30, "{count} paths found");
}

/// The text of the comments, without their marks and line breaks.
fn comments(source: &str) -> String {
    let marks = ["//!", "///", "//", "--", "#"];
    let lines = source.lines().filter_map(|line| {
        let line = line.trim_start();
        marks.iter().find_map(|mark| line.strip_prefix(mark))
    });
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// What a comment writes behind the page's name: `section: fact`, or the fact alone where the page has no section by
/// library.
fn facts(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut section = String::new();
    let mut found = Vec::new();
    for (level, title) in headings(&text) {
        let is_version = |word: &&str| !word.starts_with(|c: char| c.is_ascii_digit());
        let title = title.to_lowercase();
        match level {
            2 => {
                let words = title.split(' ').filter(is_version);
                section = words.collect::<Vec<_>>().join(" ");
                found.push(section.clone());
            }
            3 if page == "docs/libraries.md" => found.push(format!("{section}: {title}")),
            3 => found.push(title),
            _ => {}
        }
    }
    found
}

#[test]
fn every_fact_that_a_comment_cites_is_written_down() {
    for page in CITED_PAGES {
        let facts = facts(page);
        assert!(facts.len() > 10, "{page} has {} facts", facts.len());
        let citation = format!("{page}, ");
        for file in files(&root(), &["rs", "toml", "sql", "lua"]) {
            let text = comments(&fs::read_to_string(&file).unwrap());
            for cited in text.split(&citation).skip(1) {
                let cited = cited.to_lowercase();
                let is_known = facts.iter().any(|fact| cited.starts_with(fact));
                let shown: String = cited.chars().take(60).collect();
                assert!(
                    is_known,
                    "{} cites {citation}{shown}… and there is no such heading",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn every_document_that_the_code_names_exists() {
    let mut count = 0;
    for file in files(&root(), &["rs", "toml", "sql"]) {
        let text = fs::read_to_string(&file).unwrap();
        for rest in text.split("docs/").skip(1) {
            let name = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '/' | '-' | '_' | '.'))
                .map_or(rest, |end| &rest[..end]);
            if let Some(name) = name.strip_suffix('.').or(Some(name))
                && name.ends_with(".md")
            {
                count += 1;
                assert!(
                    root().join("docs").join(name).is_file(),
                    "{} names docs/{name}",
                    file.display()
                );
            }
        }
    }
    assert!(count > 5, "{count} names found");
}

/// The names of the invariants in ARCHITECTURE.md, in their order.
fn invariants() -> Vec<String> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("## Invariants").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let names = section.lines().filter_map(|line| line.split_once(". **"));
    names
        .map(|(_, rest)| rest.split_once(".**").unwrap().0.to_lowercase())
        .collect()
}

#[test]
fn every_invariant_that_a_comment_cites_has_this_number_and_name() {
    let names = invariants();
    assert_eq!(names.len(), 10, "{names:?}");
    for file in files(&root(), &["rs", "toml", "sql", "lua"]) {
        let text = comments(&fs::read_to_string(&file).unwrap()).to_lowercase();
        for rest in text.split("invariant ").skip(1) {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let Ok(number) = rest[..digits].parse::<usize>() else {
                continue;
            };
            let name = number.checked_sub(1).and_then(|index| names.get(index));
            let place = file.display();
            let name = name.unwrap_or_else(|| panic!("{place} cites invariant {number}"));
            let behind = rest[digits..].strip_prefix(", ").unwrap_or_default();
            let named = names.iter().find(|name| behind.starts_with(name.as_str()));
            assert!(
                named.is_none_or(|named| named == name),
                "{place} cites invariant {number} with the name of another one"
            );
        }
    }
}
