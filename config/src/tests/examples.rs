//! The example file is valid and shows the defaults. `tests/tests/architecture/configurations.rs` checks the examples of
//! the documents.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::parse;

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
