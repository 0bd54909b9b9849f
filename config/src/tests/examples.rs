//! The examples are valid: the file, those of the documents, and those of `examples/`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use everturn_tools::names::source_of;
use toml::{Table, Value};

use super::{parse, tools};
use crate::{Config, ConfigError, ReadBy};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_example_file_is_valid() {
    let text = fs::read_to_string(root().join("everturn.example.toml")).unwrap();
    let config = parse(&text, &[("OPENAI_API_KEY", "k")]).unwrap();
    assert_eq!(config.agents[0].tools[2].timeout_ms, 30_000);
    let default = everturn_gateway::GatewayConfig {
        agents: config.gateway.agents.clone(),
        ..everturn_gateway::GatewayConfig::default()
    };
    let written = config.gateway;
    assert_eq!(
        format!("{written:?}"),
        format!("{default:?}"),
        "the example shows the defaults"
    );
}

#[test]
fn the_examples_of_the_guide_are_valid() {
    let guide = fs::read_to_string(root().join("docs/tools/http.md")).unwrap();
    let example = blocks(&guide).remove(0);
    let config = parse(&example, &[("ORDERS_TOKEN", "a"), ("ORDERS_KEY", "b")]).unwrap();
    assert_eq!(config.http_tools.len(), 2);
}

#[test]
fn every_block_of_toml_is_a_configuration_or_a_part_of_one() {
    let mut documents = files(&root().join("docs"), "md");
    documents.push(root().join("README.md"));
    let mut texts = Vec::new();
    for path in documents {
        let document = fs::read_to_string(&path).unwrap();
        for block in blocks(&document) {
            texts.push((path.clone(), block));
        }
    }
    for path in files(&root().join("examples"), "toml") {
        let text = fs::read_to_string(&path).unwrap();
        texts.push((path, text));
    }
    let mut count = 0;
    for (path, text) in texts {
        let table: Table = toml::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
        if is_cargo_toml(&table) {
            continue;
        }
        count += 1;
        if let Err(error) = read(table) {
            panic!("{}: {error}\n{text}", path.display());
        }
    }
    assert!(count > 11, "{count} configurations were found");
}

#[test]
fn a_key_that_does_not_exist_is_found_in_a_part() {
    let block =
        "[agents.default]\ntools = [\"files__*\", { name = \"refund\", timeout = \"2m\" }]\n";
    assert!(read(toml::from_str(block).unwrap()).is_ok());
    for wrong in [
        block.replace("tools", "tool"),
        block.replace("timeout", "time_out"),
        block.replace("agents", "agent"),
    ] {
        assert!(read(toml::from_str(&wrong).unwrap()).is_err(), "{wrong}");
    }
}

/// The files below a folder whose names end like this.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// The blocks of a document that are marked as TOML.
fn blocks(document: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in document.lines() {
        match (&mut open, line.trim()) {
            (None, "```toml") => open = Some(String::new()),
            (Some(_), "```") => blocks.extend(open.take()),
            (Some(block), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    assert_eq!(open, None, "a block has no end");
    blocks
}

fn is_cargo_toml(table: &Table) -> bool {
    ["package", "dependencies"]
        .iter()
        .any(|key| table.contains_key(*key))
}

/// Reads a part of a configuration as a worker does, with what it names and does not have. Every environment variable
/// is set.
fn read(mut part: Table) -> Result<Config, ConfigError> {
    complete(&mut part);
    let file = root().join("everturn.toml").display().to_string();
    let read_by = ReadBy::Worker {
        tools: &tools(),
        // It is long enough for every kind of secret.
        environment: &|_| Some("value".repeat(10)),
    };
    Config::parse(&toml::to_string(&part).unwrap(), &file, read_by)
}

/// Adds what the agents of a part need and name: a provider and a model, MCP servers and tools.
fn complete(part: &mut Table) {
    let (mut providers, mut servers, mut named) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (_, agent) in tables(part.get_mut("agents")) {
        let Some(agent) = agent.as_table_mut() else {
            continue;
        };
        for key in ["provider", "model"] {
            agent.entry(key).or_insert_with(|| "main".into());
        }
        providers.extend(agent["provider"].as_str().map(str::to_owned));
        for entry in agent
            .get("tools")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = entry
                .get("name")
                .unwrap_or(entry)
                .as_str()
                .unwrap_or_default();
            match source_of(name) {
                Some(server) => drop(servers.insert(server.to_owned())),
                None => named.push(name.to_owned()),
            }
        }
    }
    let known = |table: &str| part.get(table).and_then(Value::as_table);
    named.retain(|name| {
        let is_described = ["tools", "client_tools", "remote_tools"]
            .iter()
            .any(|table| known(table).is_some_and(|table| table.contains_key(name)));
        !is_described && !tools().contains(name)
    });
    let mut add = |table: &str, name: String, text: &str| {
        let table = part.entry(table).or_insert_with(|| Table::new().into());
        let value: Table = toml::from_str(text).unwrap();
        table
            .as_table_mut()
            .unwrap()
            .entry(name)
            .or_insert(value.into());
    };
    for name in providers {
        add(
            "providers",
            name,
            "kind = \"openai\"\napi_key_env = \"KEY\"",
        );
    }
    for name in servers {
        add("mcp", name, "command = [\"server\"]");
    }
    for name in named {
        add("client_tools", name, "description = \"A tool.\"");
    }
}

fn tables(value: Option<&mut Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    value.and_then(Value::as_table_mut).into_iter().flatten()
}
