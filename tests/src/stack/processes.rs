//! Starts, kills and ends the processes of a stack.

use std::{fs, mem, path::PathBuf, process::Stdio, thread, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::Stack;
use crate::{http, wait};

/// Name of the binary.
const EVERTURN: &str = "everturn";

/// How long a process may take that ends by itself, on a busy machine.
const ENDS_WITHIN: Duration = Duration::from_mins(2);

/// The ring of processes whose payloads are encrypted.
const RING: &str = "tests:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// True when all stacks encrypt what goes through Temporal. Tests that read histories then fail.
pub(super) fn is_encrypted() -> bool {
    std::env::var_os("EVERTURN_TEST_CODEC").is_some()
}

/// The processes of one role. They are killed when this is dropped, which waits until they are gone: what is started next may
/// listen on the same ports.
pub struct Process {
    children: Vec<Child>,
}

impl Drop for Process {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ended = child.start_kill();
        }
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl FromIterator<Self> for Process {
    fn from_iter<T: IntoIterator<Item = Self>>(each: T) -> Self {
        let children = |mut process: Self| mem::take(&mut process.children);
        Self {
            children: each.into_iter().flat_map(children).collect(),
        }
    }
}

impl Stack {
    /// Starts a worker and a gateway, and waits until the gateway answers.
    pub async fn start(&self) -> (Process, Process) {
        let gateway = self.gateway().await;
        (self.worker(), gateway)
    }

    /// Starts every gateway and one worker, also where [`Stack::start`] starts several: each worker has MCP servers of its
    /// own, and one that has not noticed yet that its server has ended would still offer the tools as they were.
    pub async fn start_with_one_worker(&self) -> (Process, Process) {
        let gateway = self.gateway().await;
        (self.spawn(&["worker"], "worker", &[]), gateway)
    }

    /// Starts one process that is worker and gateway, with one stream in memory, and waits until it answers. A stack with
    /// further gateways has its stream in Redis, and starts them, too.
    pub async fn all_in_one(&self) -> Vec<Process> {
        let listen = format!("127.0.0.1:{}", self.gateway_port(0));
        let mut processes = vec![self.spawn(&["all", "--listen", &listen], "all", &[])];
        ready(&self.gateway_url(0)).await;
        for number in 1..self.gateway_ports.len() {
            processes.push(self.gateway_on(number, &[]).await);
        }
        processes
    }

    /// Starts a worker.
    pub fn worker(&self) -> Process {
        self.worker_with(&[])
    }

    /// Starts a worker with additional environment variables.
    pub fn worker_with(&self, environment: &[(&str, &str)]) -> Process {
        let spawn = |_| self.spawn(&["worker"], "worker", environment);
        (0..self.backends.processes()).map(spawn).collect()
    }

    /// Starts a worker of another binary: an example by its name, or another build by its path.
    pub fn worker_of(&self, program: &str) -> Process {
        let spawn = |_| self.spawn_command(self.command_of(program, &["worker"], &[]), "worker");
        Process {
            children: (0..self.backends.processes()).map(spawn).collect(),
        }
    }

    /// Starts every gateway and waits until all answer.
    pub async fn gateway(&self) -> Process {
        self.gateway_with(&[]).await
    }

    /// Starts every gateway with additional environment variables, and waits until all answer.
    pub async fn gateway_with(&self, environment: &[(&str, &str)]) -> Process {
        let each = (0..self.gateway_ports.len()).map(|number| self.gateway_on(number, environment));
        futures::future::join_all(each).await.into_iter().collect()
    }

    /// Starts one of the gateways with additional environment variables, and waits until it answers.
    pub async fn gateway_on(&self, number: usize, environment: &[(&str, &str)]) -> Process {
        self.gateway_of_build(EVERTURN, number, environment).await
    }

    /// Starts one of the gateways with another binary, and waits until it answers.
    pub async fn gateway_of(&self, program: &str, number: usize) -> Process {
        self.gateway_of_build(program, number, &[]).await
    }

    async fn gateway_of_build(
        &self,
        program: &str,
        number: usize,
        environment: &[(&str, &str)],
    ) -> Process {
        let listen = format!("127.0.0.1:{}", self.gateway_port(number));
        let command = self.command_of(program, &["gateway", "--listen", &listen], environment);
        let process = Process {
            children: vec![self.spawn_command(command, "gateway")],
        };
        ready(&self.gateway_url(number)).await;
        process
    }

    /// Waits until the log of this name has a text.
    pub async fn logged(&self, log: &str, text: &str) {
        let file = self.path(&format!("{log}.log"));
        wait::until(&format!("{log} has logged `{text}`"), || async {
            let log = fs::read_to_string(&file).unwrap_or_default();
            log.contains(text).then_some(())
        })
        .await;
    }

    /// Starts the binary with these arguments, which name a role.
    pub fn spawn(&self, args: &[&str], log: &str, environment: &[(&str, &str)]) -> Process {
        Process {
            children: vec![self.spawn_command(self.command(args, environment), log)],
        }
    }

    /// Runs the binary with these arguments, which it must refuse: it ends by itself, and with 1. Returns what it said.
    pub async fn refused(&self, args: &[&str], environment: &[(&str, &str)]) -> String {
        let output = self.command(args, environment).output();
        let output = timeout(ENDS_WITHIN, output).await;
        let output = output.expect("it ends by itself").unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        said
    }

    fn spawn_command(&self, mut command: Command, log: &str) -> Child {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path(&format!("{log}.log")))
            .unwrap();
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Makes a command of the binary with the configuration and environment of this stack.
    pub fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        self.command_of(EVERTURN, args, environment)
    }

    fn command_of(&self, program: &str, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(built(program));
        command
            .args(args)
            .current_dir(self.directory.path())
            .env("EVERTURN_DATA_DIR", self.directory.path())
            .env("EVERTURN_TASK_QUEUE", &self.task_queue)
            .env("EVERTURN_TEST_TOOLS", self.effects_file())
            .env("SCRIPTED_KEY", "no secret")
            .env("TEMPORAL_ADDRESS", self.temporal.address())
            // By default, each worker reads its whole binary for a checksum, and a debug binary has 250 MB.
            .env("TEMPORAL_WORKER_BUILD_ID", "tests")
            .env_remove("EVERTURN_FAILPOINT")
            .envs(is_encrypted().then_some(("EVERTURN_CODEC_KEYS", RING)))
            .envs(self.backends.environment())
            .envs(environment.iter().copied());
        command
    }
}

impl Process {
    /// Returns the ids of its processes.
    pub fn ids(&self) -> Vec<u32> {
        self.children.iter().filter_map(Child::id).collect()
    }

    /// True when all of its processes run: none has ended, also none that nobody has waited for yet.
    pub fn runs(&self) -> bool {
        self.children.iter().all(|child| {
            let status = child
                .id()
                .and_then(|id| fs::read_to_string(format!("/proc/{id}/status")).ok());
            status.is_some_and(|status| !status.contains("State:\tZ"))
        })
    }

    /// Kills the processes with `kill -9`.
    pub async fn kill(mut self) {
        for child in &mut self.children {
            child.kill().await.unwrap();
        }
    }

    /// Stops the processes where they are (SIGSTOP). Their connections stay open.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets the processes go on after [`Process::pause`].
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        for id in self.ids() {
            kill(Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
        }
    }

    /// Returns the largest amount of memory that one of the processes has held at a time.
    pub fn peak_memory_bytes(&self) -> u64 {
        let peak = |child: &Child| {
            let status =
                fs::read_to_string(format!("/proc/{}/status", child.id().unwrap())).unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))
                .unwrap();
            line.split_whitespace()
                .next()
                .unwrap()
                .parse::<u64>()
                .unwrap()
                * 1024
        };
        self.children.iter().map(peak).max().unwrap()
    }

    /// Sends SIGTERM and waits for the end. Returns 0 if all processes exited with 0, else the exit code of one that
    /// did not.
    pub async fn terminate(mut self) -> Option<i32> {
        self.signal(Signal::SIGTERM);
        let mut worst = Some(0);
        for child in &mut self.children {
            let code = child.wait().await.unwrap().code();
            worst = if code == Some(0) { worst } else { code };
        }
        worst
    }
}

/// Returns the path of the binary `everturn`.
pub fn binary() -> PathBuf {
    built("everturn")
}

/// Returns the path of a binary of the workspace, which `cargo build` made. It is in the directory of the running
/// program, or one above, because cargo puts tests into a folder below it.
fn built(program: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let found = this
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!("{program} is missing: run `make test`, or `cargo build --workspace` first")
    })
}

/// Waits until the gateway at `url` answers.
pub async fn ready(url: &str) {
    let (url, client) = (format!("{url}/readyz"), http::client());
    wait::until("the gateway is ready", || async {
        client
            .get(&url)
            .send()
            .await
            .ok()
            .filter(|answer| answer.status().is_success())
            .map(drop)
    })
    .await;
}
