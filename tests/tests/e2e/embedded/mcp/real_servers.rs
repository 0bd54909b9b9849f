//! Servers that people really have, besides those of `reference.rs`: a call, a restart between two calls, and a kill in the middle
//! of a call.

use std::{fs, path::Path};

use everturn_tests::{
    events::{error, result},
    mcp::{self, EVERYTHING, FILESYSTEM},
    stack::Stack,
    wait,
};
use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{calling, kill, listed, reference::make_repository, running, told};

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
    [of_npm(root), of_pypi(root)]
        .into_iter()
        .flatten()
        .collect()
}

fn server(
    name: &'static str,
    command: Vec<String>,
    tool: &'static str,
    input: Value,
    expected: &'static str,
) -> Server {
    Server {
        name,
        command,
        tool,
        input,
        expected,
    }
}

fn of_npm(root: &Path) -> Vec<Server> {
    let node = |package| vec!["node".to_owned(), mcp::npm(package).display().to_string()];
    let folder = root.display().to_string();
    let memory = format!("MEMORY_FILE_PATH={}", root.join("memory.jsonl").display());
    let memory = [vec!["env".to_owned(), memory], node("server-memory")].concat();
    let files = [node(FILESYSTEM), vec![folder.clone()]].concat();
    let hi = json!({"message": "hi"});
    let path = json!({"path": folder});
    let thought = json!({"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let entity = json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["likes tea"]}]});
    let thinking = node("server-sequential-thinking");
    vec![
        server("everything", node(EVERYTHING), "echo", hi, "Echo: hi"),
        server("files", files, "list_directory", path, "hello.txt"),
        server("memory", memory, "create_entities", entity, ""),
        server(
            "thinking",
            thinking,
            "sequentialthinking",
            thought,
            "thoughtHistoryLength",
        ),
    ]
}

fn of_pypi(root: &Path) -> Vec<Server> {
    let python = |program| vec![mcp::python(program).display().to_string()];
    let notes = root.join("fastmcp");
    fs::create_dir_all(&notes).unwrap();
    let notes = notes.display().to_string();
    let fastmcp = vec![mcp::script("sdk2.py"), notes, "fastmcp".to_owned()];
    let fastmcp = [python("python"), fastmcp].concat();
    let fetch = [
        python("mcp-server-fetch"),
        vec!["--ignore-robots-txt".to_owned()],
    ]
    .concat();
    let (time, git) = (python("mcp-server-time"), python("mcp-server-git"));
    let repository = json!({"repo_path": root});
    let zone = json!({"timezone": "UTC"});
    let nothing = json!({"url": "http://127.0.0.1:9/"});
    vec![
        server("time", time, "get_current_time", zone, "UTC"),
        server("git", git, "git_log", repository, "The first commit"),
        server("fetch", fetch, "fetch", nothing, ""),
        server(
            "fastmcp",
            fastmcp,
            "echo",
            json!({"text": "hi"}),
            "Echo: hi",
        ),
    ]
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
    let call = |server: &Server| {
        let tool = format!("{}__{}", server.name, server.tool);
        (tool, server.input.clone())
    };
    let model = calling(servers.iter().map(call).collect()).await;
    Stack::with_agent(model, &agent).await
}

async fn stop_all(servers: &[Server], folder: &Path) {
    for server in servers {
        let pid = running(folder, server.name).await.parse().unwrap();
        signal::kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
}

async fn kill_all(servers: &[Server], folder: &Path) {
    for server in servers {
        kill(&running(folder, server.name).await);
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
    stop_all(servers, folder).await;
    let (conversation, _) = stack.ask("go").await;
    for (server, before) in servers.iter().zip(before) {
        wait::until(&format!("{} has the call", server.name), || async {
            (times_called(folder, server) > before).then_some(())
        })
        .await;
    }
    kill_all(servers, folder).await;
    stack.ended(&conversation, 1).await
}

#[tokio::test]
async fn the_servers_of_registries_are_listed_restarted_and_killed() {
    for effect in ["once", "read"] {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("hello.txt"), "Hello").unwrap();
        make_repository(&root);
        let servers = servers(&root);
        let stack = stack_of(&servers, folder.path(), effect).await;
        let names = listed(&stack).await;
        for server in &servers {
            let tool = format!("{}__{}", server.name, server.tool);
            assert!(names.contains(&tool), "{tool}: {names:#?}");
        }
        let _running = stack.start_with_one_worker().await;
        for _turn in 0..2 {
            let (conversation, _) = stack.ask("go").await;
            each_has_answered(&servers, &stack.ended(&conversation, 1).await);
            kill_all(&servers, folder.path()).await;
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
