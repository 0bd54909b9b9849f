//! Every block of the documents has a language with a test. Blocks of JSON and YAML can be read, and so can programs in
//! JavaScript and Python.

use std::{fs, process::Command};

use everturn_tests::blocks::{self, Block};
use serde_json::{Deserializer, Value};

use crate::repository::{Source, files};

/// The languages of blocks, and the test of each.
const LANGUAGES: [(&str, &str); 16] = [
    ("toml", "configurations.rs"),
    ("sh", "shell.rs, tests/tests/e2e/embedded/documents/mod.rs"),
    (
        "bash",
        "shell.rs, tests/tests/e2e/embedded/documents/mod.rs",
    ),
    ("js", "this file, tests/tests/e2e/embedded/documents/mod.rs"),
    ("python", "this file, clients/python/tests/test_readme.py"),
    ("ts", "clients/typescript/test/readme.test.ts"),
    ("tsx", "clients/typescript/test/react.test.ts"),
    ("html", "clients/typescript/test/react.test.ts"),
    ("json", "this file"),
    ("yaml", "this file"),
    ("promql", "deploy/chart-test"),
    ("rust", "no test: parts of programs"),
    ("sql", "no test: statements for the owner of a database"),
    ("markdown", "no test: a text"),
    ("text", "no test: output"),
    ("", "no test: output"),
];

/// The word of a program in JavaScript that needs a browser. The end-to-end test runs other programs in JavaScript.
const BROWSER: &str = "browser";

#[test]
fn every_language_of_blocks_is_known() {
    for block in blocks::all() {
        assert!(
            LANGUAGES
                .iter()
                .any(|(language, _)| *language == block.language),
            "{}: no test checks blocks of `{}`. Add the language to {}, with its test",
            block.place(),
            block.language,
            file!()
        );
    }
}

#[test]
fn blocks_of_json_and_yaml_can_be_read() {
    for block in blocks::all() {
        let read = match block.language.as_str() {
            // A block may have several values.
            "json" => Deserializer::from_str(&block.text)
                .into_iter()
                .collect::<Result<Vec<Value>, _>>()
                .map(drop)
                .map_err(|error| error.to_string()),
            "yaml" => serde_yaml_ng::from_str::<serde_yaml_ng::Value>(&block.text)
                .map(drop)
                .map_err(|error| error.to_string()),
            _ => continue,
        };
        assert_eq!(read, Ok(()), "{}", block.place());
    }
}

#[test]
fn a_program_of_a_page_is_run_by_a_test_that_names_the_page() {
    let tests = files(&[".rs", ".py", ".ts"]).into_iter();
    let is_test = |file: &Source| {
        let folders = [
            "tests/",
            "clients/python/tests/",
            "clients/python-tools/tests/",
            "clients/typescript/test/",
        ];
        folders.iter().any(|folder| file.path.starts_with(folder))
    };
    let tests: Vec<_> = tests.filter(is_test).collect();
    // The tests of the clients name their own README.md and docs/api/clients.md.
    let is_of_clients = |block: &Block| match block.language.as_str() {
        "python" => {
            ["docs/api/clients.md", "clients/python/README.md"].contains(&block.document.as_str())
        }
        _ => ["docs/api/clients.md", "clients/typescript/README.md"]
            .contains(&block.document.as_str()),
    };
    let programs = blocks::all().into_iter();
    let programs = programs.filter(|block| ["python", "ts"].contains(&block.language.as_str()));
    for block in programs.filter(|block| !is_of_clients(block)) {
        assert!(
            tests.iter().any(|test| test.text.contains(&block.document)),
            "{}: no test names {}. Write a test that runs the program of the page",
            block.place(),
            block.document
        );
    }
}

#[test]
fn programs_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    for block in blocks::all() {
        let (name, program, arguments) = match block.language.as_str() {
            "js" => ("program.mjs", "node", ["--check"].as_slice()),
            "python" => ("program.py", "python3", ["-m", "py_compile"].as_slice()),
            _ => continue,
        };
        let file = directory.path().join(name);
        fs::write(&file, &block.text).unwrap();
        let output = Command::new(program).args(arguments).arg(file).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", block.place());
    }
}

#[test]
fn a_program_in_javascript_is_run_or_needs_a_browser() {
    for block in blocks::all().iter().filter(|block| block.language == "js") {
        let word = block.word.as_deref();
        assert!(
            [None, Some(blocks::FOLLOWS), Some(BROWSER)].contains(&word),
            "{}: {word:?} is not `{}` or `{BROWSER}`",
            block.place(),
            blocks::FOLLOWS
        );
    }
}
