//! The groups of the end-to-end tests: which command runs a test follows from the first part of its path. CONTRIBUTING.md,
//! "Where a test belongs", describes the groups.

use std::collections::BTreeSet;

use crate::repository::{files, paths, read};

/// The folder of the end-to-end tests.
const FOLDER: &str = "tests/tests/e2e/";

/// The groups that `make test` runs.
const TESTED: [&str; 3] = ["both", "embedded", "production"];

/// The group that only `make verify` runs.
const LONG: &str = "verify";

/// The modules of the end-to-end tests that `make test` runs.
fn tested_modules() -> BTreeSet<String> {
    let module = |path: &String| {
        let (group, file) = path.strip_prefix(FOLDER)?.split_once('/')?;
        let is_tested = TESTED.contains(&group);
        is_tested.then(|| file.split(['/', '.']).next().unwrap().to_owned())
    };
    paths().iter().filter_map(module).collect()
}

#[test]
fn every_end_to_end_test_is_in_a_group() {
    for path in paths() {
        let Some(rest) = path.strip_prefix(FOLDER) else {
            continue;
        };
        let group = rest.split('/').next().unwrap();
        let is_known = TESTED.contains(&group) || group == LONG || rest == "main.rs";
        assert!(is_known, "{path} is in no group");
    }
}

/// The Makefile selects groups with filters of Rust's test harness, and a filter matches any part of a path.
#[test]
fn no_other_module_is_named_like_a_group() {
    for source in files(&[".rs"]) {
        let modules = source.text.lines().filter_map(|line| {
            let line = line.trim_end_matches([';', '{', ' ']);
            let (before, name) = line.rsplit_once("mod ")?;
            (before.trim().is_empty() || before.trim().starts_with("pub")).then_some(name)
        });
        let groups: Vec<_> = TESTED.into_iter().chain([LONG]).collect();
        let is_group = |name: &&str| groups.iter().any(|group| name.ends_with(group));
        let found: Vec<_> = modules.filter(is_group).collect();
        let is_main = source.path == format!("{FOLDER}main.rs");
        assert!(
            if is_main {
                found == groups
            } else {
                found.is_empty()
            },
            "{}: {found:?}",
            source.path
        );
    }
}

/// The names behind `e2e` in the list of an invariant's tests, as in "e2e crash and background."
fn named(tests: &str) -> Vec<&str> {
    let Some((_, names)) = tests.split_once("e2e ") else {
        return Vec::new();
    };
    let names = names.split([',', '.', '*', ';']);
    let names = names.flat_map(|names| names.split(" and "));
    let is_module = |name: &&str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    names.take_while(is_module).collect()
}

#[test]
fn each_invariant_has_a_test_that_make_test_runs() {
    let (tested, architecture) = (tested_modules(), read("ARCHITECTURE.md"));
    let list = architecture.split("\n## Invariants\n").nth(1).unwrap();
    let list = list.split("\n## ").next().unwrap().replace("\n   ", " ");
    let invariants: Vec<_> = list.lines().filter(|line| line.contains(". **")).collect();
    assert!(invariants.len() >= 10, "{invariants:?}");
    for invariant in invariants {
        let tests = invariant.split("*Tests:").nth(1);
        let tests = tests.unwrap_or_else(|| panic!("no test is named: {invariant}"));
        for name in named(tests) {
            assert!(
                tested.contains(name),
                "make test does not run {name}: {invariant}"
            );
        }
    }
}

#[test]
fn no_threat_is_tested_by_long_tests_alone() {
    let security = read("SECURITY.md");
    let long = format!("{FOLDER}{LONG}/");
    for row in security.lines().filter(|line| line.starts_with('|')) {
        let is_tested = TESTED
            .iter()
            .any(|group| row.contains(&format!("{FOLDER}{group}/")));
        assert!(is_tested || !row.contains(&long), "{row}");
    }
}
