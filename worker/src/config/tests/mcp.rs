//! `[mcp.NAME]`: MCP servers.

use std::{collections::BTreeMap, time::Duration};

use everturn_activities::tools::{
    Effect,
    mcp::{PerTenant, SecretFile, ServerLocation},
};

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

#[test]
fn a_server_may_have_a_connection_for_each_tenant() {
    let text = "[mcp.notes]\ncommand = [\"notes\"]\nper = \"tenant\"\nmax_connections = 3\nkeep_idle = \"1m\"\n\
                tenants = [\"acme\"]\nagents = [\"clerk\"]\nenv_file = {TOKEN = \"/run/secrets/{tenant}/token\"}\n\
                [mcp.web]\nurl = \"https://example.com/mcp\"\nheaders_file = {authorization = \"token\"}\n\
                tell_caller = false\n";
    let servers = parse(text).unwrap().mcp;
    let [notes, web] = &servers[..] else {
        panic!("{servers:?}")
    };
    let limits = PerTenant {
        max_connections: 3,
        idle: Duration::from_secs(60),
    };
    assert_eq!((notes.per_tenant, web.per_tenant), (Some(limits), None));
    assert!(notes.tell_caller && !web.tell_caller);
    assert_eq!(
        (&notes.tenants[..], &notes.agents[..]),
        (&["acme".into()][..], &["clerk".into()][..])
    );
    let ServerLocation::Command {
        environment_files, ..
    } = &notes.location
    else {
        panic!("{servers:?}")
    };
    assert_eq!(
        environment_files[0].1,
        SecretFile::new("/run/secrets/{tenant}/token")
    );
    for (more, expected) in [
        (
            "keep_idle = \"1m\"",
            "`keep_idle` belongs to a server with `per = \"tenant\"`",
        ),
        ("max_connections = 2", "`max_connections` belongs to"),
        (
            "env_file = {A = \"/{tenant}\"}",
            "`{tenant}` in `env_file` needs",
        ),
        (
            "headers_file = {a = \"/a\"}",
            "`headers_file` belongs to a server with a `url`",
        ),
        ("per = \"user\"", "unknown variant `user`"),
        ("tenants = []", "`tenants` names 1 to 1000"),
    ] {
        let message = error(&format!("[mcp.notes]\ncommand = [\"notes\"]\n{more}\n"));
        assert!(message.contains(expected), "{more}: {message}");
    }
}
