//! A server of the stack: a process on a leash, with a directory and a log of its own, that can be ended and started
//! again.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use everturn_worker::dev::{Leash, Signal};
use tokio::sync::Mutex;

use crate::account::{self, Account};

/// How long a server may take to answer; the machine may be busy with other tests.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a server keeps its data, and on which port it listens.
#[derive(Debug, Clone)]
pub enum Place {
    /// A free port, and a directory that is removed with the server.
    Scratch,
    /// A port on 127.0.0.1, and a directory that stays.
    Lasting {
        /// Created when missing.
        directory: PathBuf,
        /// On 127.0.0.1.
        port: u16,
    },
}

/// What to start.
#[derive(Debug)]
pub(crate) struct Spec {
    /// For messages.
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// What stops it when it is let go.
    pub(crate) stop: Signal,
    /// Where it runs and logs.
    pub(crate) directory: PathBuf,
    /// Whether the directory goes with the server.
    pub(crate) is_scratch: bool,
    pub(crate) account: Option<Account>,
}

/// A server that runs, unless it has been ended. It ends with the process that started it.
#[derive(Debug)]
pub(crate) struct Server {
    spec: Spec,
    leash: Mutex<Option<Leash>>,
}

impl Server {
    /// Starts it; it does not answer yet.
    pub(crate) fn start(spec: Spec) -> anyhow::Result<Self> {
        let leash = launch(&spec)?;
        Ok(Self {
            spec,
            leash: Mutex::new(Some(leash)),
        })
    }

    /// Starts it again, after [`Server::end`].
    pub(crate) async fn start_again(&self) -> anyhow::Result<()> {
        *self.leash.lock().await = Some(launch(&self.spec)?);
        Ok(())
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
            let is_running = self
                .leash
                .lock()
                .await
                .as_mut()
                .is_some_and(Leash::is_running);
            if !is_running || tokio::time::Instant::now() > deadline {
                let state = if is_running {
                    "does not answer"
                } else {
                    "has ended"
                };
                return Err(error.context(format!(
                    "{} {state}; its log ends with\n{}",
                    self.spec.name,
                    self.log_end()
                )));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends a signal. Returns before the server has noticed.
    pub(crate) async fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        match self.leash.lock().await.as_mut() {
            Some(leash) => leash
                .signal(signal)
                .with_context(|| format!("cannot signal {}", self.spec.name)),
            None => bail!("{} does not run", self.spec.name),
        }
    }

    /// Ends it by a signal and waits until it is gone. Its directory stays as it is.
    pub(crate) async fn end(&self, signal: Signal) -> anyhow::Result<()> {
        let Some(mut leash) = self.leash.lock().await.take() else {
            return Ok(());
        };
        leash
            .signal(signal)
            .with_context(|| format!("cannot signal {}", self.spec.name))?;
        let ended = tokio::time::timeout(START_TIMEOUT, leash.ended()).await;
        ended.with_context(|| format!("{} does not end", self.spec.name))??;
        Ok(())
    }

    /// Waits for it to end by itself, which it should not.
    pub(crate) async fn ended(&self) -> anyhow::Error {
        if let Some(leash) = self.leash.lock().await.as_mut() {
            let _whatever_its_status = leash.ended().await;
        }
        anyhow::anyhow!(
            "{} ended; its log ends with\n{}",
            self.spec.name,
            self.log_end()
        )
    }

    /// Stops it for good, waits until it is gone, and removes its directory if that is scratch.
    pub(crate) async fn stop(&self) {
        if let Some(leash) = self.leash.lock().await.take() {
            leash.stop().await;
        }
    }

    pub(crate) fn log_end(&self) -> String {
        let text = fs::read(log(&self.spec)).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(4000)..]).into_owned()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.spec.directory
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The shell that holds a running server removes its directory; nobody else does for one that has ended.
        let has_ended = self
            .leash
            .get_mut()
            .as_mut()
            .is_none_or(|leash| !leash.is_running());
        if self.spec.is_scratch && has_ended {
            let _gone_already = fs::remove_dir_all(&self.spec.directory);
        }
    }
}

fn log(spec: &Spec) -> PathBuf {
    spec.directory.join("log")
}

fn launch(spec: &Spec) -> anyhow::Result<Leash> {
    let log = log(spec);
    let output = OpenOptions::new().create(true).append(true).open(&log);
    let output = output.with_context(|| format!("cannot write {}", log.display()))?;
    let scratch = spec.is_scratch.then_some(spec.directory.as_path());
    let mut command = Leash::command(&spec.program, spec.stop, scratch);
    command
        .args(&spec.args)
        .current_dir(&spec.directory)
        .stdout(output.try_clone()?)
        .stderr(output);
    account::run_as(&mut command, spec.account);
    Leash::start(command).with_context(|| format!("cannot start a shell for {}", spec.name))
}
