//! What a release is made of: the files of an archive, and the sections of the changelog.

use std::process::Command;

use crate::repository::{files, read, root};

/// The parts of a section, as Keep a Changelog names them.
const PARTS: [&str; 6] = [
    "Added",
    "Changed",
    "Deprecated",
    "Removed",
    "Fixed",
    "Security",
];

/// The files and folders of an archive, of which the first ones are the binary and the list of its software.
fn archive() -> Vec<String> {
    let script = root().join("scripts/release.sh");
    let output = Command::new(script).arg("--list").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let list = String::from_utf8(output.stdout).unwrap();
    list.lines().map(str::to_owned).collect()
}

#[test]
fn what_an_archive_holds_is_in_the_repository() {
    let archive = archive();
    let (made, content) = archive.split_at(2);
    assert_eq!(made, ["everturn", "everturn.cdx.json"]);
    assert!(content.len() > 3, "{content:?}");
    for path in content {
        assert!(root().join(path).exists(), "there is no {path}");
    }
}

#[test]
fn what_the_documents_install_is_in_an_archive() {
    let archive = archive();
    let holds = |file: &str| {
        let mut above = archive.iter().map(|path| file.strip_prefix(path.as_str()));
        above.any(|rest| rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    let mut count = 0;
    for document in files(&[".md"]) {
        for line in document.text.lines() {
            let Some(command) = line.strip_prefix("install -m ") else {
                continue;
            };
            let file = command.split_whitespace().nth(1).unwrap();
            assert!(holds(file), "{}: no archive has {file}", document.path);
            count += 1;
        }
    }
    assert!(count > 3, "only {count} commands were found");
}

#[test]
fn the_changelog_has_a_section_for_each_release() {
    let changelog = read("CHANGELOG.md");
    let mut titles = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "));
    assert_eq!(titles.next(), Some("Unreleased"));
    let releases: Vec<_> = titles
        .map(|title| {
            release(title).unwrap_or_else(|| panic!("`{title}` is not `1.2.3 - 2026-11-30`"))
        })
        .collect();
    assert!(
        releases.is_sorted_by(|newer, older| newer.0 > older.0 && newer.1 >= older.1),
        "the newest release is not the first one: {releases:?}"
    );
    let this = numbers(env!("CARGO_PKG_VERSION"), '.').unwrap();
    let newest = releases.first().map(|(version, _)| *version);
    assert!(
        newest.is_none_or(|newest| newest <= this),
        "Cargo.toml has the version {this:?}, and the changelog already {newest:?}"
    );
    for part in changelog
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
    {
        assert!(PARTS.contains(&part), "`{part}` is none of {PARTS:?}");
    }
}

/// The version and the date in the title of a section: `1.2.3 - 2026-11-30`.
fn release(title: &str) -> Option<([u32; 3], [u32; 3])> {
    let (version, date) = title.split_once(" - ")?;
    let is_date = date.len() == "2026-11-30".len();
    Some((
        numbers(version, '.')?,
        numbers(date, '-').filter(|_| is_date)?,
    ))
}

fn numbers(text: &str, separator: char) -> Option<[u32; 3]> {
    let numbers: Result<Vec<_>, _> = text.split(separator).map(str::parse).collect();
    numbers.ok()?.try_into().ok()
}
