//! Whatever a configuration and the environment hold, it is read, or told what is wrong and where.

use std::{fs, path::Path};

use proptest::prelude::*;

use crate::{Config, ConfigError, ReadBy, SeenFiles, sources::Sources};

/// The lines of the example, those that are commented out too.
fn example() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../everturn.example.toml");
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| line.trim_start_matches("# ").to_owned())
        .collect()
}

/// A value of a kind that the line does not expect.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("0".to_owned()),
        "-?[0-9]{1,19}",
        "-?[0-9]{1,3}\\.[0-9]{1,3}|inf|nan|true",
        r#""[0-9]{0,22}(ms|s|m|h|d|years)""#,
        r#""\\PC{0,12}""#,
        r#""https?://[a-z0-9.:@\[\]/]{0,12}""#,
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just(r#"["a", "a", ""]"#.to_owned()),
        "\\PC{0,12}",
    ]
}

/// What is wrong with a configuration is always said with a location.
fn read(text: &str, environment: &str) -> Result<(), String> {
    let lookup = |_: &str| Some(environment.to_owned()).filter(|value| !value.is_empty());
    let tools = super::tools();
    let worker = ReadBy::Worker {
        tools: &tools,
        environment: &lookup,
    };
    let file = |text: &str| ("f.toml".to_owned(), text.to_owned());
    // The text is everturn.toml, or a file of agents.d beside an everturn.toml.
    let alone = Sources::of([file(text)]);
    let beside = Sources::of([file("[agents.default]\nmax_steps = 1\n"), file(text)]);
    for (sources, read_by) in [
        (&alone, worker),
        (&alone, ReadBy::Gateway),
        (&beside, worker),
    ] {
        match Config::of(sources, read_by, &mut SeenFiles::default()) {
            Ok(_) => {}
            Err(ConfigError::Wrong(problems)) => {
                let is_told = |location: &str, message: &str| {
                    location.starts_with("f.toml:") && !message.is_empty()
                };
                if problems.is_empty()
                    || !problems
                        .iter()
                        .all(|problem| is_told(&problem.location, &problem.message))
                {
                    return Err(format!("{problems:?}"));
                }
            }
            Err(other) => return Err(other.to_string()),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_change_of_the_example_is_read_or_told(
        changes in prop::collection::vec((any::<prop::sample::Index>(), values()), 1..4), environment in "\\PC{0,8}",
    ) {
        let mut lines = example();
        let settings: Vec<_> = lines.iter().enumerate().filter(|(_, line)| line.contains(" = ")).map(|(at, _)| at).collect();
        for (index, value) in changes {
            let at = settings[index.index(settings.len())];
            let (key, _) = lines[at].split_once(" = ").unwrap();
            lines[at] = format!("{key} = {value}");
        }
        // Lines of prose and tables that stand there twice are left out, so that the file is one that may be read.
        let mut seen = std::collections::BTreeSet::new();
        let is_toml = |line: &&String| line.contains(" = ") || line.starts_with('[');
        let is_new = |line: &&String| !line.starts_with('[') || seen.insert((*line).clone());
        let text: Vec<_> = lines.iter().filter(is_toml).filter(is_new).cloned().collect();
        prop_assert_eq!(read(&text.join("\n"), &environment), Ok(()));
    }

    #[test]
    fn any_setting_of_any_table_is_read_or_told(
        table in "agents\\.default|agents\\.x|providers\\.main|models\\.\"p/m\"|mcp\\.git|tools\\.t|auth|auth\\.oidc|audit|gateway|limits|worker|blobs|egress|reconciler|postgres",
        key in "[a-z_]{1,12}|model|kind|url|effect|command|issuer|public_url|allowed_origins|timeout|max_steps|tools|hooks|fallback|lease",
        value in values(),
    ) {
        prop_assert_eq!(read(&format!("[{table}]\n{key} = {value}\n"), "secret"), Ok(()));
    }

    #[test]
    fn any_text_is_a_configuration_or_told(text in "\\PC{0,60}", toml in "(\\[[a-z.]{1,8}\\]\n|[a-z]{1,5} = [0-9\"\\[\\]{}a-z]{1,6}\n){0,6}") {
        prop_assert_eq!(read(&text, ""), Ok(()));
        prop_assert_eq!(read(&toml, ""), Ok(()));
    }
}
