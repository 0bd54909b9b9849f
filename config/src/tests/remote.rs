//! `[remote_tools.NAME]`: tools that other workers run.

use super::{PROVIDER, assert_errors, parse};

const REMOTE: &str = "[remote_tools.t]\ndescription = \"Does.\"\ntask_queue = \"q\"\n";

#[test]
fn a_remote_tool_is_called_as_written() {
    let agent = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"t\", { name = \"u\", timeout = \"9s\" }]\n";
    let other = "[remote_tools.u]\ndescription = \"Does.\"\ntask_queue = \"q\"\nactivity_type = \"a\"\neffect = \"read\"\n\
                 timeout = \"5s\"\nheartbeat_timeout = \"2s\"\nstart_timeout = \"3s\"\nmax_result_bytes = 2048\n";
    let config = parse(
        &format!("{PROVIDER}{agent}{REMOTE}{other}"),
        &[("KEY", "k")],
    )
    .unwrap();
    let [t, u] = &config.agents[0].tools[..] else {
        panic!("two tools")
    };
    let worker = |activity_type: &str, heartbeat_timeout_ms, start_timeout_ms, max_result_bytes| {
        let (task_queue, activity_type) = ("q".to_owned(), activity_type.to_owned());
        Some(everturn_proto::turn::RemoteTool {
            task_queue,
            activity_type,
            heartbeat_timeout_ms,
            start_timeout_ms,
            max_result_bytes: Some(max_result_bytes),
        })
    };
    assert_eq!(
        (t.kind.as_str(), t.timeout_ms, &t.remote),
        ("remote", 300_000, &worker("t", None, 60_000, 131_072))
    );
    assert_eq!(
        (u.timeout_ms, &u.remote),
        (9_000, &worker("a", Some(2_000), 3_000, 2_048)),
        "the agent's time-out wins"
    );
    let effects: Vec<_> = config
        .described_tools
        .iter()
        .map(|tool| tool.spec.effect.as_str())
        .collect();
    assert_eq!(effects, ["once", "read"]);
}

#[test]
fn a_tool_has_a_title() {
    let agent = "[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";
    let described = |title: &str| {
        let text = format!("{PROVIDER}{agent}{REMOTE}{title}");
        let config = parse(&text, &[("KEY", "k")]).unwrap();
        config.described_tools[0].spec.title.clone()
    };
    assert_eq!(described(""), None);
    let title = "title = \"Pay {sum} of {{all}}\"\n";
    let expected = Some("Pay {sum} of {{all}}".to_owned());
    assert_eq!(described(title), expected, "any input is taken");
    let input = "input = { properties = { sum = {} } }\n";
    assert_eq!(described(&format!("{title}{input}")), expected);
}

#[test]
fn a_wrong_remote_tool_is_explained() {
    assert_errors(&[
        (
            REMOTE.replace("\"q\"", "\"\""),
            "3:14: `task_queue` and `activity_type` have 1 to 1000 bytes",
        ),
        (
            REMOTE.replace(".t]", ".calculate]"),
            "there already is a tool `calculate`",
        ),
        (
            format!("{REMOTE}start_timeout = \"0s\"\n"),
            "`start_timeout` must be from 1s",
        ),
        (
            format!("{REMOTE}max_result_bytes = 2000000\n"),
            "`max_result_bytes` must be from 1024 to 1048576",
        ),
        (
            format!("{REMOTE}title = \"Pay {{sum\"\n"),
            "4:9: `title` cannot be used: a `{` has no `}`",
        ),
        (
            format!(
                "{REMOTE}title = \"Pay {{sun}}\"\ninput = {{ properties = {{ sum = {{}} }} }}\n"
            ),
            "4:9: `{sun}` is no property of `input`",
        ),
        (format!("{REMOTE}url = \"x\"\n"), "unknown field `url`"),
        (
            "[remote_tools.t]\ndescription = \"Does.\"\n".to_owned(),
            "missing field `task_queue`",
        ),
    ]);
}
