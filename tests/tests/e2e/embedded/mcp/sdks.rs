//! Servers of the official SDKs of several years: a list, a call, a restart between two calls, and a kill in the middle of a call.
//!
//! Each server is `tests/mcp/servers` or `tests/mcp/rmcp` on a version of an SDK, and has the same three tools.

use std::{fs, path::Path, process::Stdio};

use everturn_tests::{
    events::{error, result},
    mcp,
    model::{Model, Reply, Request},
    ports::free_port,
    stack::Stack,
    wait,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{kill, listed, running};

const EFFECTS: &str = "effects = { \"*\" = \"once\", read = \"read\" }\nconnect_timeout = \"1m\"";

/// A version of an SDK, as a command before the server's folder.
struct Version {
    name: &'static str,
    command: Vec<String>,
}

fn versions() -> Vec<Version> {
    let older = |name, version| {
        let command = [mcp::older_python(version), vec![mcp::script("sdk.py")]].concat();
        Version { name, command }
    };
    let node = |name, script, packages: &str| {
        let packages = mcp::npm_packages().join(packages).display().to_string();
        let command = vec!["node".to_owned(), mcp::script(script), packages];
        Version { name, command }
    };
    vec![
        older("python_0_9", "0.9.1"),
        older("python_1_2", "1.2.1"),
        older("python_1_6", "1.6.0"),
        older("python_1_9", "1.9.4"),
        older("python_1_12", "1.12.4"),
        newest_python(),
        node("typescript_0_4", "sdk.mjs", "sdk-oldest/dist"),
        node("typescript_1", "sdk.mjs", "sdk-newest-of-1/dist/esm"),
        node("typescript_2", "sdk2.mjs", ""),
        Version {
            name: "rust_2",
            command: vec![mcp::rmcp_before_3().display().to_string()],
        },
    ]
}

fn newest_python() -> Version {
    let python = mcp::python("python").display().to_string();
    Version {
        name: "python_2",
        command: vec![python, mcp::script("sdk2.py")],
    }
}

/// Starts a model that calls the tool that the user names at each of these servers, then answers.
async fn calling_all(servers: Vec<&'static str>) -> Model {
    Model::start(move |request: &Request| {
        let tool = request.last("user");
        match request.results_since_user() {
            0 => servers.iter().fold(Reply::text("I ask."), |reply, server| {
                reply.call(&format!("{server}__{tool}"), &json!({"text": "hi"}))
            }),
            _ => Reply::text("Done."),
        }
    })
    .await
}

async fn stack_of(servers: &[&'static str], tables: &str) -> Stack {
    let tools: Vec<_> = servers
        .iter()
        .map(|name| format!("\"{name}__*\""))
        .collect();
    let tools = format!("tools = [{}]\n{tables}", tools.join(", "));
    Stack::with_agent(calling_all(servers.to_vec()).await, &tools).await
}

/// Runs a turn that calls the tool of this name at each server.
async fn call_all(stack: &Stack, tool: &str) -> Vec<Value> {
    let (conversation, _) = stack.ask(tool).await;
    stack.ended(&conversation, 1).await
}

/// Waits until each server has noted so many calls of a tool.
async fn noted(folder: &Path, servers: &[&str], tool: &str, times: usize) {
    for server in servers {
        let file = folder.join(format!("{server}.notes")).join(tool);
        wait::until(&format!("{server} runs the tool `{tool}`"), || async {
            let notes = fs::read_to_string(&file).unwrap_or_default();
            (notes.lines().count() >= times).then_some(())
        })
        .await;
    }
}

fn is_noted_once(folder: &Path, server: &str) {
    let file = folder.join(format!("{server}.notes/once"));
    assert_eq!(fs::read_to_string(file).unwrap(), "call\n", "{server}");
}

fn notes(folder: &Path, server: &str) -> String {
    let notes = folder.join(format!("{server}.notes"));
    fs::create_dir_all(&notes).unwrap();
    notes.display().to_string()
}

/// Checks that each server's tools are listed.
async fn the_tools_are_listed(stack: &Stack, servers: &[&str]) {
    let names = listed(stack).await;
    for server in servers {
        for tool in ["echo", "once", "read"] {
            let name = format!("{server}__{tool}");
            assert!(names.contains(&name), "{name}: {names:#?}");
        }
    }
}

/// The tool of a killed server that must not run twice may have run. The tool that reads is called again.
#[tokio::test]
async fn programs_of_each_sdk_are_listed_called_restarted_and_killed() {
    let folder = TempDir::new().unwrap();
    let versions = versions();
    let servers: Vec<_> = versions.iter().map(|version| version.name).collect();
    let tables = versions.iter().map(|Version { name, command }| {
        let notes = notes(folder.path(), name);
        let command: Vec<_> = command.iter().chain([&notes]).map(String::as_str).collect();
        mcp::watched_command(name, &command, folder.path(), EFFECTS)
    });
    let stack = stack_of(&servers, &tables.collect::<String>()).await;
    the_tools_are_listed(&stack, &servers).await;
    let _running = stack.start_with_one_worker().await;
    let kill_all = async || {
        for server in &servers {
            kill(&running(folder.path(), server).await);
        }
    };
    survive(&stack, folder.path(), &servers, kill_all).await;
}

/// Calls the tools of the servers, which `restart` ends and starts between two turns and in the middle of a call.
async fn survive(
    stack: &Stack,
    folder: &Path,
    servers: &[&'static str],
    mut restart: impl AsyncFnMut(),
) {
    for _turn in 0..2 {
        let events = call_all(stack, "echo").await;
        for server in servers {
            assert_eq!(result(&events, &format!("{server}__echo")), "Echo: hi");
        }
        restart().await;
    }
    let (conversation, _) = stack.ask("once").await;
    noted(folder, servers, "once", 1).await;
    restart().await;
    let events = stack.ended(&conversation, 1).await;
    for server in servers {
        let why = error(&events, &format!("{server}__once"));
        assert!(why.contains("may or may not"), "{server}: {why}");
        is_noted_once(folder, server);
    }
    let (conversation, _) = stack.ask("read").await;
    noted(folder, servers, "read", 1).await;
    restart().await;
    let events = stack.ended(&conversation, 1).await;
    for server in servers {
        assert_eq!(
            result(&events, &format!("{server}__read")),
            "done",
            "{server}"
        );
    }
}

/// A server behind a URL, which the test ends and starts again.
struct Behind {
    name: &'static str,
    command: Vec<String>,
    port: u16,
    path: &'static str,
    running: Option<Child>,
}

impl Behind {
    fn new(folder: &Path, version: Version, transport: &str, path: &'static str) -> Self {
        let port = free_port();
        let mut command = version.command;
        command.push(notes(folder, version.name));
        if !transport.is_empty() {
            command.push(transport.to_owned());
        }
        command.push(port.to_string());
        Self {
            name: version.name,
            command,
            port,
            path,
            running: None,
        }
    }

    fn table(&self) -> String {
        let Self {
            name, port, path, ..
        } = self;
        format!("\n[mcp.{name}]\nurl = \"http://127.0.0.1:{port}{path}\"\n{EFFECTS}\n")
    }

    async fn start(&mut self) {
        let [program, arguments @ ..] = self.command.as_slice() else {
            panic!("a command has a program");
        };
        let child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        self.running = Some(child.unwrap());
        let port = self.port;
        wait::until(&format!("{} listens", self.name), || async move {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
            connected.ok().map(drop)
        })
        .await;
    }

    async fn kill(&mut self) {
        self.running.take().unwrap().kill().await.unwrap();
    }
}

async fn restart_all(servers: &mut [Behind]) {
    // One after the other, so that no server is away for longer than a call waits for it.
    for server in servers {
        server.kill().await;
        server.start().await;
    }
}

fn behind_urls(folder: &Path) -> Vec<Behind> {
    let mut behind = Vec::new();
    for version in versions() {
        let (transport, path) = match version.name {
            "python_1_2" | "python_1_6" => ("sse", "/sse"),
            "python_1_9" | "python_1_12" | "python_2" => ("streamable-http", "/mcp"),
            "typescript_1" => ("", "/mcp"),
            _ => continue,
        };
        behind.push(Behind::new(folder, version, transport, path));
    }
    behind
}

#[tokio::test]
async fn servers_behind_a_url_of_each_sdk_are_listed_called_restarted_and_killed() {
    let folder = TempDir::new().unwrap();
    let mut behind = behind_urls(folder.path());
    let servers: Vec<_> = behind.iter().map(|server| server.name).collect();
    for server in &mut behind {
        server.start().await;
    }
    let tables: String = behind.iter().map(Behind::table).collect();
    let stack = stack_of(&servers, &tables).await;
    the_tools_are_listed(&stack, &servers).await;
    let _running = stack.start_with_one_worker().await;
    let restart = async || restart_all(&mut behind).await;
    survive(&stack, folder.path(), &servers, restart).await;
}
