//! What a comment cites by name: facts about the libraries and the engine, and invariants.
//!
//! A citation may go over the end of a line, so the comments of a file are read as one text.

use crate::repository::{Source, files, read};

/// Code whose comments may cite.
const CODE: [&str; 4] = [".rs", ".toml", ".proto", "Makefile"];

/// The comments of a file as one text, without their marks.
fn comments(source: &Source) -> String {
    let lines = source
        .prose()
        .map(|prose| prose.text.trim_start_matches(['/', '!']));
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").to_lowercase()
}

/// What a citation writes behind the page's name. A fact of docs/libraries.md stands behind its library, as in
/// "Temporal SDK: declarations of activities"; docs/engine.md has one subject.
fn facts(page: &str) -> Vec<String> {
    let text = read(page).to_lowercase();
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
            let words = title.split(' ').filter(|word| !is_version(word));
            section = words.collect::<Vec<_>>().join(" ");
        } else if let Some(title) = line.strip_prefix("### ") {
            found.push(match page {
                "docs/libraries.md" => format!("{section}: {title}"),
                _ => title.to_owned(),
            });
        }
    }
    found
}

#[test]
fn facts_that_are_cited_are_written_down() {
    let mut wrong = Vec::new();
    for page in ["docs/libraries.md", "docs/engine.md"] {
        let facts = facts(page);
        assert!(facts.len() > 10, "{page} has {} facts", facts.len());
        for source in files(&CODE) {
            let text = comments(&source);
            for cited in text.split(&format!("{page}, ")).skip(1) {
                if !facts.iter().any(|fact| cited.starts_with(fact.as_str())) {
                    let shown: String = cited.chars().take(60).collect();
                    wrong.push(format!("{}: {page}, {shown}", source.path));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "there is no such heading:\n{}",
        wrong.join("\n")
    );
}

/// The names of the invariants, in their order.
fn invariants() -> Vec<String> {
    let text = read("ARCHITECTURE.md").to_lowercase();
    let section = text.split("\n## invariants\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let items = section.lines().filter_map(|line| line.split_once(". **"));
    items
        .filter_map(|(_, rest)| rest.split_once(".**"))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn invariants_are_cited_by_number_and_name() {
    let names = invariants();
    let mut wrong = Vec::new();
    assert_eq!(names.len(), 11, "{names:?}");
    let documents = files(&[".md"]);
    for source in files(&CODE).into_iter().chain(documents) {
        let text = comments(&source);
        for (at, _) in text.match_indices("invariant") {
            let rest = text[at + "invariant".len()..].trim_start_matches('s');
            let rest = rest.trim_start();
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, behind) = rest.split_at(digits);
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            let name = number.checked_sub(1).and_then(|index| names.get(index));
            let behind = behind.trim_start_matches([',', ' ']);
            if !name.is_some_and(|name| behind.starts_with(name.as_str())) {
                let shown: String = behind.chars().take(30).collect();
                wrong.push(format!("{}: invariant {number}, {shown}", source.path));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "write the number and the name, as in `invariant 5, paid once`:\n{}",
        wrong.join("\n")
    );
}
