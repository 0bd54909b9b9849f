//! Peers: the turn without Everturn. The peers are the floor on the bare SDK, the agent on Temporal's SDKs for Python
//! and TypeScript as in their documentation, and a script without durability.
//!
//! Must not be here: the measurements (`cases/turn.rs`). The peers in other languages are in `bench/peers`.

pub(crate) mod floor;

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context, ensure};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowGetResultOptions,
    WorkflowStartOptions,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Mutex,
};
use uuid::Uuid;

use self::floor::Turn;

/// A peer: a system that runs the turn without Everturn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Temporal's bare Rust SDK.
    Floor,
    /// Temporal's Python SDK, used as documented.
    Python,
    /// Temporal's TypeScript SDK, used as documented.
    TypeScript,
    /// A Python script without durability.
    Script,
}

impl Peer {
    /// The peers in the order of the report.
    pub(crate) const ALL: [Self; 4] = [Self::Floor, Self::Python, Self::TypeScript, Self::Script];

    /// Returns the prefix of the figures' names.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Python => "python",
            Self::TypeScript => "ts",
            Self::Script => "script",
        }
    }

    fn command(self) -> anyhow::Result<Command> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let (program, file) = match self {
            Self::Floor => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("floor");
                return Ok(command);
            }
            Self::Python => (
                root.join(".tools/bench-python/bin/python"),
                root.join("bench/peers/python/worker.py"),
            ),
            Self::Script => (
                root.join(".tools/bench-python/bin/python"),
                root.join("bench/peers/script/agent.py"),
            ),
            Self::TypeScript => (
                PathBuf::from("node"),
                root.join(".tools/bench-typescript/worker.js"),
            ),
        };
        let installed = self == Self::TypeScript || program.is_file();
        ensure!(
            installed && file.is_file(),
            "{} is missing: run `make bench-peers` in the project",
            file.display()
        );
        let mut command = Command::new(program);
        if self != Self::TypeScript {
            // `-B` stops Python from writing compiled files into the sources.
            command.arg("-B");
        }
        command.arg(file);
        Ok(command)
    }
}

/// A running peer. The drop kills the peer's process.
pub(crate) struct Running {
    turns: Turns,
    _child: Child,
}

/// Channel to start a turn and to notice the end.
enum Turns {
    /// A workflow per turn.
    Workflows { client: Client, task_queue: String },
    /// A line of a script's input and output per turn.
    Lines {
        input: Mutex<ChildStdin>,
        output: Mutex<Lines<BufReader<ChildStdout>>>,
    },
}

impl Running {
    /// Starts a peer with the given Temporal server and model, and waits until the peer is ready.
    pub(crate) async fn start(peer: Peer, address: &str, model_url: &str) -> anyhow::Result<Self> {
        let task_queue = format!("bench-{peer:?}");
        let mut child = peer
            .command()?
            .env("TEMPORAL_ADDRESS", address)
            .env("TASK_QUEUE", &task_queue)
            .env("MODEL_URL", model_url.trim_end_matches('/'))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start the peer {peer:?}"))?;
        let (input, output) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .context("the peer has no pipes")?;
        let mut output = BufReader::new(output).lines();
        let ready = output.next_line().await?;
        ensure!(
            ready.as_deref() == Some("ready"),
            "the peer {peer:?} did not start"
        );
        let turns = if peer == Peer::Script {
            Turns::Lines {
                input: Mutex::new(input),
                output: Mutex::new(output),
            }
        } else {
            Turns::Workflows {
                client: connect(address).await?,
                task_queue,
            }
        };
        Ok(Self {
            turns,
            _child: child,
        })
    }

    /// Runs a turn to the end.
    pub(crate) async fn turn(&self) -> anyhow::Result<()> {
        match &self.turns {
            Turns::Workflows { client, task_queue } => {
                let id = format!("bench-{}", Uuid::new_v4().simple());
                let options = WorkflowStartOptions::new(task_queue.clone(), id).build();
                let message = "What is it?".to_owned();
                let started = client.start_workflow(Turn::run, message, options).await?;
                let result = started.get_result(WorkflowGetResultOptions::default());
                ensure!(!result.await?.is_empty(), "the turn has no answer");
            }
            Turns::Lines { input, output } => {
                input.lock().await.write_all(b"What is it?\n").await?;
                // The line may belong to a concurrent turn. The script prints one line per turn, so the counts agree.
                let line = output.lock().await.next_line().await?;
                ensure!(line.as_deref() == Some("done"), "the script has ended");
            }
        }
        Ok(())
    }
}

/// Connects to a Temporal server without TLS.
async fn connect(address: &str) -> anyhow::Result<Client> {
    let url: url::Url = format!("http://{address}").parse()?;
    let connection = Connection::connect(ConnectionOptions::new(url).build()).await?;
    Ok(Client::new(
        connection,
        ClientOptions::new("default").build(),
    )?)
}
