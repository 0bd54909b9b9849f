//! MCP servers of other projects, installed by `make mcp-servers`, as tables of everturn.toml.

use std::path::{Path, PathBuf};

/// npm package of the reference server that uses every part of the protocol.
pub const EVERYTHING: &str = "server-everything";
/// npm package of a server for the files under the directories that it is given.
pub const FILESYSTEM: &str = "server-filesystem";

/// Returns the path of the program of a server from npm, which node runs.
pub fn npm(package: &str) -> PathBuf {
    installed(&format!(
        "npm/node_modules/@modelcontextprotocol/{package}/dist/index.js"
    ))
}

/// Returns the path of the program of a server from PyPI.
pub fn python(program: &str) -> PathBuf {
    installed(&format!("venv/bin/{program}"))
}

/// Returns the folder of the official SDK for TypeScript, which the servers from npm depend on.
pub fn typescript_sdk() -> PathBuf {
    let index = installed("npm/node_modules/@modelcontextprotocol/sdk/dist/esm/client/index.js");
    let folder = index.parent().and_then(Path::parent);
    folder.unwrap().to_owned()
}

/// Returns the table `[mcp.<name>]` for a server with this command. The server has no rules of files and ports.
pub fn command(name: &str, command: &[&str], more: &str) -> String {
    format!("\n[mcp.{name}]\ncommand = {command:?}\nprocess.unconfined = true\n{more}\n")
}

/// Returns the table `[mcp.<name>]` for a watched server from npm: its process writes its id to `<name>.pid` in
/// `directory`, so that a test can kill it, and all that it receives is copied to `<name>.log`.
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

/// Shell script that runs a watched server. It ends with `exec`, so that the server is the worker's own child, as it is
/// without a test.
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
