//! Starts one Temporal server for all tests of a binary, the dev server or the production one, and runs the `temporal`
//! CLI.
//!
//! - `reads`: reads workflows over the server's HTTP API

mod reads;

use std::{collections::BTreeMap, path::Path, process::Output, sync::Mutex};

use everturn_test_servers::{
    postgres::{self, Postgres},
    server::ServerLocation,
    temporal_cluster::TemporalCluster,
};
use everturn_worker::dev::{ServerLog, TemporalOptions, TemporalServer};
use serde_json::Value;
use temporalio_client::Client;
use tokio::{net::TcpStream, sync::OnceCell};
use tokio_util::sync::CancellationToken;

use crate::{backends, http, search_attributes, wait};

pub use everturn_test_servers::{
    ports::free_port,
    temporal_cli::{binary, cli},
};

/// A running Temporal server. It ends with the test binary at the latest.
pub struct Temporal {
    port: u16,
    /// The port of the server's HTTP API.
    http_port: u16,
    /// The client of the HTTP API.
    http: reqwest::Client,
    /// The port of a dev server's metrics.
    metrics_port: Option<u16>,
    /// The settings of a dev server.
    dynamic_config: Vec<String>,
    server: Server,
}

enum Server {
    /// The server, which ends when this is dropped.
    Dev(Mutex<Option<TemporalServer>>),
    Production(TemporalCluster),
}

/// Number of history events from which the servers of the tests suggest to continue as new. By default it is 4,096, and a
/// test should not have to make so many.
pub const LONG_HISTORY: usize = 120;

/// The namespace of all tests.
const NAMESPACE: &str = "default";

const LONG_HISTORY_KEY: &str = "limit.historyCount.suggestContinueAsNew";

/// The server of the tests on the embedded backends.
static DEV: OnceCell<Temporal> = OnceCell::const_new();

/// The server of the tests on the production backends.
static PRODUCTION: OnceCell<Temporal> = OnceCell::const_new();

/// Returns the server that all tests of this binary on the same backends share. Each test has a task queue of its own.
pub async fn shared() -> &'static Temporal {
    if backends::is_production() {
        let start = async || Temporal::production(&*postgres::shared().await).await;
        PRODUCTION.get_or_init(start).await
    } else {
        DEV.get_or_init(Temporal::dev).await
    }
}

/// Starts a production server, and waits until a workflow can run on it. `dynamic_config` has lines of YAML that are
/// added to its configuration.
pub async fn cluster(
    postgres: &Postgres,
    location: ServerLocation,
    dynamic_config: &str,
) -> anyhow::Result<TemporalCluster> {
    let cluster = TemporalCluster::start(postgres, location, dynamic_config).await?;
    prepare(&cluster).await?;
    Ok(cluster)
}

/// Registers the search attributes, and waits until all services know them.
async fn prepare(cluster: &TemporalCluster) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let client = tokio::select! {
        client = everturn_worker::connections::local_temporal(cluster.port(), &stop) => client?,
        error = cluster.ended() => return Err(error),
    };
    cluster
        .answers(|| search_attributes::register(&client))
        .await?;
    cluster
        .answers(|| search_attributes::are_usable(&client))
        .await
}

/// Starts a dev server that keeps everything in memory. `dynamic_config` are settings, each `key=value`.
async fn dev_server(
    [port, http_port]: [u16; 2],
    metrics_port: Option<u16>,
    dynamic_config: Vec<String>,
) -> TemporalServer {
    let log = std::env::temp_dir().join(format!("everturn-test-temporal-{port}.log"));
    let options = TemporalOptions {
        binary: binary(),
        port,
        database: None,
        has_ui: false,
        dynamic_config,
        http_port: Some(http_port),
        metrics_port,
    };
    TemporalServer::start(&options, ServerLog::take(log).await.unwrap()).unwrap()
}

impl Temporal {
    /// Starts a dev server that keeps everything in memory.
    pub async fn dev() -> Self {
        Self::dev_with(vec![format!("{LONG_HISTORY_KEY}={LONG_HISTORY}")]).await
    }

    /// Starts a dev server that keeps everything in memory, as `everturn dev` does for users.
    pub async fn measured() -> Self {
        Self::dev_with(Vec::new()).await
    }

    /// Starts a dev server that shares workers out among tenants.
    pub async fn fair() -> Self {
        Self::dev_with(vec!["matching.enableFairness=true".to_owned()]).await
    }

    /// Keeps the server until the process ends.
    pub fn lasting(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    /// Starts a dev server that keeps everything in memory, with these settings, each `key=value`.
    pub async fn dev_with(dynamic_config: Vec<String>) -> Self {
        let (port, http_port, metrics_port) = (free_port(), free_port(), Some(free_port()));
        let server = dev_server([port, http_port], metrics_port, dynamic_config.clone()).await;
        let temporal = Self {
            port,
            http_port,
            http: http::client(),
            metrics_port,
            dynamic_config,
            server: Server::Dev(Mutex::new(Some(server))),
        };
        let client = temporal.client().await;
        everturn_worker::connections::register_search_attributes(
            &client,
            &CancellationToken::new(),
        )
        .await
        .unwrap();
        temporal
    }

    /// Kills a dev server and starts an empty one on the same port: one that knows neither workflows nor search
    /// attributes.
    pub async fn lose_everything(&self) {
        self.stop().await;
        self.start_empty().await;
    }

    /// Kills a dev server at the end of a test, if it runs.
    pub fn kill(&self) {
        drop(self.dev_server().lock().unwrap().take());
    }

    /// Kills a dev server, and all that it keeps, and waits until it is gone.
    pub async fn stop(&self) {
        self.kill();
        for port in self
            .metrics_port
            .into_iter()
            .chain([self.port, self.http_port])
        {
            wait::until("the server is gone", || async {
                let connected = TcpStream::connect(("127.0.0.1", port)).await;
                connected.is_err().then_some(())
            })
            .await;
        }
    }

    /// Starts a dev server again, after [`Temporal::stop`].
    pub async fn start_empty(&self) {
        let ports = [self.port, self.http_port];
        let server = dev_server(ports, self.metrics_port, self.dynamic_config.clone()).await;
        *self.dev_server().lock().unwrap() = Some(server);
        self.client().await;
    }

    fn dev_server(&self) -> &Mutex<Option<TemporalServer>> {
        match &self.server {
            Server::Dev(server) => server,
            Server::Production(_) => panic!("the production server is shared, and keeps its data"),
        }
    }

    /// Starts a production server, which keeps its data in two databases of this PostgreSQL.
    pub async fn production(postgres: &Postgres) -> Self {
        let suggestion = format!("{LONG_HISTORY_KEY}: [{{value: {LONG_HISTORY}}}]\n");
        let cluster = cluster(postgres, ServerLocation::Scratch, &suggestion)
            .await
            .unwrap();
        Self {
            port: cluster.port(),
            http_port: cluster.http_port(),
            http: http::client(),
            metrics_port: None,
            dynamic_config: Vec::new(),
            server: Server::Production(cluster),
        }
    }

    /// Kills a production server with kill -9, and starts it on the same data.
    pub async fn restart(&self) {
        match &self.server {
            Server::Dev(_) => panic!("the dev server of tests keeps nothing"),
            Server::Production(cluster) => {
                cluster.restart().await;
                prepare(cluster).await.unwrap();
            }
        }
    }

    /// Returns the directory that a production server runs in. Its log is there, too.
    pub fn directory(&self) -> Option<&Path> {
        match &self.server {
            Server::Dev(_) => None,
            Server::Production(cluster) => Some(cluster.directory()),
        }
    }

    /// Returns how many calls with these names a dev server has got from its clients since it started.
    pub async fn calls(&self, operations: &[&str]) -> u64 {
        let counted = self.requests().await;
        let calls = operations.iter().filter_map(|name| counted.get(*name));
        calls.sum()
    }

    /// Returns how many calls of each kind a dev server has got from its clients since it started.
    pub async fn requests(&self) -> BTreeMap<String, u64> {
        let metrics = self.metrics().await;
        let of_clients = |line: &&str| {
            line.contains("namespace=\"default\"") && line.contains("service_name=\"frontend\"")
        };
        by_operation(metrics.lines().filter(of_clients), "service_requests{")
    }

    /// Returns how often a dev server has read or written its database since it started, by the name of the operation.
    pub async fn persistence(&self) -> BTreeMap<String, u64> {
        let metrics = self.metrics().await;
        by_operation(metrics.lines(), "persistence_requests{")
    }

    async fn metrics(&self) -> String {
        let port = self.metrics_port.expect("a dev server");
        let url = format!("http://127.0.0.1:{port}/metrics");
        reqwest::get(url).await.unwrap().text().await.unwrap()
    }

    /// Returns its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its address as `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns a client, once the server answers. On a busy machine a server may need longer to start than a user would
    /// wait for it.
    pub async fn client(&self) -> Client {
        wait::until("the Temporal server answers", || async {
            let stop = CancellationToken::new();
            let client = everturn_worker::connections::local_temporal(self.port, &stop);
            client.await.ok()
        })
        .await
    }

    /// Runs the `temporal` CLI against this server.
    pub async fn cli(&self, args: &[&str]) -> Output {
        cli(&self.address(), args).await
    }

    /// Runs the `temporal` CLI, which must succeed.
    pub async fn succeed(&self, args: &[&str]) -> Output {
        let output = self.cli(args).await;
        assert!(
            output.status.success(),
            "temporal {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    /// Asks with the `temporal` CLI, which must succeed, and parses its JSON. A server on a busy machine may be late, and is
    /// asked again.
    pub async fn json(&self, args: &[&str]) -> Value {
        let args: Vec<_> = args.iter().copied().chain(["--output", "json"]).collect();
        let output = wait::until("the Temporal server answers in time", || async {
            let output = self.cli(&args).await;
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() || said.contains("deadline exceeded"),
                "temporal {args:?}: {said}"
            );
            output.status.success().then_some(output)
        })
        .await;
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }
}

/// Sums the counter `metric{` of the Prometheus format by its label `operation`.
fn by_operation<'a>(lines: impl Iterator<Item = &'a str>, metric: &str) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for line in lines.filter(|line| line.starts_with(metric)) {
        let name = line
            .split_once("operation=\"")
            .and_then(|(_, rest)| rest.split_once('"'));
        let count = line
            .rsplit(' ')
            .next()
            .and_then(|count| count.parse::<u64>().ok());
        if let (Some((name, _)), Some(count)) = (name, count) {
            *counted.entry(name.to_owned()).or_default() += count;
        }
    }
    counted
}
