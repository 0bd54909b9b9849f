//! Schemas of public reports (`models/schemas/`), read by the validator of each provider.

use std::{fs, path::Path};

use everturn_proto::Json;
use everturn_untrusted::Schema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{SchemaReader, Unfit, adapted, rules};

/// A tool of a public report.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The report, and what is special about the schema.
    source: String,
    tool: String,
    schema: Value,
    /// The arguments of a good call.
    call: Option<Value>,
}

/// Returns the cases of every file, with the names of their files.
fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut cases = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let read: Vec<Case> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        cases.extend(read.into_iter().map(|case| (name.clone(), case)));
    }
    cases
}

#[test]
fn every_provider_takes_every_schema_or_the_tool_is_left_out() {
    let cases = cases();
    assert!(cases.len() >= 120, "{} cases", cases.len());
    for (file, case) in &cases {
        assert!(case.source.ends_with('.'), "{}", case.source);
        for reader in SchemaReader::ALL {
            let adapted = adapted(reader, &case.schema);
            if file == "unfit" {
                assert_eq!(
                    adapted.err(),
                    Some(Unfit::NoObject),
                    "{reader:?}: {}",
                    case.source
                );
                continue;
            }
            let adapted =
                adapted.unwrap_or_else(|reason| panic!("{reader:?}: {}: {reason}", case.source));
            let name = rules(reader).tool_name(&case.tool);
            let problems = reader.problems(&name, &adapted.schema);
            assert!(
                problems.is_empty(),
                "{reader:?}: {}: {problems:?}\n{}",
                case.source,
                adapted.schema
            );
        }
    }
}

/// A validator without objections would pass every schema.
#[test]
fn every_file_has_a_schema_that_some_provider_refuses_as_written() {
    for file in [
        "outermost",
        "lists",
        "tuples",
        "choices",
        "names",
        "references",
        "types",
        "drafts",
        "bare",
        "tool_names",
    ] {
        for reader in SchemaReader::ALL {
            let of_file = cases().into_iter().filter(|(name, _)| name == file);
            let refused =
                of_file.filter(|(_, case)| !reader.problems(&case.tool, &case.schema).is_empty());
            let count = refused.count();
            let is_lenient = reader == SchemaReader::Mistral
                || file == "tool_names"
                    && reader != SchemaReader::Gemini
                    && reader != SchemaReader::Moonshot
                || file == "names" && reader == SchemaReader::OpenAi;
            assert!(
                count > 0 || is_lenient,
                "{reader:?} takes every schema of {file}"
            );
        }
    }
}

/// A model that obeys the adapted schema can make every call that the tool's own schema allows.
#[test]
fn a_good_call_fits_the_adapted_schema_and_finds_its_way_back() {
    let mut checked = 0;
    for (_, case) in cases() {
        let Some(call) = &case.call else {
            continue;
        };
        if let Ok(own) = Schema::compile_any_draft(&case.schema) {
            assert_eq!(own.problems(call), None, "{}", case.source);
        }
        for reader in SchemaReader::ALL {
            let adapted = adapted(reader, &case.schema).unwrap();
            let arguments = Json::of(call);
            let shown = adapted.renamed.shown(&arguments);
            let schema = Schema::compile(&adapted.schema).unwrap();
            // Providers with few keywords read no lists of lists in any value.
            let problems = schema.problems(&shown.to_value());
            assert_eq!(
                problems, None,
                "{reader:?}: {}: {}",
                case.source, adapted.schema
            );
            assert_eq!(
                adapted.renamed.restored(&shown).as_str(),
                arguments.as_str(),
                "{}",
                case.source
            );
            checked += 1;
        }
    }
    assert!(checked > 500, "{checked}");
}

#[test]
fn a_schema_of_more_bytes_than_a_request_has_room_for_is_left_out() {
    let properties: serde_json::Map<String, Value> = (0..700)
        .map(|number| {
            (
                format!("property_{number}"),
                json!({"type": "string", "description": "x".repeat(100)}),
            )
        })
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    for reader in SchemaReader::ALL {
        assert_eq!(adapted(reader, &schema).err(), Some(Unfit::TooLarge));
    }
}
