//! The Temporal dev server as a child process that never outlives its parent.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail};
use everturn_proto::words::search_attribute;
use tokio::{
    net::TcpStream,
    process::{Child, ChildStdin, Command},
};

/// Stops the server when standard input closes: when the parent drops it, exits or is killed. Ends when the server
/// has ended. In a process group of its own, a Ctrl-C in the terminal reaches only the parent, which stops the worker
/// first.
const SUPERVISE: &str = r#"
trap : TERM
exec 3<&0
"$@" </dev/null &
server=$!
( trap - TERM; cat <&3 >/dev/null; kill -TERM $server ) &
while kill -0 $server 2>/dev/null; do wait $server; done
kill -TERM 0
"#;

/// FACTS "The engine": without these each activity waits 50 ms for the dev server's one shard, and the file is
/// synced on every write.
const TUNING: [&str; 14] = [
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
    "--sqlite-pragma",
    "journal_mode=WAL",
    "--sqlite-pragma",
    "synchronous=NORMAL",
];

/// How long a stopped server may take before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// What to start.
#[derive(Debug, Clone)]
pub struct TemporalOptions {
    /// The `temporal` binary.
    pub binary: PathBuf,
    /// Port on 127.0.0.1.
    pub port: u16,
    /// The server's database; `None` keeps everything in memory.
    pub database: Option<PathBuf>,
    /// File for what it prints.
    pub log: PathBuf,
    /// Whether to serve the web UI, on port + 1000.
    pub has_ui: bool,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct TemporalServer {
    child: Child,
    /// While this is open, the server runs. Not left in `child`, whose `wait` would close it.
    leash: Option<ChildStdin>,
    log: PathBuf,
}

impl TemporalServer {
    /// True when something listens on the port.
    pub async fn is_running(port: u16) -> bool {
        TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    }

    /// Starts the server; it is not ready yet.
    pub fn start(options: &TemporalOptions) -> anyhow::Result<Self> {
        let binary = find(&options.binary)?;
        let log = File::create(&options.log).with_context(|| format!("cannot write {}", options.log.display()))?;
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISE, "sh"]).arg(&binary).args(["server", "start-dev", "--ip", "127.0.0.1"]);
        command.args(["--port", &options.port.to_string(), "--log-level", "warn"]).args(TUNING);
        if let Some(database) = &options.database {
            command.arg("--db-filename").arg(database);
        }
        for name in search_attribute::ALL {
            command.args(["--search-attribute", &format!("{name}=Keyword")]);
        }
        if options.has_ui {
            command.args(["--ui-port", &(options.port.saturating_add(1000)).to_string()]);
        } else {
            command.arg("--headless");
        }
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).process_group(0).kill_on_drop(false);
        let mut child = command.spawn().context("cannot start a shell for the Temporal server")?;
        let leash = child.stdin.take();
        Ok(Self { child, leash, log: options.log.clone() })
    }

    /// Waits for the server to end by itself, which it should not.
    pub async fn ended(&mut self) -> anyhow::Error {
        let status = self.child.wait().await;
        anyhow::anyhow!("the Temporal server ended ({status:?}); see {}", self.log.display())
    }

    /// Stops the server and waits until it is gone.
    pub async fn stop(mut self) {
        drop(self.leash.take());
        if tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            tracing::warn!("the Temporal server did not stop in time; killing it");
            let _gone_already = self.child.kill().await;
        }
    }
}

/// Looks the binary up, so that a missing one gets a sentence and not the shell's.
fn find(binary: &Path) -> anyhow::Result<PathBuf> {
    if binary.components().count() > 1 {
        if binary.is_file() {
            return Ok(binary.to_owned());
        }
    } else if let Some(path) = std::env::var_os("PATH") {
        let found = std::env::split_paths(&path).map(|directory| directory.join(binary)).find(|file| file.is_file());
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
