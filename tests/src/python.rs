//! Runs the worker of `examples/python-tool`, for tests of remote tools.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::{Child, Command};

use crate::{model::Model, stack::Stack, wait};

/// Tools that the example does not have: one on a task queue without a worker, and a second name for `transfer`.
const MORE_TOOLS: &str = r#"
[remote_tools.nobody]
description = "Nobody runs it."
task_queue = "nobody"
start_timeout = "1s"

[remote_tools.asks]
description = "Transfers money when a person approves."
task_queue = "python-tools"
activity_type = "transfer"
"#;

/// A stack whose agent has the example's tools, on a task queue that only this test uses. Statements may be large. It also
/// has the tools `nobody`, which no worker runs, and `asks`, which needs an approval.
pub struct PythonTools {
    /// The stack.
    pub stack: Stack,
    task_queue: String,
}

impl PythonTools {
    /// Makes the stack, and starts neither of its workers.
    pub async fn new(model: Model) -> Self {
        let task_queue = format!("python-{}", uuid::Uuid::new_v4().simple());
        let example = fs::read_to_string(example().join("everturn.toml")).unwrap();
        let large = "effect = \"read\"\nmax_result_bytes = 1048576\n";
        let example = example.replace("effect = \"read\"\n", large);
        // Tests send larger inputs than the parameters of the tools take.
        let example = example.replace(
            "additionalProperties = false",
            "additionalProperties = true",
        );
        let tables = example.replace("python-tools", &task_queue);
        let more = MORE_TOOLS.replace("python-tools", &task_queue);
        let tools =
            r#"["transfer", "statement", "nobody", { name = "asks", approval = "always" }]"#;
        let agent = format!("tools = {tools}\n\n{tables}\n{more}");
        Self {
            stack: Stack::with_agent(model, &agent).await,
            task_queue,
        }
    }

    /// Waits until this many calls wait for a worker, and starts the example's worker.
    ///
    /// A call that waits is handed over within ten seconds. A call that comes to a waiting worker is handed over within
    /// one, and is lost when the database of the engine stands still for longer: the engine notes that the call has begun,
    /// and no worker hears of it. The outcome of a `once` tool is then unknown, as it should be, but a test asks for another.
    pub async fn worker_for(&self, calls: u64) -> Child {
        self.worker_for_with(calls, &[]).await
    }

    /// [`PythonTools::worker_for`] with more environment variables.
    pub async fn worker_for_with(&self, calls: u64, environment: &[(&str, &str)]) -> Child {
        let what = format!("{calls} calls wait for a worker");
        let (temporal, queue) = (self.stack.temporal, &self.task_queue);
        wait::until(&what, || async {
            (temporal.backlog(queue).await >= calls).then_some(())
        })
        .await;
        self.start(environment)
    }

    /// Starts the example's worker, whatever waits for it.
    pub fn worker(&self) -> Child {
        self.start(&[])
    }

    fn start(&self, environment: &[(&str, &str)]) -> Child {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.stack.path("python.log"))
            .unwrap();
        Command::new(python())
            .arg(example().join("worker.py"))
            .env(
                "PYTHONPATH",
                example().join("../../clients/python-tools/src"),
            )
            .env("TEMPORAL_ADDRESS", self.stack.temporal.address())
            .env("TASK_QUEUE", &self.task_queue)
            .env("LEDGER", self.stack.path("ledger"))
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Returns the lines of the file that both tools write: one for each transfer that began, and another one when it
    /// was taken back.
    pub fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.stack.path("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/python-tool")
}

fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/python-tool/bin/python");
    assert!(
        python.is_file(),
        "{} is missing: run `make python-tool`",
        python.display()
    );
    python
}
