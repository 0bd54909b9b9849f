//! Tests of `everturn tools list` and `tools call`, which need neither Temporal nor a database.

use std::{
    fs,
    process::{Output, Stdio},
};

use everturn_tests::{
    mcp::{self, EVERYTHING},
    stack, wait,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

const SKILL: &str = "---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n";
const CONFIG: &str = r#"
[providers.main]
kind = "openai"

[agents.default]
provider = "main"
model = "m"
tools = ["calculate", { name = "test_once", timeout = "2m", approval = "always" }, "pick_file"]
delegates = ["greeter"]

[client_tools.pick_file]
description = "Asks the user for a file."

[agents.greeter]
provider = "main"
model = "m"
tools = [{ name = "test_read", timeout = "1s" }]
skills = ["*"]

[agents.hopeful]
provider = "main"
model = "m"
tools = ["calculate"]
skills = ["broken"]

[skills]
paths = ["skills"]
"#;

/// Makes a folder with a configuration, a valid skill and one that is not valid.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("greet", SKILL), ("broken", "Nothing.")] {
        fs::create_dir_all(folder.path().join("skills").join(name)).unwrap();
        fs::write(
            folder.path().join("skills").join(name).join("SKILL.md"),
            text,
        )
        .unwrap();
    }
    fs::write(folder.path().join("everturn.toml"), CONFIG).unwrap();
    folder
}

fn command(folder: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(stack::binary());
    command
        .arg("tools")
        .args(args)
        .current_dir(folder.path())
        // A command that connects to one of these fails.
        .env("EVERTURN_DATABASE", "postgres://127.0.0.1:1/nothing")
        .env("EVERTURN_REDIS", "redis://127.0.0.1:1")
        .env("TEMPORAL_ADDRESS", "127.0.0.1:1")
        .env("EVERTURN_TEST_TOOLS", folder.path().join("effects"))
        .env_remove("EVERTURN_CONFIG")
        .env_remove("EVERTURN_LOG")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

async fn run(folder: &TempDir, args: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command(folder, args).output().await.unwrap();
    (
        status.code(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

#[tokio::test]
async fn a_list_shows_what_the_model_is_offered() {
    let folder = folder();
    let (code, shown, _) = run(&folder, &["list"]).await;
    let lines: Vec<_> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .collect();
    assert_eq!(code, Some(0));
    assert_eq!(
        lines[0][..5],
        ["calculate", "built-in", "read", "5m", "never"]
    );
    assert_eq!(
        lines[1][..5],
        ["test_once", "built-in", "once", "2m", "always"]
    );
    assert_eq!(
        lines[2][..5],
        ["pick_file", "client", "once", "1h", "never"]
    );
    assert_eq!(lines[3][..3], ["delegate", "sub-agent", "idempotent"]);
    assert_eq!(lines.len(), 4);

    let (code, json, _) = run(&folder, &["list", "--agent", "greeter", "--json"]).await;
    let listing: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (code, &listing["agent"], &listing["unavailable"]),
        (Some(0), &json!("greeter"), &json!([]))
    );
    let skill = &listing["tools"][1];
    assert_eq!(
        (&skill["name"], &skill["kind"], &skill["effect"]),
        (&json!("skill__greet"), &json!("skill"), &json!("read"))
    );
    assert!(
        skill["description"]
            .as_str()
            .unwrap()
            .contains("Greets people.")
    );
    assert_eq!(skill["parameters"]["type"], "object");
    assert_eq!(
        (&skill["timeout_ms"], &listing["tools"][0]["timeout_ms"]),
        (&json!(300_000), &json!(1000))
    );
}

#[tokio::test]
async fn what_is_not_there_is_shown_as_such() {
    let folder = folder();
    let (code, shown, said) = run(&folder, &["list", "--agent", "hopeful"]).await;
    assert_eq!(code, Some(0));
    assert!(shown.contains("skill__broken  unavailable"), "{shown}");
    assert!(said.contains("a skill is left out"), "{said}");
    let (code, ..) = run(&folder, &["list", "--agent", "hopeful", "--strict"]).await;
    assert_eq!(code, Some(1));
    let (code, _, said) = run(&folder, &["list", "--agent", "nobody"]).await;
    assert_eq!(code, Some(2));
    assert!(
        said.contains("no agent has the name `nobody`; the agents are: default, greeter, hopeful"),
        "{said}"
    );
}

#[tokio::test]
async fn a_call_prints_the_result_alone() {
    let folder = folder();
    let (code, result, _) = run(&folder, &["call", "calculate", r#"{"expression":"6 * 7"}"#]).await;
    assert_eq!(
        (code, result.as_str()),
        (Some(0), "{\"expression\":\"6 * 7\",\"value\":\"42\"}\n")
    );
    let (code, result, said) = run(&folder, &["call", "skill__greet", "--agent", "greeter"]).await;
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!((code, &result["text"]), (Some(0), &json!("Say hello.")));
    assert!(said.contains("event skill_matched "), "{said}");
}

#[tokio::test]
async fn exit_codes_tell_a_failed_tool_from_one_that_was_not_called() {
    let folder = folder();
    for (args, code, expected) in [
        (
            &["test_read", r#"{"fail":"it is broken"}"#][..],
            1,
            "it is broken",
        ),
        (&["test_read", r#"{"panic":true}"#], 1, "internal error"),
        (
            &["test_read", r#"{"sleep_ms":60000}"#, "--agent", "greeter"],
            1,
            "did not finish within 1s",
        ),
        (
            &["skill__greet", r#"{"file":"../x"}"#],
            1,
            "no file with this name",
        ),
        (&["skill__gone"], 1, "skill has this name"),
        (&["test_read", "{"], 2, "the input is not JSON"),
        (&["test_read", "[]"], 2, "are an array"),
        (
            &["test_read", r#"{"sleep":5}"#],
            2,
            "'sleep' was unexpected",
        ),
        (&["nothing"], 2, "there is no tool `nothing`"),
        (
            &["nothing__at_all"],
            2,
            "there is no tool `nothing__at_all`",
        ),
        (
            &["calculate", "{}", "--agent", "greeter"],
            2,
            "agent `greeter` has no tool `calculate`",
        ),
        (&["test_once", r#"{"effect":true}"#], 2, "use --yes"),
    ] {
        let (found, result, said) = run(&folder, &[&["call"], args].concat()).await;
        assert_eq!(
            (found, result.as_str()),
            (Some(code), ""),
            "{args:?}: {said}"
        );
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    assert!(
        !folder.path().join("effects").exists(),
        "nothing that acts was called"
    );
    let (code, ..) = run(
        &folder,
        &["call", "test_once", r#"{"effect":true}"#, "--yes"],
    )
    .await;
    assert_eq!(code, Some(0));
    assert_eq!(
        fs::read_to_string(folder.path().join("effects"))
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[tokio::test]
async fn tools_of_servers_are_listed_and_called_and_one_that_is_down_is_shown() {
    let folder = folder();
    let agent = "[providers.main]\nkind = \"openai\"\n[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n\
                 tools = [\"up__*\", { name = \"up__echo\", timeout = \"9s\" }, \"down__*\"]\n";
    let up = mcp::command(
        "up",
        &["node", &mcp::npm(EVERYTHING).display().to_string()],
        "effects = {\"*\" = \"read\"}",
    );
    let config = format!("{agent}{up}{}", mcp::command("down", &["false"], ""));
    fs::write(folder.path().join("everturn.toml"), config).unwrap();
    let (code, shown, said) = run(&folder, &["list"]).await;
    assert_eq!(code, Some(0), "{said}");
    let echo = shown
        .lines()
        .find(|line| line.starts_with("up__echo "))
        .unwrap_or_else(|| panic!("{shown}\n{said}"));
    assert!(echo.contains("MCP server") && echo.contains("9s"), "{echo}");
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("down__*") && line.contains("unavailable")),
        "{shown}"
    );

    let (code, result, said) = run(&folder, &["call", "up__echo", r#"{"message":"hello"}"#]).await;
    assert_eq!(
        (code, result.as_str()),
        (Some(0), "\"Echo: hello\"\n"),
        "{said}"
    );
    let long = [
        "call",
        "up__trigger-long-running-operation",
        r#"{"duration":2,"steps":4}"#,
    ];
    let (code, _, said) = run(&folder, &long).await;
    assert!(code == Some(0) && said.contains("progress "), "{said}");
    let (code, _, said) = run(&folder, &["call", "down__anything"]).await;
    assert!(
        code == Some(1) && said.contains("`down` is not available now"),
        "{said}"
    );
}

/// Runs `everturn config check` with more arguments.
async fn check(folder: &TempDir, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(stack::binary());
    command
        .args(["config", "check"])
        .args(more)
        .current_dir(folder.path())
        .env_remove("EVERTURN_CONFIG")
        .stdin(Stdio::null());
    let Output { status, stdout, .. } = command.output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[tokio::test]
async fn the_status_of_servers_tells_why_a_server_is_not_available() {
    let folder = folder();
    let server = mcp::npm(EVERYTHING).display().to_string();
    let json = json!({"mcpServers": {
        "up": {"command": "node", "args": [server]},
        "lacks": {"command": "node", "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
    }});
    fs::write(folder.path().join("mcp.json"), json.to_string()).unwrap();
    let import = "[mcp]\nimport = \"mcp.json\"\nunconfined = [\"up\", \"lacks\"]\n";
    let fails = "import sys; sys.exit('no module named shop')";
    let down = mcp::command("down", &["python3", "-c", fails], "");
    let agent = "[providers.main]\nkind = \"openai\"\n[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
    fs::write(
        folder.path().join("everturn.toml"),
        format!("{agent}{import}{down}"),
    )
    .unwrap();

    let (code, shown, said) = run(&folder, &["status"]).await;
    assert_eq!(code, Some(1), "{said}");
    let line = |name: &str| {
        let mut lines = shown.lines();
        let line = lines.find(|line| line.split_whitespace().nth(1) == Some(name));
        line.unwrap_or_else(|| panic!("{shown}\n{said}"))
    };
    let up = line("up");
    assert!(
        up.starts_with('✓') && up.contains(" tools") && up.contains("protocol 20"),
        "{up}"
    );
    assert!(line("down").starts_with('✗') && line("down").contains("no module named shop"));
    assert!(line("lacks").starts_with('✗') && line("lacks").contains("NOT_SET_ANYWHERE"));

    let (code, shown, said) = run(&folder, &["status", "up", "--json"]).await;
    let rows: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (code, &rows[0]["available"]),
        (Some(0), &json!(true)),
        "{said}"
    );
    let (code, _, said) = run(&folder, &["status", "nobody"]).await;
    assert!(
        code == Some(2) && said.contains("there are: down, lacks, up"),
        "{said}"
    );

    let (code, shown) = check(&folder, &[]).await;
    assert!(code == Some(1) && shown.contains("✗ mcp.lacks"), "{shown}");
    assert!(!shown.contains("no module named shop"), "{shown}");
    let (code, shown) = check(&folder, &["--try"]).await;
    assert!(
        code == Some(1) && shown.contains("✓ up") && shown.contains("no module named shop"),
        "{shown}"
    );
}

#[tokio::test]
async fn ctrl_c_cancels_a_call() {
    let folder = folder();
    let input = r#"{"effect":true,"sleep_ms":600000}"#;
    let call = command(&folder, &["call", "test_read", input])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The tool writes its effect first, so it runs when the file is there.
    wait::until("the tool runs", || async {
        folder.path().join("effects").exists().then_some(())
    })
    .await;
    let id = call.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .await
            .unwrap()
            .success()
    );
    let ended = call.wait_with_output().await.unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("the call was cancelled"));
}

#[tokio::test]
async fn a_list_that_nobody_reads_to_its_end_is_no_fault() {
    let folder = folder();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(&folder, &["list"]);
    command.stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(output.status.code(), Some(141), "{said}");
}

/// A client tool is left out for a model whose provider takes no such schema, and a model with few tools is named.
#[tokio::test]
async fn a_list_shows_what_the_providers_of_the_models_do_not_take() {
    let folder = folder();
    let config = CONFIG.replace(
        "kind = \"openai\"",
        "kind = \"openai\"\nprofile = { max_tools = 8 }",
    );
    let tools = (0..8).map(|number| format!("[client_tools.t{number}]\ndescription = \"x\"\n"));
    let tools: String = tools.collect();
    let input = "input = { type = \"object\", anyOf = [{ type = \"string\" }] }";
    let agent = "[agents.many]\nprovider = \"main\"\nmodel = \"m\"\n\
                 tools = [\"t0\", \"t1\", \"t2\", \"t3\", \"t4\", \"t5\", \"t6\", \"t7\", \"odd\"]\n";
    let odd = format!("[client_tools.odd]\ndescription = \"x\"\n{input}\n");
    fs::write(
        folder.path().join("everturn.toml"),
        format!("{config}{tools}{odd}{agent}"),
    )
    .unwrap();
    let (code, shown, errors) = run(&folder, &["list", "--agent", "many"]).await;
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        shown.contains("left out for main/m: the schema of its input allows no JSON object"),
        "{shown}"
    );
    assert!(
        shown.contains("main/m takes 8 tools in a request"),
        "{shown}"
    );
    let (_, json, _) = run(&folder, &["list", "--agent", "many", "--json"]).await;
    let listing: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        listing["limited"],
        json!([{"model": "main/m", "max_tools": 8}])
    );
    assert_eq!(listing["tools"][8]["left_out"][0]["model"], "main/m");
    assert!(listing["tools"][0].get("left_out").is_none());
}
