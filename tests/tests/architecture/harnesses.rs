//! Each harness for input from outside that SECURITY.md names exists and is a property test, and none is left out.

use std::collections::BTreeSet;

use crate::repository::{files, read};

/// What stands before the property tests of a file.
const PROPERTIES: &str = "proptest! {";

/// File and test of each row of the table.
fn named() -> BTreeSet<(String, String)> {
    let security = read("SECURITY.md");
    let rows = security.lines().filter_map(|row| {
        let mut cells = row.strip_suffix("` |")?.rsplit('`');
        let (test, between) = (cells.next()?, cells.next()?);
        let file = cells.next().filter(|_| between == " | ")?;
        Some((file.to_owned(), test.to_owned()))
    });
    rows.collect()
}

/// The property tests of a file.
fn properties(text: &str) -> impl Iterator<Item = &str> {
    let properties = text.split_once(PROPERTIES).map_or("", |(_, rest)| rest);
    let functions = properties.split("fn ").skip(1);
    functions.filter_map(|function| function.split('(').next())
}

#[test]
fn the_harnesses_that_are_named_are_property_tests() {
    let named = named();
    assert!(named.len() > 30, "{named:?}");
    for (file, test) in &named {
        let text = read(file);
        assert!(
            properties(&text).any(|property| property == test),
            "SECURITY.md: {file} has no property test {test}"
        );
    }
}

#[test]
fn every_harness_is_named() {
    let named = named();
    for source in files(&[".rs"]) {
        for test in properties(&source.text).filter(|test| test.starts_with("any_")) {
            let row = (source.path.clone(), test.to_owned());
            let is_of_behaviour = source.path.starts_with("store/src/batch/");
            assert!(
                is_of_behaviour || named.contains(&row),
                "SECURITY.md has no row of the harness {test} in {}",
                source.path
            );
        }
    }
}
