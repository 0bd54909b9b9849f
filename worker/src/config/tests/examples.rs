//! The examples of the documents are valid.

use std::fs;

use super::parse;

#[test]
fn the_example_file_is_valid() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../everturn.example.toml");
    let text = fs::read_to_string(example).unwrap();
    let config = parse(&text, &[("OPENAI_API_KEY", "k")]).unwrap();
    assert_eq!(config.agents[0].tools[2].timeout_ms, 30_000);
    let (written, default) = (config.gateway, everturn_gateway::GatewayConfig::default());
    assert_eq!(
        format!("{written:?}"),
        format!("{default:?}"),
        "the example shows the defaults"
    );
}

#[test]
fn the_examples_of_the_guide_are_valid() {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tools/http.md");
    let guide = fs::read_to_string(guide).unwrap();
    let example = guide
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let config = parse(example, &[("ORDERS_TOKEN", "a"), ("ORDERS_KEY", "b")]).unwrap();
    assert_eq!(config.http_tools.len(), 2);
}
