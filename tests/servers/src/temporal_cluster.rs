//! The production Temporal server: all four services in one process, on PostgreSQL.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, ensure};
use everturn_supervisor::Signal;
use tokio::process::Command;

use crate::{
    account,
    ports::free_port,
    postgres::{self, Postgres},
    server::{Server, ServerLocation, ServerSpec},
    temporal_cli,
};

/// Databases in PostgreSQL, with the schema of each in the tool.
const DATABASES: [(&str, &str); 2] = [
    ("temporal", "postgresql/v12/temporal"),
    ("temporal_visibility", "postgresql/v12/visibility"),
];

const NAMESPACE: &str = "default";

/// The settings are those of the dev server (`everturn_worker::dev`), but for the time between two runs of a workflow:
/// tests meet the engine's own, a second, as whoever cannot change it. The namespace cache is what the services learn of
/// new search attributes from.
const DYNAMIC_CONFIG: &str = "\
history.transferProcessorMaxPollRPS: [{value: 2000}]
history.timerProcessorMaxPollRPS: [{value: 2000}]
matching.numTaskqueueReadPartitions: [{value: 1}]
matching.numTaskqueueWritePartitions: [{value: 1}]
system.enableActivityEagerExecution: [{value: true}]
system.namespaceCacheRefreshInterval: [{value: 500ms}]
";

/// A running server.
#[derive(Debug)]
pub struct TemporalCluster {
    server: Server,
    port: u16,
    http_port: u16,
}

/// Two ports of each service: gRPC and membership. The frontend has a port for HTTP, too.
struct Ports {
    http: u16,
    frontend: (u16, u16),
    history: (u16, u16),
    matching: (u16, u16),
    worker: (u16, u16),
}

impl TemporalCluster {
    /// Prepares its databases, starts it, and waits until it has the namespace `default`. `dynamic_config` has lines of
    /// YAML that are added to what every such server has.
    pub async fn start(
        postgres: &Postgres,
        location: ServerLocation,
        dynamic_config: &str,
    ) -> anyhow::Result<Self> {
        let program = tool("temporal-server")?;
        let [one, two] = DATABASES.map(|(name, schema)| prepare_database(postgres, name, schema));
        tokio::try_join!(one, two)?;
        let (directory, ports, is_scratch) = match location {
            ServerLocation::Scratch | ServerLocation::Measured => {
                (account::scratch("temporal", None)?, Ports::free(), true)
            }
            ServerLocation::Lasting { directory, port } => {
                account::lasting(&directory, None)?;
                (directory, Ports::from(port), false)
            }
        };
        write_config(&directory, postgres, &ports, dynamic_config)?;
        let root = directory.display().to_string();
        let args = [
            "--root",
            &root,
            "--config",
            ".",
            "--env",
            "everturn",
            "--allow-no-auth",
            "start",
        ];
        let server = Server::new(ServerSpec {
            name: "Temporal",
            program,
            args: args.map(str::to_owned).to_vec(),
            // What is thrown away need not leave its cluster in order.
            stop: if is_scratch {
                Signal::SIGKILL
            } else {
                Signal::SIGTERM
            },
            directory,
            is_scratch,
            account: None,
        })?;
        server.start().await?;
        let cluster = Self {
            server,
            port: ports.frontend.0,
            http_port: ports.http,
        };
        cluster.answers(|| cluster.create_namespace()).await?;
        Ok(cluster)
    }

    /// Port of the frontend on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Port of the frontend's HTTP API on 127.0.0.1.
    pub fn http_port(&self) -> u16 {
        self.http_port
    }

    /// kill -9, and a start on the same databases.
    pub async fn restart(&self) {
        self.server.end(Signal::SIGKILL).await.unwrap();
        self.server.start().await.unwrap();
        self.answers(|| self.create_namespace()).await.unwrap();
    }

    /// Waits until `probe` succeeds; fails with the end of the log when it does not in time.
    pub async fn answers<F: Future<Output = anyhow::Result<()>>>(
        &self,
        probe: impl FnMut() -> F,
    ) -> anyhow::Result<()> {
        self.server.answers(probe).await
    }

    /// Stops it and waits until it is gone.
    pub async fn stop(&self) {
        self.server.stop().await;
    }

    /// Waits for it to end by itself, which it should not.
    pub async fn ended(&self) -> anyhow::Error {
        self.server.ended().await
    }

    /// Where it runs, with its configuration and its log.
    pub fn directory(&self) -> &Path {
        self.server.directory()
    }

    async fn create_namespace(&self) -> anyhow::Result<()> {
        let address = format!("127.0.0.1:{}", self.port);
        let args = [
            "operator",
            "namespace",
            "create",
            "--namespace",
            NAMESPACE,
            "--retention",
            "1d",
        ];
        let output = temporal_cli::cli(&address, &args).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_there = output.status.success() || errors.to_lowercase().contains("already");
        ensure!(
            is_there,
            "cannot create the namespace {NAMESPACE}: {errors}"
        );
        Ok(())
    }
}

/// Ports on 127.0.0.1 that a server with this port takes, when it is one that stays.
pub fn lasting_ports(port: u16) -> [u16; 9] {
    let ports = Ports::from(port);
    let pairs = [ports.frontend, ports.history, ports.matching, ports.worker];
    let [one, two, three, four] = pairs.map(|(grpc, membership)| [grpc, membership]);
    [
        ports.http, one[0], one[1], two[0], two[1], three[0], three[1], four[0], four[1],
    ]
}

impl Ports {
    fn free() -> Self {
        let pair = || (free_port(), free_port());
        Self {
            http: free_port(),
            frontend: pair(),
            history: pair(),
            matching: pair(),
            worker: pair(),
        }
    }

    /// Returns ports that have the same distances from `port` as Temporal's own defaults have from 7233. A server that is
    /// started again on the same database finds there the members that the database names.
    fn from(port: u16) -> Self {
        let pair = |step: u16| (port + step, port - 300 + step);
        Self {
            http: port + 10,
            frontend: pair(0),
            history: pair(1),
            matching: pair(2),
            worker: pair(6),
        }
    }
}

/// A program that `make temporal-server` installs.
fn tool(name: &str) -> anyhow::Result<PathBuf> {
    temporal_cli::tool(name)
        .canonicalize()
        .with_context(|| format!("{name} is missing: run `make temporal-server` in the project"))
}

async fn prepare_database(postgres: &Postgres, name: &str, schema: &str) -> anyhow::Result<()> {
    // What was interrupted half-way goes on where it was.
    if postgres.connect(name).await.is_err() {
        sql_tool(
            postgres,
            name,
            &["create-database", "--defaultdb", "postgres"],
        )
        .await?;
    }
    if postgres
        .execute(name, "SELECT 1 FROM schema_version")
        .await
        .is_err()
    {
        sql_tool(postgres, name, &["setup-schema", "--version", "0.0"]).await?;
    }
    sql_tool(postgres, name, &["update-schema", "--schema-name", schema]).await
}

async fn sql_tool(postgres: &Postgres, database: &str, args: &[&str]) -> anyhow::Result<()> {
    let port = postgres.port().to_string();
    let output = Command::new(tool("temporal-sql-tool")?)
        .args([
            "--plugin",
            "postgres12",
            "--endpoint",
            "127.0.0.1",
            "--port",
            &port,
            "--user",
            postgres::USER,
        ])
        .args(["--database", database])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .await?;
    let text = || {
        [output.stdout.as_slice(), &output.stderr]
            .map(String::from_utf8_lossy)
            .concat()
    };
    ensure!(
        output.status.success(),
        "temporal-sql-tool {args:?} failed for {database}: {}",
        text()
    );
    Ok(())
}

fn write_config(
    directory: &Path,
    postgres: &Postgres,
    ports: &Ports,
    dynamic_config: &str,
) -> anyhow::Result<()> {
    let dynamic = directory.join("dynamic.yaml");
    fs::write(&dynamic, format!("{DYNAMIC_CONFIG}{dynamic_config}"))?;
    let datastore = |store: &str, database: &str, connections: u32| {
        format!(
            "    {store}:\n      sql:\n        pluginName: postgres12\n        databaseName: {database}\n        \
             connectAddr: 127.0.0.1:{}\n        connectProtocol: tcp\n        user: {}\n        \
             maxConns: {connections}\n        maxIdleConns: {connections}\n        maxConnLifetime: 1h\n",
            postgres.port(),
            postgres::USER,
        )
    };
    let service = |name: &str, (grpc, membership): (u16, u16), http: Option<u16>| {
        let http = http.map_or_else(String::new, |port| format!("httpPort: {port}\n      "));
        format!(
            "  {name}:\n    rpc:\n      grpcPort: {grpc}\n      membershipPort: {membership}\n      \
             {http}bindOnIP: 127.0.0.1\n"
        )
    };
    let config = format!(
        "log:\n  stdout: true\n  level: warn\n\
         persistence:\n  defaultStore: default\n  visibilityStore: visibility\n  numHistoryShards: 4\n  datastores:\n\
         {}{}\
         global:\n  membership:\n    maxJoinDuration: 30s\n    broadcastAddress: 127.0.0.1\n\
         services:\n{}{}{}{}\
         clusterMetadata:\n  enableGlobalNamespace: false\n  failoverVersionIncrement: 10\n  \
         masterClusterName: active\n  currentClusterName: active\n  clusterInformation:\n    active:\n      \
         enabled: true\n      initialFailoverVersion: 1\n      rpcName: frontend\n      \
         rpcAddress: 127.0.0.1:{}\n\
         dynamicConfigClient:\n  filepath: {}\n  pollInterval: 10s\n",
        datastore("default", DATABASES[0].0, 20),
        datastore("visibility", DATABASES[1].0, 10),
        service("frontend", ports.frontend, Some(ports.http)),
        service("history", ports.history, None),
        service("matching", ports.matching, None),
        service("worker", ports.worker, None),
        ports.frontend.0,
        dynamic.display(),
    );
    fs::write(directory.join("everturn.yaml"), config)
        .context("cannot write Temporal's configuration")
}
