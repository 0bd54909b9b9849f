//! Fuzzes the API with schemathesis, a program that knows nothing but the OpenAPI document.

use std::{
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use tokio::process::Command;

use crate::embedded::keys::{AUTH, create};

/// Time limit of the program. Its own limit is shorter, but it may have to wait for other tests.
const FUZZING_LIMIT: Duration = Duration::from_secs(300);

/// Characters of each line of its report that are shown, because it prints bodies of any length.
const LINE: usize = 400;

#[tokio::test]
async fn no_answer_is_outside_the_document() {
    fuzz("read,write,approve", &[]).await;
}

/// An admin without an owner cannot be refused, so every request of the program reaches its endpoint. The key of the program
/// must not be revoked, so the revocation of keys is left out.
#[tokio::test]
async fn no_answer_to_an_admin_is_outside_the_document() {
    let operations = [
        "read_audit",
        "list_failures",
        "count_failures",
        "list_keys",
        "create_key",
        "list_refused_owners",
        "change_owner",
        "list_tenants",
    ];
    let only = operations.map(|operation| ["--include-operation-id", operation]);
    let args = [&only.concat()[..], &["--max-time", "20"]].concat();
    fuzz("read,write,admin", &args).await;
}

/// Sends what the document allows and does not allow, with a key of these scopes.
async fn fuzz(scopes: &str, args: &[&str]) {
    let model = Model::start(|_: &Request| Reply::text("Yes.")).await;
    let openai = format!(
        "[providers.openai]\nkind = \"openai\"\nbase_url = \"{}\"\n",
        model.base_url()
    );
    // The document's example of a chosen model.
    let stack = Stack::with_agent(model, "models = [\"openai/gpt-5-mini\"]").await;
    stack.configure(&format!("{AUTH}\n{openai}"));
    let key = create(&stack, &["--tenant", "acme", "--scope", scopes]).await;
    let _running = stack.start().await;
    let run = program("schemathesis")
        .env("SCHEMATHESIS_HOOKS", here().join("hooks.py"))
        .arg("--config-file")
        .arg(here().join("schemathesis.toml"))
        .arg("run")
        // The program reads the document from a file. The gateway serves the same document, but when the program loads
        // it from there, it does not test the endpoint that serves it.
        .arg(here().join("../../../../../docs/openapi.json"))
        .args([
            "--url",
            &stack.url(),
            "--header",
            &format!("Authorization: Bearer {key}"),
        ])
        .args(args)
        .current_dir(stack.directory())
        .output();
    let output = tokio::time::timeout(FUZZING_LIMIT, run)
        .await
        .expect("schemathesis ends")
        .unwrap();
    expect_success(&output);
}

#[tokio::test]
async fn only_what_is_no_fault_is_dropped() {
    let run = program("python")
        .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
        .arg(here())
        .output();
    expect_success(&run.await.unwrap());
}

/// Returns the folder of this file.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/embedded/api")
}

/// Returns a command of a program of the virtual environment.
fn program(name: &str) -> Command {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = tests.join("../.tools/venv/bin").join(name);
    assert!(
        program.is_file(),
        "{} is missing: run `make python`",
        program.display()
    );
    let mut command = Command::new(program);
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true);
    command
}

/// Expects that a program ended well; else fails with what it wrote.
fn expect_success(output: &Output) {
    let report = String::from_utf8_lossy(&output.stdout);
    let report: Vec<String> = report
        .lines()
        .map(|line| line.chars().take(LINE).collect())
        .collect();
    assert!(
        output.status.success(),
        "{}\n{}",
        report.join("\n"),
        String::from_utf8_lossy(&output.stderr)
    );
}
