//! Providers as another project mocks them (npm `@copilotkit/aimock`), so that our reading of the wires is not checked by
//! our own writing of them alone.

use std::{fs, path::Path, process::Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{temporal::free_port, wait};

/// A mock of OpenAI, Anthropic and Gemini that runs. It ends when this is dropped.
pub struct Aimock {
    port: u16,
    _process: Child,
    _fixtures: Option<TempDir>,
}

impl Aimock {
    /// Starts one that answers by `tests/aimock/fixtures.json`, and waits until it listens.
    pub async fn start() -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self::reading(&tests.join("aimock/fixtures.json"), None).await
    }

    /// Starts one that answers by these fixtures (`FixtureFile` in the types of the package).
    pub async fn answering(fixtures: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fixtures.json");
        fs::write(&file, fixtures.to_string()).unwrap();
        Self::reading(&file, Some(directory)).await
    }

    async fn reading(file: &Path, directory: Option<TempDir>) -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = tests.join("../.tools/aimock/node_modules/@copilotkit/aimock/dist/cli.js");
        assert!(program.is_file(), "run `make aimock`");
        let port = free_port();
        let process = Command::new("node")
            .arg(program)
            .args(["--host", "127.0.0.1", "--log-level", "warn", "--port"])
            .arg(port.to_string())
            .arg("--fixtures")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        wait::until("the mock of providers listens", || async {
            let connection = tokio::net::TcpStream::connect(("127.0.0.1", port));
            connection.await.ok()
        })
        .await;
        Self {
            port,
            _process: process,
            _fixtures: directory,
        }
    }

    /// Returns the base URL of one of its APIs, by the path of it.
    pub fn base_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}/", self.port)
    }

    /// Returns the requests so far, with `path`, `body`, `response`, and `timestamp` in milliseconds.
    pub async fn requests(&self) -> Vec<Value> {
        let url = format!("http://127.0.0.1:{}/__aimock/journal", self.port);
        let answer = reqwest::get(url).await.unwrap();
        answer.json().await.unwrap()
    }
}
