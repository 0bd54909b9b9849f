//! `[skills]`, and the skills that agents name.

use std::fs;

use crate::{Config, ConfigError, ReadBy};

const AGENT: &str =
    "[providers.main]\nkind = \"openai\"\n[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";

/// The configuration beside a folder `skills` with a good skill and a broken one.
fn load(text: &str) -> Result<Config, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("good", "---\nname: good\ndescription: x\n---\nDo good."),
        ("broken", "Do bad."),
    ] {
        fs::create_dir_all(directory.path().join("skills").join(name)).unwrap();
        fs::write(
            directory.path().join("skills").join(name).join("SKILL.md"),
            text,
        )
        .unwrap();
    }
    let file = directory.path().join("everturn.toml");
    fs::write(&file, text).unwrap();
    Config::load(Some(&file), &["calculate".to_owned()])
}

fn tools(config: &Config) -> Vec<&str> {
    config.agents[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect()
}

#[test]
fn agents_name_skills_and_a_broken_one_stops_nothing() {
    let config = load(&format!(
        "{AGENT}tools = [\"calculate\"]\nskills = [\"*\"]\n[skills]\npaths = [\"skills\"]\n"
    ));
    let config = config.unwrap();
    assert_eq!(tools(&config), ["calculate", "skill__*"]);
    assert_eq!(config.skills.names().collect::<Vec<_>>(), ["good"]);
    let config = load(&format!(
        "{AGENT}skills = [\"good\", \"broken\"]\n[skills]\npaths = [\"skills\"]\n"
    ))
    .unwrap();
    assert_eq!(tools(&config), ["skill__good", "skill__broken"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, expected) in [
        (
            "[skills]\npaths = [\"nowhere\"]\n".to_owned(),
            "everturn.toml:2:10: the folder of skills",
        ),
        (
            format!("{AGENT}skills = [\"god\"]\n[skills]\npaths = [\"skills\"]\n"),
            "everturn.toml:6:11: there is no skill `god`; there are: good",
        ),
        (
            format!("{AGENT}skills = [\"good\"]\n"),
            "there is no skill `good`; no skills are configured",
        ),
        (
            format!("{AGENT}skills = [\"*\", \"*\"]\n[skills]\npaths = [\"skills\"]\n"),
            "everturn.toml:6:16: skill `*` is named twice",
        ),
        (
            "[skills]\npath = \"skills\"\n".to_owned(),
            "unknown field `path`",
        ),
    ] {
        let error = load(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_gateway_needs_no_skills() {
    let text = format!("{AGENT}skills = [\"good\"]\n[skills]\npaths = [\"nowhere\"]\n");
    let config = Config::parse(&text, "everturn.toml", ReadBy::Gateway).unwrap();
    assert_eq!(tools(&config), ["skill__good"]);
}
