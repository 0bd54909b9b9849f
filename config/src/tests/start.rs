//! What is configured when little or nothing is written.

use super::parse;

#[test]
fn without_a_file_the_demo_model_answers() {
    let config = parse("", &[]).unwrap();
    assert!(config.needs_demo_model());
    assert_eq!(config.agents[0].name, "default");
    assert_eq!(config.agents[0].tools.len(), 3);
    assert_eq!(
        (
            config.agents[0].llm_timeout_ms,
            config.agents[0].tools[0].timeout_ms
        ),
        (60_000, 300_000)
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
