//! The schema of an agent's answers.

use std::fs;

use super::{PROVIDER, assert_errors, parse};

const AGENT: &str =
    "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n[agents.default.output]\n";

fn output(text: &str) -> everturn_proto::turn::AgentOutput {
    let config = parse(&format!("{PROVIDER}{AGENT}{text}"), &[("KEY", "secret")]).unwrap();
    config.agents[0].output.clone().unwrap()
}

#[test]
fn a_schema_is_written_as_a_table_or_as_json() {
    let table = output("schema = { type = \"object\", required = [\"n\"] }\n");
    assert_eq!(
        (table.name.as_str(), table.as_instruction),
        ("answer", false)
    );
    let schema = table.schema.unwrap().to_value();
    assert_eq!(schema["required"][0], "n");
    let json = output(
        "schema = '''{\"type\": \"object\",\n \"required\": [\"n\"]}'''\nname = \"count\"\nas_instruction = true\n",
    );
    assert_eq!((json.name.as_str(), json.as_instruction), ("count", true));
    assert_eq!(json.schema.unwrap().to_value(), schema);
}

#[test]
fn properties_keep_the_order_of_their_author() {
    for properties in [
        "schema = { type = \"object\", properties = { reason = {}, certainty = {}, answer = {} } }\n",
        "schema = '{\"type\":\"object\",\"properties\":{\"reason\":{},\"certainty\":{},\"answer\":{}}}'\n",
    ] {
        let schema = output(properties).schema.unwrap();
        let expected =
            "{\"type\":\"object\",\"properties\":{\"reason\":{},\"certainty\":{},\"answer\":{}}}";
        assert_eq!(schema.as_str(), expected);
    }
}

#[test]
fn without_a_schema_any_object_is_an_answer() {
    assert_eq!(output("name = \"n\"\n").schema, None);
}

#[test]
fn a_schema_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answer.json");
    fs::write(&file, "{\"type\": \"object\"}").unwrap();
    let path = file.display();
    let read = output(&format!("schema_file = \"{path}\"\n"));
    assert_eq!(read.schema.unwrap().as_str(), "{\"type\":\"object\"}");
}

#[test]
fn what_cannot_be_used_is_told() {
    let cases = [
        (
            "schema = { type = \"object\" }\nschema_file = \"x.json\"\n",
            "has `schema` and also `schema_file`",
        ),
        ("schema_file = \"none.json\"\n", "cannot be read"),
        ("schema = \"{\"\n", "it is not JSON"),
        (
            "schema = { type = \"array\" }\n",
            "the schema must have `\"type\": \"object\"`",
        ),
        (
            "schema = { type = \"object\", required = 1 }\n",
            "the schema of `output` cannot be used",
        ),
        (
            "schema = { type = \"object\" }\nname = \"a b\"\n",
            "`name` of an output has 1 to 64 letters",
        ),
    ];
    let with_agent = |(text, expected): (&str, _)| (format!("{PROVIDER}{AGENT}{text}"), expected);
    assert_errors(&cases.map(with_agent));
    let title = "x".repeat(64 * 1024);
    let long = format!("schema = {{ type = \"object\", title = \"{title}\" }}\n");
    assert_errors(&[with_agent((&long, "the limit is 65536"))]);
}
