//! The reference servers of the MCP project, each in a turn.

use std::{fs, path::Path};

use everturn_tests::{
    events::{error, result},
    mcp::{self, EVERYTHING, FILESYSTEM},
    model::Request,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{offered, turn};

#[tokio::test]
async fn the_reference_servers_serve_a_turn() {
    let files = TempDir::new().unwrap();
    let root = files.path().canonicalize().unwrap();
    fs::write(root.join("hello.txt"), "Hello from a file").unwrap();
    make_repository(&root);
    let all =
        "[\"calculate\", \"everything__*\", \"files__*\", \"time__convert_time\", \"git__*\"]";
    let (stack, events) = turn(calls(&root), all, &tables(&root)).await;
    assert_eq!(events.last().unwrap()["event_type"], "complete");
    the_named_tools_are_offered(&stack.model.requests()[0]);
    the_server_of_everything_has_answered(&events);
    the_others_have_answered(&events, &root);
}

/// Makes a git repository whose first commit has all files of the directory.
pub(super) fn make_repository(root: &Path) {
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        let status = std::process::Command::new("git")
            .current_dir(root)
            .args(identity)
            .args(arguments)
            .status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "The first commit"]);
}

/// Returns the tables of the configuration for all servers.
fn tables(root: &Path) -> String {
    let node = |package: &str| mcp::npm(package).display().to_string();
    let python = |program: &str| mcp::python(program).display().to_string();
    [
        mcp::command("everything", &["node", &node(EVERYTHING)], ""),
        mcp::command(
            "files",
            &["node", &node(FILESYSTEM), &root.display().to_string()],
            "",
        ),
        mcp::command(
            "time",
            &[&python("mcp-server-time"), "--local-timezone", "UTC"],
            "",
        ),
        mcp::command(
            "git",
            &[&python("mcp-server-git")],
            "tools = [\"git_log\", \"git_status\"]",
        ),
    ]
    .concat()
}

/// Returns calls of tools of each server.
fn calls(root: &Path) -> Vec<(&'static str, Value)> {
    let at = |name: &str| root.join(name).display().to_string();
    vec![
        ("everything__echo", json!({"message": "9007199254740993"})),
        ("everything__get-sum", json!({"a": 2, "b": 3})),
        (
            "everything__get-structured-content",
            json!({"location": "Chicago"}),
        ),
        ("everything__get-tiny-image", json!({})),
        (
            "everything__get-resource-reference",
            json!({"resourceType": "Blob", "resourceId": 1}),
        ),
        ("files__read_text_file", json!({"path": at("hello.txt")})),
        (
            "files__write_file",
            json!({"path": at("new.txt"), "content": "Written by an agent"}),
        ),
        ("files__read_file", json!({"path": "/etc/hostname"})),
        (
            "time__convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ),
        ("git__git_log", json!({"repo_path": root})),
    ]
}

fn the_named_tools_are_offered(request: &Request) {
    let tools = offered(request);
    assert_eq!(tools[0], "calculate");
    assert!(
        !tools.contains(&"time__get_current_time".to_owned()),
        "one tool of a server was named: {tools:?}"
    );
    let of_git: Vec<_> = tools
        .iter()
        .filter(|tool| tool.starts_with("git__"))
        .collect();
    assert_eq!(
        of_git,
        ["git__git_log", "git__git_status"],
        "filtered by the server's `tools`"
    );
}

fn the_server_of_everything_has_answered(events: &[Value]) {
    assert_eq!(result(events, "everything__echo"), "Echo: 9007199254740993");
    assert_eq!(
        result(events, "everything__get-sum"),
        "The sum of 2 and 3 is 5."
    );
    assert_eq!(
        result(events, "everything__get-structured-content")["humidity"],
        82
    );
    let image = &result(events, "everything__get-tiny-image")[1];
    assert_eq!(
        (image["blob_id"].is_string(), &image["type"]),
        (true, &json!("image/png"))
    );
    let parts = result(events, "everything__get-resource-reference");
    assert!(
        parts
            .as_array()
            .unwrap()
            .iter()
            .any(|part| part["uri"].is_string() && part["data"].is_string()),
        "{parts}"
    );
}

fn the_others_have_answered(events: &[Value], root: &Path) {
    let read = result(events, "files__read_text_file");
    assert!(read.to_string().contains("Hello from a file"), "{read}");
    assert_eq!(
        fs::read_to_string(root.join("new.txt")).unwrap(),
        "Written by an agent"
    );
    assert!(error(events, "files__read_file").contains("outside allowed directories"));
    assert!(
        result(events, "time__convert_time")
            .to_string()
            .contains("21:00")
    );
    assert!(
        result(events, "git__git_log")
            .to_string()
            .contains("The first commit")
    );
}
