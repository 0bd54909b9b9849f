//! The Temporal dev server, as a child process with the lifetime of the parent.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, bail};
use everturn_proto::words::search_attribute;
use everturn_supervisor::{
    GroupEnd, Program, Signal,
    launch::{COMMON_VARIABLES, inherited},
};
use tokio::net::TcpStream;

use super::progress::Progress;

/// The end of the server: a SIGTERM, and a SIGKILL after the grace period.
const END: GroupEnd = GroupEnd {
    signal: Signal::SIGTERM,
    grace: Duration::from_secs(10),
    scratch: None,
};

/// Returns the port of the web UI of a server on `port`.
pub(super) fn ui_port(port: u16) -> u16 {
    port.saturating_add(1000)
}

/// Returns the address of a workflow's page in the web UI of a server on `port`, with the placeholder `{workflow_id}`.
/// `everturn dev` works in the namespace `default`.
pub(super) fn ui_address(port: u16) -> String {
    let port = ui_port(port);
    format!("http://127.0.0.1:{port}/namespaces/default/workflows/{{workflow_id}}")
}

/// Settings of the dev server. Without them, each activity waits 50 ms for the only shard, waiting messages get only a
/// turn per second (docs/engine.md, continue-as-new waits for a second), and every write syncs the database file.
const TUNING: [&str; 16] = [
    "--dynamic-config-value",
    "history.transferProcessorMaxPollRPS=2000",
    "--dynamic-config-value",
    "history.timerProcessorMaxPollRPS=2000",
    "--dynamic-config-value",
    "matching.numTaskqueueReadPartitions=1",
    "--dynamic-config-value",
    "matching.numTaskqueueWritePartitions=1",
    "--dynamic-config-value",
    "system.enableActivityEagerExecution=true",
    "--dynamic-config-value",
    "history.workflowIdReuseMinimalInterval=\"0s\"",
    "--sqlite-pragma",
    "journal_mode=WAL",
    "--sqlite-pragma",
    "synchronous=NORMAL",
];

/// The longest time between the end of `everturn dev` and the end of its server: the server's grace period, and the
/// time of the supervisor that ends it.
const LAST_ENDS: Duration = Duration::from_secs(20);

/// The interval of checks whether the last server has ended.
const LAST_ENDS_POLL: Duration = Duration::from_millis(50);

/// The output file of a server. The server holds a lock on the file until the server ends, even by a crash.
///
/// After `everturn dev` is killed, its server ends a moment later. In between, the server still answers on its port,
/// and must not be taken for a server that stays.
#[derive(Debug)]
pub struct ServerLog {
    file: File,
    path: PathBuf,
}

impl ServerLog {
    /// Waits until the last server of this file has ended, and empties the file. Fails when the last server does not
    /// end.
    pub async fn take(path: PathBuf) -> anyhow::Result<Self> {
        let cannot_write = || format!("cannot write {}", path.display());
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(cannot_write)?;
        if !try_lock(&file).with_context(cannot_write)? {
            let waiting = Progress::start("end of the last Temporal server");
            let locks = async {
                while !try_lock(&file).with_context(cannot_write)? {
                    tokio::time::sleep(LAST_ENDS_POLL).await;
                }
                anyhow::Ok(())
            };
            tokio::time::timeout(LAST_ENDS, locks).await.map_err(|_| {
                anyhow::anyhow!(
                    "the Temporal server of an everturn dev that has ended still runs, and prints to {}. Stop the server, or \
                     choose another --data-dir",
                    path.display()
                )
            })??;
            waiting.done("");
        }
        file.set_len(0).with_context(cannot_write)?;
        Ok(Self { file, path })
    }
}

/// Takes the lock. Returns false when another process has the lock.
fn try_lock(file: &File) -> std::io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The options of the server.
#[derive(Debug, Clone)]
pub struct TemporalOptions {
    /// The `temporal` binary.
    pub binary: PathBuf,
    /// Port on 127.0.0.1.
    pub port: u16,
    /// The server's database; `None` keeps everything in memory.
    pub database: Option<PathBuf>,
    /// True to serve the web UI, on port + 1000.
    pub has_ui: bool,
    /// Further dynamic configuration, each entry as `key=value`.
    pub dynamic_config: Vec<String>,
    /// Port on 127.0.0.1 for the server's HTTP API; `None` leaves the choice to the server.
    pub http_port: Option<u16>,
    /// Port on 127.0.0.1 for the server's metrics in Prometheus' format; `None` disables the metrics.
    pub metrics_port: Option<u16>,
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct TemporalServer {
    program: Program,
    log: PathBuf,
}

impl TemporalServer {
    /// True when a process listens on the port.
    pub async fn is_running(port: u16) -> bool {
        TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    }

    /// Starts the server, and returns before the server is ready. The server's output goes to `log`.
    pub fn start(options: &TemporalOptions, log: ServerLog) -> anyhow::Result<Self> {
        let binary = find(&options.binary)?;
        let mut command = Command::new(binary);
        // The server needs no key of ours, and other processes can read its environment in /proc.
        command.env_clear().envs(inherited(&COMMON_VARIABLES));
        command.args(["server", "start-dev", "--ip", "127.0.0.1"]);
        command
            .args(["--port", &options.port.to_string(), "--log-level", "warn"])
            .args(TUNING);
        if let Some(database) = &options.database {
            command.arg("--db-filename").arg(database);
        }
        if let Some(port) = options.http_port {
            command.args(["--http-port", &port.to_string()]);
        }
        if let Some(port) = options.metrics_port {
            command.args(["--metrics-port", &port.to_string()]);
        }
        for setting in &options.dynamic_config {
            command.args(["--dynamic-config-value", setting]);
        }
        for name in search_attribute::ALL {
            command.args(["--search-attribute", &format!("{name}=Keyword")]);
        }
        if options.has_ui {
            command.args(["--ui-port", &ui_port(options.port).to_string()]);
        } else {
            command.arg("--headless");
        }
        // Both outputs hold the lock on the file, until the server has closed them.
        command.stdout(log.file.try_clone()?).stderr(log.file);
        let mut program = Program::new(&END)?;
        program
            .start(command)
            .context("cannot start the Temporal server")?;
        Ok(Self {
            program,
            log: log.path,
        })
    }

    /// Waits for an unexpected end of the server.
    pub async fn ended(&mut self) -> anyhow::Error {
        let status = self.program.ended().await;
        anyhow::anyhow!(
            "the Temporal server ended ({status:?}); see {}",
            self.log.display()
        )
    }

    /// Stops the server and waits for its end.
    pub async fn stop(mut self) {
        self.program.stop().await;
    }
}

/// Finds the binary. If the binary is missing, the error says what to do.
fn find(binary: &Path) -> anyhow::Result<PathBuf> {
    if binary.components().count() > 1 {
        if binary.is_file() {
            return Ok(binary.to_owned());
        }
    } else if let Some(path) = std::env::var_os("PATH") {
        let found = std::env::split_paths(&path)
            .map(|directory| directory.join(binary))
            .find(|file| file.is_file());
        if let Some(found) = found {
            return Ok(found);
        }
    }
    bail!(
        "cannot find the `{}` binary. Run `make temporal` in the project (installs into .tools/bin), put the binary on \
         PATH, or give its path with --temporal-bin",
        binary.display()
    )
}

#[cfg(test)]
mod tests {
    use everturn_gateway::config::TemporalUi;

    use super::ui_address;

    #[test]
    fn a_workflow_has_a_page_in_the_web_ui() {
        let address = ui_address(7233);
        assert_eq!(
            address,
            "http://127.0.0.1:8233/namespaces/default/workflows/{workflow_id}"
        );
        TemporalUi::parse(&address).unwrap();
    }
}
