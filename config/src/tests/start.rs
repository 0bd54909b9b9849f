//! What is configured when little or nothing is written.

use super::parse;
use crate::{Config, ReadBy};

#[test]
fn without_a_file_the_demo_model_answers() {
    let config = parse("", &[]).unwrap();
    assert!(config.needs_demo_model());
    assert_eq!(config.agents[0].name, "default");
    assert_eq!(config.agents[0].tools.len(), 3);
    assert_eq!(
        (
            config.agents[0].llm_timeout_ms,
            config.agents[0].llm_total_timeout_ms,
            config.agents[0].tools[0].timeout_ms
        ),
        (60_000, 1_800_000, 300_000)
    );
}

#[test]
fn a_key_in_the_environment_is_enough() {
    let config = parse(
        "",
        &[("ANTHROPIC_API_KEY", "k"), ("EVERTURN_MODEL", "some-model")],
    )
    .unwrap();
    assert!(!config.needs_demo_model());
    assert_eq!(
        (
            config.agents[0].provider.as_str(),
            config.agents[0].model.as_deref()
        ),
        ("anthropic", Some("some-model"))
    );
}

#[test]
fn a_usual_provider_needs_no_table() {
    let agent = "[agents.default]\nprovider = \"openai\"\nmodel = \"m\"\n";
    let config = parse(agent, &[("OPENAI_API_KEY", "k")]).unwrap();
    assert_eq!(config.providers["openai"].api_key.as_deref(), Some("k"));
    let problem = parse(agent, &[]).unwrap_err().to_string();
    assert!(
        problem.contains("the provider `openai` needs its key: set OPENAI_API_KEY in the environment, or write a table [providers.openai]"),
        "{problem}"
    );
    let fallback = format!("{agent}[agents.default.fallback]\nmodels = [\"gemini/g\"]\n");
    let problem = parse(&fallback, &[("OPENAI_API_KEY", "k")])
        .unwrap_err()
        .to_string();
    assert!(
        problem.contains("the provider `gemini` needs its key"),
        "{problem}"
    );
    // A gateway has no keys, and knows that workers may have them.
    Config::parse(&fallback, "everturn.toml", ReadBy::Gateway).unwrap();
    // A table of the file counts, and not the key of the environment.
    let table = format!(
        "[providers.openai]\nkind = \"openai\"\nbase_url = \"http://localhost:1/v1\"\n{agent}"
    );
    let config = parse(&table, &[("OPENAI_API_KEY", "k")]).unwrap();
    assert_eq!(config.providers["openai"].api_key, None);
}

#[test]
fn instructions_may_be_in_a_file_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("everturn.toml");
    let read = |keys: &str| {
        let text = format!("[agents.default]\nprovider = \"demo\"\nmodel = \"m\"\n{keys}\n");
        let config = Config::parse(&text, &name.display().to_string(), ReadBy::Gateway);
        config
            .map(|config| config.agents[0].instructions.clone())
            .map_err(|error| error.to_string())
    };
    let write = |text: &str| std::fs::write(folder.path().join("support.md"), text).unwrap();
    let file = "instructions_file = \"support.md\"";
    assert!(
        read(file)
            .unwrap_err()
            .contains("support.md cannot be read")
    );
    write("You help.\n");
    assert_eq!(read(file).unwrap(), "You help.\n");
    assert_eq!(read("instructions = \"You help.\"").unwrap(), "You help.");
    assert_eq!(read("").unwrap(), "");
    let two = read(&format!("instructions = \"You help.\"\n{file}")).unwrap_err();
    assert!(two.contains("remove either key"), "{two}");
    write(" \n");
    assert!(read(file).unwrap_err().contains("has no instructions"));
    write(&"x".repeat(256 * 1024 + 1));
    let long = read(file).unwrap_err();
    assert!(long.contains("the limit is 262144"), "{long}");
}
