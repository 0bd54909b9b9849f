//! The hooks of an agent.

use everturn_proto::{turn::AgentHooks, words::ToolKind};
use serde_json::json;

use super::{PROVIDER, assert_errors, parse};

const AGENT: &str = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
const REMOTE: &str =
    "[remote_tools.far]\ndescription = \"d\"\ntask_queue = \"q\"\ntimeout = \"5s\"\n";
const CLIENT: &str = "[client_tools.ask]\ndescription = \"d\"\n";

fn config(keys: &str, hooks: &str) -> String {
    format!(
        "{PROVIDER}{CLIENT}{REMOTE}[mcp.memory]\ncommand = [\"m\"]\nprocess.unconfined = true\n{AGENT}{keys}[agents.default.hooks]\n{hooks}"
    )
}

fn hooks(text: &str) -> Option<AgentHooks> {
    let config = parse(&config("", text), &[("KEY", "secret")]).unwrap();
    config.agents[0].hooks.clone()
}

#[test]
fn a_hook_is_the_name_of_a_tool_or_a_table() {
    let hooks = hooks(
        "before_turn = [\"calculate\", { name = \"memory__search\", timeout = \"3s\", input = { query = \"{message}\" } }, \
         \"far\"]\nafter_turn = [\"memory__add\"]\ntimeout = \"5s\"\nmax_result_bytes = 1000\n",
    )
    .unwrap();
    let [plain, table, remote] = &hooks.before_turn[..] else {
        panic!("{hooks:?}")
    };
    let tool = plain.tool.as_ref().unwrap();
    assert_eq!((tool.name.as_str(), tool.timeout_ms), ("calculate", 5000));
    assert_eq!(plain.input, None);
    assert_eq!(table.tool.as_ref().unwrap().timeout_ms, 3000);
    let input = table.input.as_ref().unwrap().to_value();
    assert_eq!(input, json!({"query": "{message}"}));
    assert_eq!(remote.tool.as_ref().unwrap().kind(), ToolKind::Remote);
    assert_eq!(hooks.after_turn.len(), 1);
    assert_eq!(hooks.max_result_bytes, 1000);
}

#[test]
fn an_empty_table_is_no_table() {
    assert_eq!(hooks(""), None);
    let one = hooks("after_turn = [\"calculate\"]\n").unwrap();
    assert_eq!(one.after_turn[0].tool.as_ref().unwrap().timeout_ms, 10_000);
    assert_eq!(one.max_result_bytes, 8192);
}

#[test]
fn what_cannot_be_used_is_told() {
    let many = format!("before_turn = [{}]\n", "\"calculate\", ".repeat(9));
    let asks = "tools = [{ name = \"memory__*\", approval = \"always\" }]\n";
    let cases = [
        (
            "",
            "before_turn = [\"recall\"]\n",
            "there is no tool `recall`",
        ),
        (
            "",
            "before_turn = [\"none__x\"]\n",
            "there is no MCP server `none`",
        ),
        ("", "before_turn = [\"ask\"]\n", "the client runs this tool"),
        (
            "",
            "after_turn = [\"far\"]\n",
            "a remote tool cannot run after the turn",
        ),
        ("", "before_turn = [\"delegate\"]\n", "a hook is one tool"),
        ("", "before_turn = [\"memory__*\"]\n", "a hook is one tool"),
        (
            asks,
            "before_turn = [\"memory__add\"]\n",
            "a hook cannot wait for a person",
        ),
        ("", many.as_str(), "`before_turn` has at most 8 hooks"),
        ("", "before_turn = [5]\n", "write a hook as"),
        (
            "",
            "before_turn = [{ name = \"calculate\", approval = \"always\" }]\n",
            "a hook has no `approval`",
        ),
        (
            "",
            "before_turn = [{ name = \"calculate\", input = 5 }]\n",
            "`input` of a hook is a table",
        ),
        (
            "",
            "before_turn = [{ name = \"calculate\", timeout = \"1h\" }]\n",
            "a hook has at most 10m",
        ),
        ("", "timeout = \"1h\"\n", "`timeout` must be from 1s to 10m"),
        (
            "",
            "max_result_bytes = 1\n",
            "`max_result_bytes` must be from 256 to 16384",
        ),
    ];
    assert_errors(&cases.map(|(keys, text, expected)| (config(keys, text), expected)));
    let long = "x".repeat(16 * 1024);
    let long =
        format!("before_turn = [{{ name = \"calculate\", input = {{ q = \"{long}\" }} }}]\n");
    assert_errors(&[(config("", &long), "is longer than 16384 bytes")]);
}
