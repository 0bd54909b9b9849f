//! Takes over changed agents, prompts, tools and skills while the process runs, without a restart.
//!
//! - `configured`: the configuration with its tools, and the next configuration
//! - `running`: the roles that get the next configuration
//!
//! The process looks at the contents of the files in an interval. Notifications of the kernel would need a library, and
//! miss changes on network drives. An activity keeps the agents and tools of its begin, and a turn keeps the definition
//! of its agent.

mod configured;
mod running;

use std::{sync::Arc, time::Duration};

use everturn_config::{Changes, Config, Reading};
use everturn_models::Providers;
use everturn_telemetry::process as measured;
use everturn_tools::{ToolSource as _, mcp::McpServer};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

pub use self::{
    configured::Configured,
    running::{Running, StoredTools, with_stored},
};

/// The pause between the first notice of a change and the reading. Editors, and tools that copy folders, write for some
/// milliseconds.
const SETTLE: Duration = Duration::from_millis(200);
/// The pause between two looks whether calls of a removed MCP server still run.
const SERVER_PAUSE: Duration = Duration::from_secs(1);

/// Where a process tells about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// In the log.
    Log,
    /// On the terminal of `everturn dev`.
    Terminal,
}

/// Refuses a configuration.
pub type Check = Box<dyn Fn(&Config) -> anyhow::Result<()> + Send + Sync>;

/// The parts that a process needs to take over changes.
pub struct Watch {
    /// The configuration of the start.
    pub configured: Configured,
    /// The providers of the running process.
    pub providers: Providers,
    /// Refuses a configuration with which the process would not have started.
    pub check: Check,
    /// The roles of the process.
    pub running: Arc<Running>,
    /// Where the process tells about a change.
    pub told: Told,
}

/// Starts to look at the files, in the interval of the configuration. The log has a line for each change.
pub fn start(
    configured: Configured,
    check: Check,
    running: &Arc<Running>,
    shutdown: &CancellationToken,
) {
    let interval = configured.config.reload;
    let watch = Watch {
        providers: configured.config.providers.clone(),
        configured,
        check,
        running: Arc::clone(running),
        told: Told::Log,
    };
    watch.start(interval, shutdown.clone());
}

impl Watch {
    /// Looks at the files until `shutdown`. Without an interval, changes need a restart.
    pub fn start(self, interval: Option<Duration>, shutdown: CancellationToken) {
        let Some(interval) = interval else { return };
        tokio::spawn(async move {
            let watching = self.run(interval);
            let _ended = shutdown.run_until_cancelled(watching).await;
        });
    }

    async fn run(mut self, interval: Duration) {
        // The operator's tables with changes since the start.
        let mut stale = Vec::new();
        measured::reload_refused(false);
        loop {
            tokio::time::sleep(interval).await;
            if !self.running.is_complete() || !self.have_files_changed().await {
                continue;
            }
            tokio::time::sleep(SETTLE).await;
            let source = Arc::clone(&self.configured.source);
            let Ok(Reading { files, config }) = spawn_blocking(move || source.read()).await else {
                continue;
            };
            self.configured.files = files;
            // The process never mixes files of two versions.
            if self.have_files_changed().await {
                continue;
            }
            let result = config.map_err(anyhow::Error::from);
            let result = result.and_then(|read| self.apply(read, &mut stale));
            measured::reload_refused(result.is_err());
            if let Err(error) = result {
                measured::reloaded(false);
                self.told.refused(&error);
            }
        }
    }

    async fn have_files_changed(&self) -> bool {
        let files = self.configured.files.clone();
        let looked = spawn_blocking(move || files.have_changed()).await;
        looked.unwrap_or(false)
    }

    fn apply(&mut self, read: Config, stale: &mut Vec<String>) -> anyhow::Result<()> {
        let changed = self.configured.config.changed_operators(&read);
        let next = self.configured.next(read, &self.providers)?;
        (self.check)(&next.config)?;
        let changes = Changes::between(&self.configured.config, &next.config);
        if !changes.is_empty() {
            self.running.give(&next.config, &next.tools)?;
            let unused = self.configured.take(next);
            unused.into_iter().for_each(close_after_use);
            measured::reloaded(true);
            self.told.applied(&changes);
        }
        if changed != *stale {
            self.told.needs_restart(&changed);
            *stale = changed;
        }
        Ok(())
    }
}

/// Closes a server after the last call, because the configuration does not have the server any more.
fn close_after_use(server: Arc<McpServer>) {
    tokio::spawn(async move {
        while Arc::strong_count(&server) > 1 {
            tokio::time::sleep(SERVER_PAUSE).await;
        }
        server.close().await;
    });
}

impl Told {
    fn applied(self, changes: &Changes) {
        match self {
            Self::Log => {
                tracing::info!(%changes, "changed files of agents are in use; running turns keep their agents");
            }
            Self::Terminal => println!("reloaded: {changes}"),
        }
    }

    fn refused(self, error: &anyhow::Error) {
        match self {
            Self::Log => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "changed files of agents are refused; the process goes on with the agents from before"
                );
            }
            Self::Terminal => println!("not reloaded, the agents from before go on: {error:#}"),
        }
    }

    fn needs_restart(self, tables: &[String]) {
        if tables.is_empty() {
            return;
        }
        let names = tables.iter().map(|name| format!("[{name}]"));
        let tables = names.collect::<Vec<_>>().join(", ");
        match self {
            Self::Log => {
                tracing::warn!(
                    tables,
                    "changed tables of everturn.toml need a restart of the process"
                );
            }
            Self::Terminal => println!("restart everturn dev to use the changed {tables}"),
        }
    }
}
