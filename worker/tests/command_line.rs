//! The binary by its command line: `config check`, the format of logs, and exit codes.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

const PROVIDER: &str = "[providers.main]\nkind = \"openai\"\napi_key_env = \"MAIN_KEY\"\n";

/// Runs the binary in a directory, with nothing of this process's environment.
fn run(directory: &Path, args: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_everturn"))
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("HOME", directory)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// `config check` of this file: exit code and standard output.
fn check(file: &str, environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("everturn.toml"), file).unwrap();
    let output = run(directory.path(), &["config", "check"], environment);
    (output.status.code(), text(&output.stdout))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_good_configuration_is_shown_without_its_secrets() {
    let file = format!(
        "{PROVIDER}base_url = \"http://localhost:1/v1\"\n[agents.default]\nprovider = \"main\"\nmodel = \"m-1\"\n\
         tools = [\"calculate\"]\n"
    );
    let environment = [
        ("MAIN_KEY", "s3cret"),
        (
            "EVERTURN_DATABASE",
            "postgres://me:s3cret@db.example.com/e?sslmode=verify-full",
        ),
        ("EVERTURN_REDIS", "rediss://:s3cret@redis.example.com"),
        ("TEMPORAL_ADDRESS", "temporal.example.com:7233"),
        ("TEMPORAL_NAMESPACE", "agents"),
        ("TEMPORAL_API_KEY", "s3cret"),
    ];
    let (code, shown) = check(&file, &environment);
    assert_eq!(code, Some(0), "{shown}");
    for expected in [
        "✓ configuration  everturn.toml",
        "✓ gateway        127.0.0.1:8080, callers need no credential",
        "@db.example.com/e",
        "@redis.example.com",
        "temporal.example.com:7233/, namespace agents, TLS and an API key",
        "main           openai, http://localhost:1/v1, has a key",
        "default        m-1 at main, at most 20 steps of 30m",
        "tools: calculate",
    ] {
        assert!(shown.contains(expected), "{expected} is not in\n{shown}");
    }
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_connection_that_somebody_could_read_is_wrong_unless_it_is_allowed() {
    let exposed = [
        ("OPENAI_API_KEY", "s3cret"),
        ("EVERTURN_DATABASE", "postgres://me:s3cret@db.example.com/e"),
        ("EVERTURN_REDIS", "redis://:s3cret@redis.example.com"),
        ("TEMPORAL_ADDRESS", "temporal.example.com:7233"),
        ("TEMPORAL_API_KEY", "s3cret"),
        ("TEMPORAL_TLS", "false"),
    ];
    let (code, shown) = check("", &exposed);
    assert_eq!(code, Some(1), "{shown}");
    for expected in [
        "✗ database       refusing to connect to PostgreSQL at db.example.com with sslmode=prefer",
        "✗ redis          refusing to connect to Redis at redis.example.com without TLS",
        "✗ temporal       refusing to connect to Temporal at temporal.example.com without TLS",
    ] {
        assert!(shown.contains(expected), "{expected} is not in\n{shown}");
    }
    assert!(!shown.contains("s3cret"), "{shown}");
    let names = ("EVERTURN_ALLOW_PLAINTEXT", "database,redis,temporal");
    let (code, shown) = check("", &[&exposed[..], &[names]].concat());
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("an API key, and no TLS"), "{shown}");
}

#[test]
fn everything_that_is_wrong_is_listed_with_file_line_and_key() {
    let file = format!(
        "{PROVIDER}\n[agents.default]\nprovider = \"main\"\nmodel = \"m\"\nmax_steps = 0\n\
         tools = [\"calculate\", {{ name = \"calc\" }}]\n"
    );
    let environment = [
        ("EVERTURN_DATABASE", "mysql://db"),
        ("EVERTURN_REDIS", "http://redis"),
        ("EVERTURN_LISTEN", "0.0.0.0:80"),
        ("TEMPORAL_TLS_CLIENT_CERT_PATH", "/nowhere.pem"),
    ];
    let (code, shown) = check(&file, &environment);
    assert_eq!(code, Some(1), "{shown}");
    for expected in [
        "✗ configuration  everturn.toml",
        "everturn.toml:3:15  providers.main.api_key_env\n        the environment variable MAIN_KEY",
        "everturn.toml:8:13  agents.default.max_steps\n        `max_steps` must be from 1 to 1000",
        "everturn.toml:9:23  agents.default.tools\n        there is no tool `calc`",
        "✗ database       there is no store at mysql://",
        "✗ redis ",
        "✗ temporal ",
    ] {
        assert!(shown.contains(expected), "{expected} is not in\n{shown}");
    }
    let (code, shown) = check("", &environment);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("✗ gateway        refusing to listen on 0.0.0.0:80"),
        "{shown}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let (code, shown) = check("[agents\n", &[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("everturn.toml:1:"), "{shown}");
    let directory = tempfile::tempdir().unwrap();
    let output = run(
        directory.path(),
        &["config", "check", "--config", "no.toml"],
        &[],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("cannot read the configuration no.toml"));
    let output = run(directory.path(), &["config", "check"], &[]);
    assert_eq!(output.status.code(), Some(0), "no file is no mistake");
    assert!(text(&output.stdout).contains("built-in defaults"));
}

#[test]
fn with_json_each_line_of_the_log_is_an_object() {
    let directory = tempfile::tempdir().unwrap();
    let environment = [
        ("EVERTURN_LOG_FORMAT", "json"),
        ("EVERTURN_DATABASE", "mysql://db"),
    ];
    let output = run(directory.path(), &["migrate"], &environment);
    assert_eq!(output.status.code(), Some(1));
    let log = text(&output.stderr);
    let entries: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let last = entries.last().expect("an entry says why it failed");
    assert_eq!(last["level"], "ERROR", "{log}");
    assert!(
        last["error"].as_str().unwrap().contains("mysql://"),
        "{log}"
    );
}

#[test]
fn a_wrong_log_format_is_said_and_nothing_runs() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(
        directory.path(),
        &["migrate"],
        &[("EVERTURN_LOG_FORMAT", "xml")],
    );
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("`text` or as `json`") && said.contains("EVERTURN_LOG_FORMAT"),
        "{said}"
    );
}
