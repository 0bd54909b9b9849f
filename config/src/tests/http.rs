//! `[tools.NAME]`: endpoints as tools.

use std::{fs, time::Duration};

use super::{PROVIDER, assert_errors, error, parse, tools};
use crate::{Config, ReadBy};

const TOOL: &str = "[tools.users]\ndescription = \"Finds users.\"\n";

#[test]
fn an_endpoint_becomes_a_tool() {
    let text = format!(
        "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"users\"]\n{TOOL}method = \"POST\"\n\
         url = \"https://api.example.com/users/{{id}}\"\n\
         input = {{ properties = {{ id = {{ type = \"integer\" }}, name = {{ type = \"string\" }} }}, required = [\"id\"] }}\n\
         signing = {{ key_id = \"2026-11\", secret_env = \"SIGNING\" }}\n\
         auth = {{ bearer_env = \"TOKEN\", headers_env = {{ x-api-key = \"KEY\" }} }}\nheaders = {{ accept = \"text/csv\" }}\n\
         effect = \"idempotent\"\ntimeout = \"2m\"\nmax_response_bytes = 20000\nidempotency_header = \"X-Request-Id\"\n\
         [egress]\nallow = [\"10.1.0.0/16\", \"localhost:8080\"]\n"
    );
    let environment = [
        ("KEY", "secret-key"),
        ("TOKEN", "secret-token"),
        ("SIGNING", "secret-of-at-least-thirty-two-characters"),
    ];
    let config = parse(&text, &environment).unwrap();
    let tool = &config.http_tools[0];
    assert_eq!(
        (tool.spec.name.as_str(), tool.spec.effect.as_str()),
        ("users", "idempotent")
    );
    assert_eq!(tool.spec.parameters["type"], "object");
    assert_eq!(
        (tool.timeout, tool.max_response_bytes),
        (Duration::from_secs(120), 20_000)
    );
    assert_eq!(
        (
            tool.headers["accept"].as_bytes(),
            tool.idempotency_header.as_str()
        ),
        (&b"text/csv"[..], "x-request-id")
    );
    assert_eq!(tool.secrets["authorization"], "Bearer secret-token");
    assert_eq!(tool.secrets["x-api-key"], "secret-key");
    let signing = tool.signing.as_ref().unwrap();
    assert_eq!(
        (signing.id.as_str(), signing.secret.as_str()),
        ("2026-11", environment[2].1)
    );
    assert_ne!(
        config.egress,
        everturn_tools::egress::EgressPolicy::default()
    );
    assert!(
        !format!("{config:?}").contains("secret-"),
        "secrets stay out of logs"
    );
}

#[test]
fn a_tool_needs_little() {
    let text = format!("{TOOL}url = \"https://api.example.com/users\"\n");
    let tool = &parse(&text, &[]).unwrap().http_tools[0];
    assert_eq!(
        (tool.method.as_str(), tool.spec.effect.as_str()),
        ("GET", "read")
    );
    assert_eq!(tool.idempotency_header.as_str(), "idempotency-key");
    let delete = parse(&format!("{text}method = \"DELETE\"\n"), &[]).unwrap();
    assert_eq!(
        delete.http_tools[0].spec.effect.as_str(),
        "once",
        "but for GET, a tool must not run twice"
    );
}

#[test]
fn a_probe_is_another_http_tool_that_only_reads() {
    let file = |of_pay: &str, more: &str| {
        format!(
            "[tools.pay]\ndescription = \"Pays.\"\nurl = \"https://h/pay\"\nmethod = \"POST\"\n{of_pay}\n\
             [tools.find]\ndescription = \"Finds.\"\nurl = \"https://h/find\"\n{more}\n"
        )
    };
    let config = parse(&file("probe = \"find\"", ""), &[]).unwrap();
    let probes: Vec<_> = config
        .http_tools
        .iter()
        .map(|it| it.probe.as_deref())
        .collect();
    assert_eq!(probes, [None, Some("find")]);
    assert_errors(&[
        (
            file("probe = \"nobody\"", ""),
            "the probe `nobody` is no tool of `[tools]`",
        ),
        (
            file("probe = \"find\"", "effect = \"once\""),
            "the probe `find` has the effect `once`",
        ),
        (
            file("probe = \"find\"", "probe = \"pay\""),
            "`probe` belongs to a tool with the effect `once`",
        ),
        (
            file("probe = \"find\"\neffect = \"idempotent\"", ""),
            "a tool with the effect `idempotent` runs again instead",
        ),
        (
            file("probe = \"pay\"", ""),
            "the probe `pay` has a probe itself",
        ),
    ]);
}

#[test]
fn a_wrong_tool_is_explained() {
    let url = "url = \"https://h/{id}?q={q}\"\n";
    let input = "input = { properties = { id = {}, q = {} }, required = [\"id\"] }\n";
    assert_errors(&[
        (
            format!("{TOOL}url = \"https://{{h}}/\"\n"),
            "3:7: `url` cannot be used: an input cannot be part of the host",
        ),
        (format!("{TOOL}{url}"), "`{id}` is no property of `input`"),
        (
            format!("{TOOL}{url}{input}title = \"Look up {{ids}}\"\n"),
            "`{ids}` is no property of `input`",
        ),
        (
            format!("{TOOL}{url}input = {{ properties = {{ id = {{}}, q = {{}} }} }}\n"),
            "put it into `required`",
        ),
        (
            format!("{TOOL}url = \"https://h/\"\n{input}"),
            "`id` of `input` has no place in `url`, and a GET has no body",
        ),
        (
            format!("{TOOL}{url}{input}method = \"TRACE\"\n"),
            "5:10: `method` has \"TRACE\", but the choices are: GET, POST",
        ),
        (
            format!("{TOOL}{url}{input}effect = \"twice\"\n"),
            "5:10: `effect` has \"twice\", but the choices are: read,",
        ),
        (
            format!("{TOOL}{url}{input}timeout = \"2h\"\n"),
            "5:11: `timeout` must be from 1s to 1h",
        ),
        (
            format!("{TOOL}{url}{input}max_response_bytes = 0\n"),
            "5:22: `max_response_bytes` must be from 16384 to 1048576",
        ),
    ]);
}

#[test]
fn wrong_headers_secrets_and_schemas_of_a_tool_are_explained() {
    let url = "url = \"https://h/{id}?q={q}\"\n";
    let input = "input = { properties = { id = {}, q = {} }, required = [\"id\"] }\n";
    assert_errors(&[
        (
            format!("{TOOL}{url}{input}headers = {{ Authorization = \"x\" }}\n"),
            "`authorization` cannot be set here",
        ),
        (
            format!("{TOOL}{url}{input}headers = {{ \"a b\" = \"x\" }}\n"),
            "`a b` is no name of a header",
        ),
        (
            format!("{TOOL}{url}{input}headers = {{ a = \"x\\ny\" }}\n"),
            "holds characters that no header has",
        ),
        (
            format!("{TOOL}{url}{input}auth = {{ bearer_env = \"NOPE\" }}\n"),
            "the environment variable NOPE named by",
        ),
        (
            format!("{TOOL}{url}{input}auth = {{ bearer = \"x\" }}\n"),
            "unknown field `bearer`",
        ),
        (
            format!("{TOOL}{url}{input}headers = {{ Everturn-Tenant-Id = \"x\" }}\n"),
            "`Everturn-Tenant-Id` cannot be set here",
        ),
        (
            format!("{TOOL}{url}{input}signing = {{ key_id = \"a b\", secret_env = \"NOPE\" }}\n"),
            "`key_id` has 1 to 64 letters",
        ),
        (
            format!("{TOOL}{url}{input}signing = {{ key_id = \"a\", secret_env = \"NOPE\" }}\n"),
            "the environment variable NOPE named by `secret_env`",
        ),
        (
            format!("{TOOL}{url}{input}input_file = \"x.json\"\n"),
            "keep one",
        ),
        (
            format!("{TOOL}{url}input_file = \"no_such_file.json\"\n"),
            "`input_file` no_such_file.json cannot be used",
        ),
        (
            format!("[tools.t]\ndescription = \" \"\n{url}{input}"),
            "2:15: `description` must not be empty",
        ),
        (
            format!("[tools.calculate]\ndescription = \"x\"\n{url}{input}"),
            "1:8: there already is a tool `calculate`",
        ),
        (
            "[egress]\nallow = [\"10.0.0.1/8\"]\n".to_owned(),
            "2:10: `10.0.0.1/8` cannot be allowed: the network has bits behind",
        ),
    ]);
    let message = error(&format!(
        "{TOOL}{url}{input}auth = {{ bearer_env = \"sk-abc123\" }}\n"
    ));
    assert!(!message.contains("abc123"), "{message}");
}

#[test]
fn a_schema_may_be_in_a_file_of_its_own() {
    let directory = std::env::temp_dir().join(format!("everturn-schema-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        directory.join("id.json"),
        r#"{"properties": {"id": {"type": "integer"}}, "required": ["id"]}"#,
    )
    .unwrap();
    fs::write(
        directory.join("everturn.toml"),
        format!("{TOOL}url = \"https://h/{{id}}\"\ninput_file = \"id.json\"\n"),
    )
    .unwrap();
    let config = Config::load(Some(&directory.join("everturn.toml")), &tools()).unwrap();
    assert_eq!(
        config.http_tools[0].spec.parameters["properties"]["id"]["type"],
        "integer"
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_gateway_leaves_tools_to_the_workers() {
    let text = format!(
        "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"of_another_binary\"]\n\
         {TOOL}url = \"https://h/\"\ninput_file = \"not_here.json\"\n"
    );
    let config = Config::parse(&text, "everturn.toml", ReadBy::Gateway).unwrap();
    assert_eq!(config.agents[0].tools[0].name, "of_another_binary");
    assert!(config.http_tools.is_empty());
}
