//! docs/operate/configuration.md names every environment variable that a process of the product reads, and no other
//! variable.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
};

use clap::CommandFactory;
use everturn_worker::cli::Cli;
use temporalio_common::envconfig::{LoadClientConfigProfileOptions, load_client_config_profile};

use crate::repository::{Source, files, read};

/// Folders of programs that only tests, measurements and readers of the documents run.
const NOT_SHIPPED: [&str; 4] = ["tests/", "bench/", "examples/", "clients/"];

/// The chapter about environment variables. Only the page for operators has the chapter.
fn chapter() -> String {
    let operators = read("docs/operate/configuration.md");
    let (_, text) = operators
        .split_once("\n## Environment variables\n")
        .expect("a chapter about variables");
    text.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The variables in the first cells of the tables' rows. A cell may have several variables in back quotes.
fn rows(text: &str) -> Vec<String> {
    let cells = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    cells
        .flat_map(|cell| cell.split(", ").map(|name| name.replace('`', "")))
        .filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
        .collect()
}

/// True for a source file of a crate that is a part of the binary. Files of tests do not count.
fn is_shipped(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    path.contains("/src/") && !is_test && !NOT_SHIPPED.iter().any(|folder| path.starts_with(folder))
}

/// The words of the sources, in quotes, that look like our variables.
fn variables_of_the_sources() -> BTreeSet<String> {
    let is_variable = |word: &&str| {
        let is_ours = [
            "EVERTURN_",
            "AWS_",
            "OPENAI_",
            "ANTHROPIC_",
            "GEMINI_",
            "OTEL_",
        ];
        is_ours.iter().any(|prefix| word.starts_with(prefix))
            && word
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let mut variables = BTreeSet::new();
    for Source { text, .. } in files(&[".rs"]).iter().filter(|file| is_shipped(&file.path)) {
        variables.extend(text.split('"').filter(is_variable).map(str::to_owned));
    }
    variables
}

#[test]
fn every_variable_is_documented_and_every_documented_variable_exists() {
    let chapter = chapter();
    let is_name = |word: &&str| {
        word.contains('_')
            && word
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            && !word.starts_with("TEMPORAL_")
            && !word.starts_with("XDG_")
    };
    let named: BTreeSet<String> = chapter
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(is_name)
        .map(str::to_owned)
        .collect();
    assert_eq!(named, variables_of_the_sources());
}

#[test]
fn a_variable_has_one_row_in_the_two_pages_of_the_configuration() {
    let mut rows_of_both = rows(&chapter());
    rows_of_both.extend(rows(&read("docs/configuration.md")));
    assert!(rows_of_both.len() > 30, "{rows_of_both:?}");
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = rows_of_both
        .iter()
        .filter(|name| !seen.insert(*name))
        .collect();
    assert!(twice.is_empty(), "documented twice: {twice:?}");
}

#[test]
fn temporal_reads_every_variable_that_is_documented_for_it() {
    let profile = |variable: &str| {
        // Each is read differently from when it is not set; TLS is on by default where another variable of it is set.
        let value = match variable {
            "TEMPORAL_TLS" => "false",
            // A folder is no file that can be read.
            "TEMPORAL_CONFIG_FILE" => "/",
            _ => "x",
        };
        let variables: HashMap<_, _> = [(variable.to_owned(), value.to_owned())].into();
        let mut options = LoadClientConfigProfileOptions::default();
        options.disable_file = !matches!(variable, "TEMPORAL_CONFIG_FILE" | "TEMPORAL_PROFILE");
        format!(
            "{:?}",
            load_client_config_profile(options, Some(&variables))
        )
    };
    let nothing = profile("UNKNOWN");
    let documented = rows(&chapter());
    // Some are Temporal's own names for variables that are options of ours.
    let command = Cli::command();
    let arguments = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments);
    let options: BTreeSet<_> = arguments.filter_map(clap::Arg::get_env).collect();
    let of_temporal = documented
        .iter()
        .filter(|name| name.starts_with("TEMPORAL_") && !options.contains(OsStr::new(name)));
    let mut count = 0;
    for name in of_temporal {
        let example = name.replace('*', "SOME_KEY");
        assert_ne!(profile(&example), nothing, "{name} has no effect");
        count += 1;
    }
    assert!(count > 10, "{count} variables found");
}
