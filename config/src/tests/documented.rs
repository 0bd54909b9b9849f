//! docs/configuration.md names every key of the file, and no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::{agents, file::File};

type Tables = BTreeMap<String, BTreeSet<String>>;

/// The chapter of the document about the file's keys.
fn chapter() -> String {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let document = fs::read_to_string(document).unwrap();
    let (_, text) = document
        .split_once("\n# Keys of everturn.toml\n")
        .expect("a chapter about keys");
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
    let chapter = chapter();
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
