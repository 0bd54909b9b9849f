//! docs/configuration.md names every key and every environment variable that there is, and no other.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use clap::CommandFactory;
use temporalio_common::envconfig::{LoadClientConfigProfileOptions, load_client_config_profile};

use crate::{
    cli::Cli,
    config::{agents, file::File},
};

type Tables = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text under a heading of the document, to the next one of the same rank.
fn chapter(heading: &str) -> String {
    let document = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let (_, text) = document
        .split_once(&format!("\n# {heading}\n"))
        .expect(heading);
    text.split("\n# ").next().unwrap_or_default().to_owned()
}

/// The first cells of tables' rows that are in back quotes. One may name several things.
fn first_cells(text: &str) -> BTreeSet<String> {
    let cells = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    cells
        .flat_map(|cell| cell.split(", ").map(|name| name.replace('`', "")))
        .collect()
}

fn documented_tables() -> Tables {
    let chapter = chapter("Keys of everturn.toml");
    let sections = chapter
        .split("\n## ")
        .chain(chapter.split("\n### "))
        .skip(1);
    let mut tables = Tables::new();
    for section in sections {
        let Some(name) = section
            .strip_prefix('`')
            .and_then(|rest| rest.split('`').next())
        else {
            continue;
        };
        let own = section.split("\n#").next().unwrap_or_default();
        let name = name.trim_matches(['[', ']']).to_owned();
        tables.insert(name, first_cells(own));
    }
    tables
}

/// The keys that serde expects in a table, by its own words when it meets one that does not exist. `None` when this is
/// not a table of keys.
fn accepted_keys(table: &str) -> Option<BTreeSet<String>> {
    let text = if table.is_empty() {
        "probe = 1".to_owned()
    } else {
        format!("[{table}]\nprobe = 1")
    };
    let error = toml::from_str::<File>(&text).unwrap_err();
    let (_, expected) = error
        .message()
        .split_once("unknown field `probe`, expected ")?;
    let words = expected.split('`').skip(1).step_by(2);
    Some(words.map(str::to_owned).collect())
}

/// The tables of the file, those below them included.
fn accepted_tables() -> Tables {
    let mut tables = Tables::new();
    let mut left: Vec<String> = accepted_keys("").unwrap().into_iter().collect();
    while let Some(table) = left.pop() {
        let with_name = format!("{table}.NAME");
        let found = [table, with_name]
            .into_iter()
            .find_map(|table| Some((accepted_keys(&table)?, table)));
        if let Some((keys, table)) = found {
            left.extend(keys.iter().map(|key| format!("{table}.{key}")));
            tables.insert(table, keys);
        }
    }
    // Entries of `tools` are read by hand.
    let by_hand = [
        ("agents.NAME.tools", &agents::TOOL_KEYS[..]),
        ("agents.NAME.tools.approval", &agents::APPROVAL_KEYS[..]),
    ];
    for (table, keys) in by_hand {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        tables.insert(table.to_owned(), keys);
    }
    tables
}

#[test]
fn every_key_is_documented_and_every_documented_key_exists() {
    let accepted = accepted_tables();
    assert!(accepted.len() > 14, "{accepted:#?}");
    assert_eq!(documented_tables(), accepted);
}

/// The files of Rust below a folder, tests left out.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            found.push(path);
        }
    }
}

/// The words of the sources, in quotes, that look like our variables.
fn variables_of_the_sources() -> BTreeSet<String> {
    let mut files = Vec::new();
    for part in [
        "activities",
        "gateway",
        "proto",
        "store",
        "stream",
        "worker",
        "workflows",
    ] {
        sources(&root().join(part).join("src"), &mut files);
    }
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
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        variables.extend(text.split('"').filter(is_variable).map(str::to_owned));
    }
    variables
}

#[test]
fn every_variable_is_documented_and_every_documented_variable_exists() {
    let chapter = chapter("Environment variables");
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
    let documented = first_cells(&chapter("Environment variables"));
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
