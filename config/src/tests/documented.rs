//! The two pages of the configuration name every key of the file, and no other key. Each table is on one of the pages.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::{agents, file::File, tools::mcp};

type Tables = BTreeMap<String, BTreeSet<String>>;

/// The page for authors of agents, and the page for operators.
const PAGES: [&str; 2] = ["docs/configuration.md", "docs/operate/configuration.md"];

/// The keys in the first cells of a table's rows. A cell may have several keys in back quotes.
fn documented_keys(section: &str) -> BTreeSet<String> {
    let cells = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let mut keys = BTreeSet::new();
    for key in cells.flat_map(|cell| cell.split(", ").map(|name| name.replace('`', ""))) {
        assert!(keys.insert(key.clone()), "{key} has two rows: {section}");
    }
    keys
}

/// The tables of both pages: the heading of a table's section is the table's name in back quotes.
fn documented_tables() -> Tables {
    let mut tables = Tables::new();
    for page in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
        let text = fs::read_to_string(path).unwrap();
        for section in text.split("\n#").skip(1) {
            let heading = section.trim_start_matches('#').trim_start();
            let Some(name) = heading
                .strip_prefix('`')
                .and_then(|name| name.split('`').next())
            else {
                continue;
            };
            let name = name.trim_matches(['[', ']']).to_owned();
            let earlier = tables.insert(name.clone(), documented_keys(section));
            assert!(earlier.is_none(), "{page}: {name} has two sections");
        }
    }
    tables
}

/// The keys that serde expects in a table, by its own words when it meets one that does not exist. `None` when this is
/// not a table of keys.
fn accepted_keys(table: &str) -> Option<BTreeSet<String>> {
    let text = if table.is_empty() {
        "no_such_key = 1".to_owned()
    } else {
        format!("[{table}]\nno_such_key = 1")
    };
    let error = toml::from_str::<File>(&text).unwrap_err();
    let (_, expected) = error
        .message()
        .split_once("unknown field `no_such_key`, expected ")?;
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
    // Entries of `tools` are read by hand, and so are keys beside the tables of servers.
    let by_hand = [
        ("agents.NAME.tools", &agents::TOOL_KEYS[..]),
        ("agents.NAME.tools.approval", &agents::APPROVAL_KEYS[..]),
        ("mcp", &mcp::KEYS[..]),
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
