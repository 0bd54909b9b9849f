//! `everturn config check` accepts the files that the documents and the examples show.
//!
//! The blocks of TOML of a page build one `everturn.toml`, in their order: a later block adds to the blocks above, and
//! replaces their values. The file must be whole after each block.

use everturn_config::{Config, ReadBy};
use everturn_tests::blocks;
use toml::{Table, Value};

use crate::repository::{files, root};

/// Checks a file as a worker does. Every environment variable is set.
fn check(path: &str, file: &Table) -> Result<(), String> {
    let tools = ["calculate", "current_time", "work_plan"].map(str::to_owned);
    let read_by = ReadBy::Worker {
        tools: &tools,
        // It is long enough for every kind of secret.
        environment: &|_| Some("value".repeat(10)),
    };
    let path = root().join(path).display().to_string();
    let text = toml::to_string(file).unwrap();
    let read = Config::parse(&text, &path, read_by);
    read.map(drop).map_err(|error| error.to_string())
}

/// Adds the values of a later block.
fn merge(file: &mut Table, block: Table) {
    for (key, value) in block {
        match (file.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (_, value) => drop(file.insert(key, value)),
        }
    }
}

#[test]
fn every_block_of_toml_builds_a_file_that_the_check_accepts() {
    let (mut count, mut wrong) = (0, Vec::new());
    let (mut document, mut file) = (String::new(), Table::new());
    for block in blocks::all() {
        if block.language != "toml" {
            continue;
        }
        count += 1;
        if block.document != document {
            document.clone_from(&block.document);
            file.clear();
        }
        let result = match toml::from_str(&block.text) {
            Ok(table) => {
                merge(&mut file, table);
                // The file lies in the root, as paths in the documents say.
                check("everturn.toml", &file)
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = result {
            wrong.push(format!("{}: {error}", block.place()));
        }
    }
    assert!(count > 25, "only {count} blocks were found");
    assert!(
        wrong.is_empty(),
        "A block of TOML, with the blocks above it on its page, must be an everturn.toml that `everturn config check` \
         accepts. Add the provider, the agent or the tool that is missing:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_configuration_of_the_examples_is_accepted() {
    let examples = files(&["everturn.toml"]).into_iter();
    let examples = examples.filter(|file| file.path.starts_with("examples/"));
    let examples: Vec<_> = examples.collect();
    assert!(!examples.is_empty());
    for example in examples {
        let table = toml::from_str(&example.text).unwrap();
        let checked = check(&example.path, &table);
        assert!(checked.is_ok(), "{}: {checked:?}", example.path);
    }
}
