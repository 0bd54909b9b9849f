//! A server as a process with a directory and a log of its own, that can be ended and started again.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use anyhow::Context;
use everturn_supervisor::{GroupEnd, Program, Signal};
use tokio::sync::Mutex;

use crate::account::{self, Account};

/// How long a server may take to answer, or to end; the machine may be busy with other tests.
const START_TIMEOUT: Duration = Duration::from_mins(3);

/// How long a server may take to end when it is let go, until it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Where a server keeps its data, and on which port it listens.
#[derive(Debug, Clone)]
pub enum ServerLocation {
    /// A free port, and a directory that is removed with the server. A database need not sync what it commits.
    Scratch,
    /// The same as [`Self::Scratch`], for measurements: a database syncs what it commits, as it does for users.
    Measured,
    /// A port on 127.0.0.1, and a directory that stays.
    Lasting {
        /// Created when missing.
        directory: PathBuf,
        /// The port on 127.0.0.1.
        port: u16,
    },
}

/// What is to run.
#[derive(Debug)]
pub(crate) struct ServerSpec {
    /// The name in messages.
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// What stops it when it is let go.
    pub(crate) stop: Signal,
    /// Where it runs and logs.
    pub(crate) directory: PathBuf,
    /// Whether the directory is removed with the server.
    pub(crate) is_scratch: bool,
    pub(crate) account: Option<Account>,
}

/// A server that runs, unless it has been ended. It ends with the process that started it, or when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    spec: ServerSpec,
    program: Mutex<Program>,
}

impl Server {
    /// A server that is not started yet. From now on its scratch directory is removed with it.
    pub(crate) fn new(spec: ServerSpec) -> anyhow::Result<Self> {
        let end = GroupEnd {
            signal: spec.stop,
            grace: GRACE,
            scratch: spec.is_scratch.then(|| spec.directory.clone()),
        };
        let program = Program::new(&end)
            .with_context(|| format!("cannot start a process group for {}", spec.name))?;
        Ok(Self {
            spec,
            program: Mutex::new(program),
        })
    }

    /// Starts it, also again after [`Server::end`]. It does not answer yet.
    pub(crate) async fn start(&self) -> anyhow::Result<()> {
        let mut command = Command::new(&self.spec.program);
        command.args(&self.spec.args);
        self.launch(command, &mut *self.program.lock().await)
    }

    /// Runs another program to its end, while the server does not run.
    pub(crate) async fn prepare(&self, command: Command) -> anyhow::Result<ExitStatus> {
        let mut program = self.program.lock().await;
        self.launch(command, &mut program)?;
        Ok(program.ended().await?)
    }

    /// Runs another program to its end beside the server, in its directory and under its account. Returns what it printed.
    pub(crate) async fn beside(&self, mut command: Command) -> anyhow::Result<Output> {
        command
            .current_dir(&self.spec.directory)
            .stdin(Stdio::null());
        account::run_as(&mut command, self.spec.account);
        let name = command.get_program().to_owned();
        let mut command = tokio::process::Command::from(command);
        let output = command.kill_on_drop(true).output().await;
        output.with_context(|| format!("cannot run {}", name.display()))
    }

    /// Waits until `probe` succeeds.
    pub(crate) async fn answers<F: Future<Output = anyhow::Result<()>>>(
        &self,
        mut probe: impl FnMut() -> F,
    ) -> anyhow::Result<()> {
        let deadline = tokio::time::Instant::now() + START_TIMEOUT;
        loop {
            let Err(error) = probe().await else {
                return Ok(());
            };
            let is_running = self.program.lock().await.is_running();
            if !is_running || tokio::time::Instant::now() > deadline {
                let state = if is_running {
                    "does not answer"
                } else {
                    "has ended"
                };
                return Err(error.context(format!(
                    "{} {state}; {}",
                    self.spec.name,
                    self.log_end()
                )));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops all of it from doing anything, with its connections open. Returns before it has noticed.
    pub(crate) async fn pause(&self) -> anyhow::Result<()> {
        let paused = self.program.lock().await.pause();
        paused.with_context(|| format!("cannot pause {}", self.spec.name))
    }

    /// Lets it go on after [`Server::pause`].
    pub(crate) async fn resume(&self) -> anyhow::Result<()> {
        let resumed = self.program.lock().await.resume();
        resumed.with_context(|| format!("cannot resume {}", self.spec.name))
    }

    /// Ends it by a signal and waits until it is gone. Its directory stays as it is.
    pub(crate) async fn end(&self, signal: Signal) -> anyhow::Result<()> {
        let mut program = self.program.lock().await;
        program
            .signal(signal)
            .with_context(|| format!("cannot signal {}", self.spec.name))?;
        let ended = tokio::time::timeout(START_TIMEOUT, program.ended()).await;
        ended.with_context(|| format!("{} does not end", self.spec.name))??;
        Ok(())
    }

    /// Waits for it to end by itself, which it should not.
    pub(crate) async fn ended(&self) -> anyhow::Error {
        let _whatever_its_status = self.program.lock().await.ended().await;
        anyhow::anyhow!("{} ended; {}", self.spec.name, self.log_end())
    }

    /// Stops it for good, waits until it is gone, and removes its directory if that is scratch.
    pub(crate) async fn stop(&self) {
        self.program.lock().await.stop().await;
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.spec.directory
    }

    /// The last lines of its log, for a message.
    pub(crate) fn log_end(&self) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let end = String::from_utf8_lossy(&text[text.len().saturating_sub(4000)..]);
        format!("its log ends with\n{end}")
    }

    fn log(&self) -> PathBuf {
        self.spec.directory.join("log")
    }

    fn launch(&self, mut command: Command, program: &mut Program) -> anyhow::Result<()> {
        let log = self.log();
        let output = OpenOptions::new().create(true).append(true).open(&log);
        let output = output.with_context(|| format!("cannot write {}", log.display()))?;
        command
            .current_dir(&self.spec.directory)
            .stdout(output.try_clone()?)
            .stderr(output);
        account::run_as(&mut command, self.spec.account);
        let name = command.get_program().to_owned();
        program
            .start(command)
            .with_context(|| format!("cannot start {}", name.display()))
    }
}
