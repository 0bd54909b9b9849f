//! Servers that people really have, besides those of `reference.rs`: a call, a restart between two calls, and a kill in the middle
//! of a call.

use std::{fs, path::Path};

use everturn_tests::{
    events::{error, result},
    mcp::{self, EVERYTHING, FILESYSTEM},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{kill, processes, told};

/// A server with one of its tools.
struct Server {
    name: &'static str,
    command: Vec<String>,
    tool: &'static str,
    input: Value,
    /// A part of the tool's result.
    expected: &'static str,
}

fn servers(root: &Path) -> Vec<Server> {
    let node = |package| vec!["node".to_owned(), mcp::npm(package).display().to_string()];
    let python = |program| vec![mcp::python(program).display().to_string()];
    let with = |command: Vec<String>, more: &[&str]| {
        command
            .into_iter()
            .chain(more.iter().map(|word| (*word).to_owned()))
            .collect()
    };
    let folder = root.display().to_string();
    let notes = root.join("fastmcp");
    fs::create_dir_all(&notes).unwrap();
    let fastmcp = [
        mcp::script("sdk2.py"),
        notes.display().to_string(),
        "fastmcp".to_owned(),
    ];
    let server = |name, command, tool, input, expected| Server {
        name,
        command,
        tool,
        input,
        expected,
    };
    let thought = json!({"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let entity = json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["likes tea"]}]});
    let memory = format!("MEMORY_FILE_PATH={}", root.join("memory.jsonl").display());
    vec![
        server(
            "everything",
            node(EVERYTHING),
            "echo",
            json!({"message": "hi"}),
            "Echo: hi",
        ),
        server(
            "files",
            with(node(FILESYSTEM), &[&folder]),
            "list_directory",
            json!({"path": folder}),
            "hello.txt",
        ),
        server(
            "memory",
            with(
                vec!["env".to_owned(), memory],
                &node("server-memory")
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
            ),
            "create_entities",
            entity,
            "",
        ),
        server(
            "thinking",
            node("server-sequential-thinking"),
            "sequentialthinking",
            thought,
            "thoughtHistoryLength",
        ),
        server(
            "time",
            python("mcp-server-time"),
            "get_current_time",
            json!({"timezone": "UTC"}),
            "UTC",
        ),
        server(
            "git",
            python("mcp-server-git"),
            "git_init",
            json!({"repo_path": folder}),
            "repository",
        ),
        server(
            "fetch",
            with(python("mcp-server-fetch"), &["--ignore-robots-txt"]),
            "fetch",
            json!({"url": "http://127.0.0.1:9/"}),
            "",
        ),
        server(
            "fastmcp",
            [python("python"), fastmcp.to_vec()].concat(),
            "echo",
            json!({"text": "hi"}),
            "Echo: hi",
        ),
    ]
}

/// Starts a model that calls the tool of each server in the first step of a turn, then answers.
async fn calling(servers: &[Server]) -> Model {
    let calls: Vec<_> = servers
        .iter()
        .map(|server| {
            (
                format!("{}__{}", server.name, server.tool),
                server.input.clone(),
            )
        })
        .collect();
    Model::start(
        move |request: &Request| match request.results_since_user() {
            0 => calls
                .iter()
                .fold(Reply::text("I ask."), |reply, (tool, input)| {
                    reply.call(tool, input)
                }),
            _ => Reply::text("Done."),
        },
    )
    .await
}

/// Each server but `fetch` answers: its address answers nothing, which is the tool's own error.
fn each_has_answered(servers: &[Server], events: &[Value]) {
    for server in servers {
        let tool = format!("{}__{}", server.name, server.tool);
        if server.name == "fetch" {
            let why = error(events, &tool);
            assert!(
                why.contains("127.0.0.1:9") || why.contains("fetch"),
                "{why}"
            );
            assert!(!why.contains("may or may not"), "{why}");
            continue;
        }
        let given = result(events, &tool).to_string();
        assert!(given.contains(server.expected), "{tool}: {given}");
    }
}

async fn stack_of(servers: &[Server], folder: &Path, effect: &str) -> Stack {
    let effects = format!("effects = {{ \"*\" = \"{effect}\" }}\nconnect_timeout = \"1m\"");
    let tables = servers.iter().map(|server| {
        let command: Vec<_> = server.command.iter().map(String::as_str).collect();
        mcp::watched_command(server.name, &command, folder, &effects)
    });
    let tables: String = tables.collect();
    let tools: Vec<_> = servers
        .iter()
        .map(|it| format!("\"{}__{}\"", it.name, it.tool))
        .collect();
    let agent = format!("tools = [{}]\n{tables}", tools.join(", "));
    Stack::with_agent(calling(servers).await, &agent).await
}

fn stop_all(servers: &[Server], folder: &Path) {
    for server in servers {
        let pid = processes(folder, server.name)
            .last()
            .unwrap()
            .parse()
            .unwrap();
        signal::kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
}

fn kill_all(servers: &[Server], folder: &Path) {
    for server in servers {
        kill(processes(folder, server.name).last().unwrap());
    }
}

fn times_called(folder: &Path, server: &Server) -> usize {
    let told = told(folder, server.name);
    told.iter()
        .filter(|message| message["method"] == "tools/call")
        .count()
}

/// Asks while each server is stopped, and kills the servers once each of them has the call.
async fn kill_in_mid_call(stack: &Stack, servers: &[Server], folder: &Path) -> Vec<Value> {
    let before: Vec<_> = servers
        .iter()
        .map(|server| times_called(folder, server))
        .collect();
    stop_all(servers, folder);
    let (conversation, _) = stack.ask("go").await;
    for (server, before) in servers.iter().zip(before) {
        wait::until(&format!("{} has the call", server.name), || async {
            (times_called(folder, server) > before).then_some(())
        })
        .await;
    }
    kill_all(servers, folder);
    stack.ended(&conversation, 1).await
}

#[tokio::test]
async fn the_servers_of_registries_are_restarted_and_killed() {
    for effect in ["once", "read"] {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("hello.txt"), "Hello").unwrap();
        let servers = servers(&root);
        let stack = stack_of(&servers, folder.path(), effect).await;
        let _running = stack.start_with_one_worker().await;
        for _turn in 0..2 {
            let (conversation, _) = stack.ask("go").await;
            each_has_answered(&servers, &stack.ended(&conversation, 1).await);
            kill_all(&servers, folder.path());
        }
        let (conversation, _) = stack.ask("go").await;
        each_has_answered(&servers, &stack.ended(&conversation, 1).await);
        let events = kill_in_mid_call(&stack, &servers, folder.path()).await;
        if effect == "read" {
            each_has_answered(&servers, &events);
            continue;
        }
        for server in &servers {
            let tool = format!("{}__{}", server.name, server.tool);
            let why = error(&events, &tool);
            assert!(why.contains("may or may not"), "{tool}: {why}");
            assert_eq!(times_called(folder.path(), server), 4, "{tool}");
        }
    }
}
