//! The Temporal dev server as a child process that ends with its parent.

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

/// How the server ends: by SIGTERM, and killed when it does not within the grace period.
const END: GroupEnd = GroupEnd {
    signal: Signal::SIGTERM,
    grace: Duration::from_secs(10),
    scratch: None,
};

/// The port of the web UI of a server on this port.
pub(super) fn ui_port(port: u16) -> u16 {
    port.saturating_add(1000)
}

/// Settings of the dev server. Without them each activity waits 50 ms for its one shard, messages that wait have one turn
/// a second (docs/engine.md, continue-as-new waits for a second), and the database file is synced on every write.
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

/// How long a server may take to end after whoever started it: its grace period, and the time of who ends it.
const LAST_ENDS: Duration = Duration::from_secs(20);

/// The pause between two looks whether the last server has ended.
const LAST_ENDS_POLL: Duration = Duration::from_millis(50);

/// The file for what a server prints. The server holds a lock on it until it has ended, however it ends.
///
/// When whoever started a server is killed, the server ends a moment later. In between it still answers on its port, and
/// must not be taken for one that stays.
#[derive(Debug)]
pub struct ServerLog {
    file: File,
    path: PathBuf,
}

impl ServerLog {
    /// Waits until the last server that printed to this file has ended, and empties the file. Fails when that server
    /// does not end.
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
                    "the Temporal server of an everturn dev that has ended still runs, and prints to {}. Stop it, or \
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

/// Takes the lock; false when somebody else has it.
fn try_lock(file: &File) -> std::io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// What to start.
#[derive(Debug, Clone)]
pub struct TemporalOptions {
    /// The `temporal` binary.
    pub binary: PathBuf,
    /// Port on 127.0.0.1.
    pub port: u16,
    /// The server's database; `None` keeps everything in memory.
    pub database: Option<PathBuf>,
    /// Whether to serve the web UI, on port + 1000.
    pub has_ui: bool,
    /// More dynamic configuration, each `key=value`.
    pub dynamic_config: Vec<String>,
    /// Port on 127.0.0.1 for the server's metrics in the Prometheus format; `None` has no such port.
    pub metrics_port: Option<u16>,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct TemporalServer {
    program: Program,
    log: PathBuf,
}

impl TemporalServer {
    /// True when something listens on the port.
    pub async fn is_running(port: u16) -> bool {
        TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    }

    /// Starts the server; it is not ready yet. What it prints goes to `log`.
    pub fn start(options: &TemporalOptions, log: ServerLog) -> anyhow::Result<Self> {
        let binary = find(&options.binary)?;
        let mut command = Command::new(binary);
        // It needs no key of ours, and what is in its environment can be read in /proc.
        command.env_clear().envs(inherited(&COMMON_VARIABLES));
        command.args(["server", "start-dev", "--ip", "127.0.0.1"]);
        command
            .args(["--port", &options.port.to_string(), "--log-level", "warn"])
            .args(TUNING);
        if let Some(database) = &options.database {
            command.arg("--db-filename").arg(database);
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
        // Both have the lock of the file, until the server has closed both.
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

    /// Waits for the server to end by itself, which it should not.
    pub async fn ended(&mut self) -> anyhow::Error {
        let status = self.program.ended().await;
        anyhow::anyhow!(
            "the Temporal server ended ({status:?}); see {}",
            self.log.display()
        )
    }

    /// Stops the server and waits until it is gone.
    pub async fn stop(mut self) {
        self.program.stop().await;
    }
}

/// Finds the binary. When it is missing, the error says what to do.
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
        "cannot find the `{}` binary. Run `make temporal` in the project (it installs it into .tools/bin), put it on \
         PATH, or name it with --temporal-bin",
        binary.display()
    )
}
