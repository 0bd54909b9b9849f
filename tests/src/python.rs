//! The worker of `examples/python-tool`, run for real.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::{Child, Command};

use crate::{model::Model, stack::Stack};

/// What the example does not show: a queue without a worker, and a tool that is the example's under another name.
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

/// A stack whose agent has the example's tools on a queue of its own, `nobody`, which has no worker, and `asks`, which
/// needs an approval.
pub struct PythonTools {
    /// The stack.
    pub stack: Stack,
    task_queue: String,
}

impl PythonTools {
    /// The stack; neither of its workers runs yet.
    pub async fn new(model: Model) -> Self {
        let task_queue = format!("python-{}", uuid::Uuid::new_v4().simple());
        let example = fs::read_to_string(example().join("everturn.toml")).unwrap();
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

    /// Starts the example's worker.
    pub fn worker(&self) -> Child {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.stack.path("python.log"))
            .unwrap();
        Command::new(python())
            .arg(example().join("worker.py"))
            .env("TEMPORAL_ADDRESS", self.stack.temporal.address())
            .env("TASK_QUEUE", &self.task_queue)
            .env("LEDGER", self.stack.path("ledger"))
            .stdin(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// The file that both tools keep: a line for each transfer that began, another one when it was taken back.
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
