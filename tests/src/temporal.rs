//! One Temporal dev server for all tests of a binary, and the `temporal` CLI.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Output,
    sync::OnceLock,
};

use everturn_worker::dev::{TemporalOptions, TemporalServer};
use serde_json::Value;
use temporalio_client::Client;
use tokio::{process::Command, sync::OnceCell};
use tokio_util::sync::CancellationToken;

/// A running server. It ends with the test binary: its supervisor's standard input closes then.
pub struct Temporal {
    port: u16,
    _server: TemporalServer,
}

static SHARED: OnceCell<Temporal> = OnceCell::const_new();

/// The server that all tests of this binary share; each test has a task queue of its own.
pub async fn shared() -> &'static Temporal {
    SHARED
        .get_or_init(|| async {
            let port = free_port();
            let log = std::env::temp_dir().join(format!("everturn-test-temporal-{}.log", std::process::id()));
            let options = TemporalOptions { binary: binary(), port, database: None, log, has_ui: false };
            let server = TemporalServer::start(&options).unwrap();
            let temporal = Temporal { port, _server: server };
            let client = temporal.client().await;
            everturn_worker::connections::register_search_attributes(&client).await.unwrap();
            temporal
        })
        .await
}

/// A port nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The `temporal` binary: as the environment says, the project's own, or the one on PATH.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        if let Some(binary) = std::env::var_os("EVERTURN_TEMPORAL_BIN") {
            return binary.into();
        }
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin/temporal");
        if own.is_file() { own } else { PathBuf::from("temporal") }
    };
    BINARY.get_or_init(find).clone()
}

impl Temporal {
    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A client, once the server answers.
    pub async fn client(&self) -> Client {
        everturn_worker::connections::local_temporal(self.port, &CancellationToken::new()).await.unwrap()
    }

    /// Runs the CLI.
    pub async fn cli(&self, args: &[&str]) -> Output {
        cli(&self.address(), args).await
    }

    /// Runs the CLI, which must succeed, and reads its JSON.
    pub async fn json(&self, args: &[&str]) -> Value {
        let args: Vec<_> = args.iter().copied().chain(["--output", "json"]).collect();
        let output = self.cli(&args).await;
        assert!(output.status.success(), "temporal {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The history of a workflow's latest run, as the CLI's JSON.
    pub async fn history(&self, workflow_id: &str) -> Value {
        self.json(&["workflow", "show", "--workflow-id", workflow_id]).await
    }
}

/// Runs the CLI against a server.
pub async fn cli(address: &str, args: &[&str]) -> Output {
    Command::new(binary()).args(args).args(["--address", address]).output().await.unwrap()
}
