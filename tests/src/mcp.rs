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

/// Returns the table `[mcp.<name>]` for a watched server from npm.
pub fn watched(name: &str, package: &str, directory: &Path, more: &str) -> String {
    let program = npm(package).display().to_string();
    watched_command(name, &["node", &program], directory, more)
}

/// Returns the table `[mcp.<name>]` for a watched server: its process writes its id to `<name>.pid` in `directory`, so that a
/// test can kill it, and all that it receives is copied to `<name>.log`.
pub fn watched_command(name: &str, program: &[&str], directory: &Path, more: &str) -> String {
    let files = directory.join(name).display().to_string();
    let all = [&["sh", "-c", WATCH, &files], program].concat();
    command(name, &all, more)
}

/// Returns the directory of packages from npm.
pub fn npm_packages() -> PathBuf {
    tools().join("npm/node_modules")
}

/// Returns Python with an older version of the MCP SDK, as a command.
pub fn older_python(version: &str) -> Vec<String> {
    let older = tools().join("mcp-older");
    let packages = older.join(format!("mcp-{version}"));
    vec![
        "env".to_owned(),
        format!("PYTHONPATH={}", packages.display()),
        installed("mcp-older/bin/python").display().to_string(),
    ]
}

/// Returns the path of the server of the SDK for Rust before version 3.
pub fn rmcp_before_3() -> PathBuf {
    installed("bin/rmcp-before-3")
}

/// Returns the path of a server's source in `tests/mcp/servers`.
pub fn script(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/servers");
    directory.join(name).display().to_string()
}

/// Shell script that runs a watched server. It ends with `exec`, so that the server is the worker's own child, as it is
/// without a test.
const WATCH: &str = r#"exec 3<&0; mkfifo "$0.$$"; tee -a "$0.log" <&3 >"$0.$$" & echo $$ >>"$0.pid"; exec "$@" <"$0.$$""#;

fn tools() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    repository.join(".tools")
}

fn installed(path: &str) -> PathBuf {
    let path = tools().join(path);
    assert!(
        path.is_file(),
        "{} is missing: run `make mcp-servers`",
        path.display()
    );
    path
}
