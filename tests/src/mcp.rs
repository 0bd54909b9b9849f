//! MCP servers of other projects, installed by `make mcp-servers`, as tables of everturn.toml.

use std::path::{Path, PathBuf};

/// The reference server that shows every part of the protocol.
pub const EVERYTHING: &str = "server-everything";
/// A server for files under the directories it is given.
pub const FILESYSTEM: &str = "server-filesystem";

/// The program of a server from npm, to be run by node.
pub fn npm(package: &str) -> PathBuf {
    installed(&format!(
        "npm/node_modules/@modelcontextprotocol/{package}/dist/index.js"
    ))
}

/// The program of a server from PyPI.
pub fn python(program: &str) -> PathBuf {
    installed(&format!("venv/bin/{program}"))
}

/// `[mcp.<name>]` for a command.
pub fn command(name: &str, command: &[&str], more: &str) -> String {
    format!("\n[mcp.{name}]\ncommand = {command:?}\n{more}\n")
}

/// The same for a server from npm that a test can kill and listen to: its process writes its id to `<name>.pid` in
/// `directory`, and all it is told is copied to `<name>.log`.
pub fn watched(name: &str, package: &str, directory: &Path, more: &str) -> String {
    let files = directory.join(name).display().to_string();
    command(
        name,
        &[
            "sh",
            "-c",
            WATCH,
            &files,
            &npm(package).display().to_string(),
        ],
        more,
    )
}

/// `exec`: the server is the worker's own child, as it would be without a test.
const WATCH: &str = r#"exec 3<&0; mkfifo "$0.$$"; tee -a "$0.log" <&3 >"$0.$$" & echo $$ >>"$0.pid"; exec node "$1" <"$0.$$""#;

fn installed(path: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join(".tools");
    let path = tools.join(path);
    assert!(
        path.is_file(),
        "{} is missing: run `make mcp-servers`",
        path.display()
    );
    path
}
