//! `[mcp.NAME]`: MCP servers.

use std::{collections::BTreeMap, time::Duration};

use everturn_activities::tools::{Effect, mcp::ServerLocation};

use super::PROVIDER;
use crate::config::{Config, ConfigError};

fn parse(text: &str) -> Result<Config, ConfigError> {
    let environment = [("KEY", "k"), ("TOKEN", "secret"), ("lower_case", "secret")];
    super::parse(text, &environment)
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_server_takes_what_is_written() {
    let text = "[mcp.files]\ncommand = [\"npx\", \"server\"]\ncwd = \"/srv\"\nenv_from = [\"TOKEN\", \"lower_case\"]\n\
                effects = {\"*\" = \"once\", list = \"read\"}\ntools = [\"list\"]\nidle_timeout = \"20s\"\nmax_tools = 3\n\
                [mcp.web]\nurl = \"https://example.com/mcp\"\nheaders_env = {authorization = \"TOKEN\"}\n";
    let servers = parse(text).unwrap().mcp;
    let [files, web] = &servers[..] else {
        panic!("{servers:?}")
    };
    assert_eq!(
        (
            files.name.as_str(),
            files.max_tools,
            files.max_concurrent_calls
        ),
        ("files", 3, 16)
    );
    assert_eq!(
        files.effects,
        BTreeMap::from([("*".into(), Effect::Once), ("list".into(), Effect::Read)])
    );
    assert_eq!(
        (files.idle_timeout, web.idle_timeout),
        (Some(Duration::from_secs(20)), None)
    );
    assert!(
        matches!(&files.location, ServerLocation::Command { environment, .. } if environment.len() == 2)
    );
    assert!(
        matches!(&web.location, ServerLocation::Url { headers, .. } if headers[0].1 == "secret")
    );
}

#[test]
fn what_is_wrong_is_said() {
    for (table, expected) in [
        ("[mcp.a__b]\ncommand = [\"x\"]", "single `_`"),
        ("[mcp.skill]\ncommand = [\"x\"]", "cannot be called `skill`"),
        ("[mcp.a]", "either a `command` or a `url`"),
        (
            "[mcp.a]\ncommand = [\"x\"]\nurl = \"http://x\"",
            "either a `command` or a `url`",
        ),
        ("[mcp.a]\ncommand = []", "a program and its arguments"),
        ("[mcp.a]\nurl = \"ftp://x\"", "http or https"),
        (
            "[mcp.a]\nurl = \"http://x\"\ncwd = \"/\"",
            "belongs to a server with a `command`",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\nheaders_env = {authorization = \"Bearer abc\"}",
            "not values",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\nheaders_env = {authorization = \"MISSING\"}",
            "MISSING named by `headers_env`",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nenv_from = [\"A=b\"]",
            "not values",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\neffects = {t = \"write\"}",
            "\"read\", \"idempotent\" or \"once\"",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nmax_tools = 0",
            "`max_tools` must be from 1",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nconnect_timeout = \"1h\"",
            "`connect_timeout` must be from 1s",
        ),
        ("[mcp.a]\ncommand = [\"x\"]\nunknown = 1", "unknown field"),
    ] {
        let error = error(table);
        assert!(error.contains(expected), "{table}: {error}");
    }
}

#[test]
fn agents_name_tools_of_servers_that_are_configured() {
    let agent = |tool: &str| {
        format!(
            "[mcp.files]\ncommand = [\"x\"]\n{PROVIDER}\
             [agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"calculate\", \"{tool}\"]\n"
        )
    };
    for good in ["files__read", "files__*"] {
        assert_eq!(parse(&agent(good)).unwrap().agents[0].tools[1].name, good);
    }
    assert!(error(&agent("web__*")).contains("there is no MCP server `web`; there are: files"));
    assert!(error(&agent("files__re*")).contains("`files__<tool>`"));
    assert!(error(&agent("files__")).contains("`files__<tool>`"));
}
