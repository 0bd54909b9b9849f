//! The `temporal` binary.

use std::{
    path::{Path, PathBuf},
    process::Output,
    sync::OnceLock,
};

use tokio::process::Command;

/// As the environment says, the project's own, or the one on PATH.
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

/// Runs the CLI against a server.
pub async fn cli(address: &str, args: &[&str]) -> Output {
    Command::new(binary())
        .args(args)
        .args(["--address", address])
        .output()
        .await
        .unwrap()
}

/// A program that `make` installs, whether or not it has been.
pub(crate) fn tool(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.tools/bin")
        .join(name)
}
