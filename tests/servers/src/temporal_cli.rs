//! The `temporal` binary.

use std::{
    path::{Path, PathBuf},
    process::Output,
    sync::OnceLock,
};

use tokio::process::Command;

use crate::wait;

/// What the server says when it did not get the lock of a workflow in time.
const BUSY: &str = "Workflow is busy";

/// The program that the environment names, else the project's own, else the one on PATH.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        if let Some(binary) = std::env::var_os("EVERTURN_TEMPORAL_BIN") {
            return binary.into();
        }
        let own = tool("temporal");
        if own.is_file() {
            own
        } else {
            PathBuf::from("temporal")
        }
    };
    BINARY.get_or_init(find).clone()
}

/// Runs the CLI against a server. A command that a busy server did not take is given again (docs/engine.md, workflow
/// is busy).
pub async fn cli(address: &str, args: &[&str]) -> Output {
    wait::until("the server is less busy", || async {
        let mut command = Command::new(binary());
        let output = command.args(args).args(["--address", address]).output();
        let output = output.await.unwrap();
        (!is_busy(&output)).then_some(output)
    })
    .await
}

fn is_busy(output: &Output) -> bool {
    !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(BUSY)
}

/// A program that `make` installs, whether or not it has been.
pub(crate) fn tool(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.tools/bin")
        .join(name)
}
