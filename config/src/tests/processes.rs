//! `[processes]` and `[mcp.NAME.process]`: what programs may do.

use std::path::Path;

use everturn_supervisor::launch::{Access, Limits, Policy};
use everturn_tools::mcp::ServerLocation;

use super::{assert_errors, parse};

/// The policy of each MCP server of the text, by its name.
fn servers(text: &str) -> Vec<(String, Policy)> {
    let servers = parse(text, &[]).unwrap().mcp.into_iter();
    servers
        .filter_map(|server| match server.location {
            ServerLocation::Command { launch, .. } => Some((server.name, launch.policy()?.clone())),
            ServerLocation::Url { .. } | ServerLocation::Unusable { .. } => None,
        })
        .collect()
}

#[test]
fn every_program_has_limits_without_any_key() {
    let config = parse(
        "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\n",
        &[],
    )
    .unwrap();
    assert_eq!(config.processes.limits, Limits::default_for(None));
    assert_eq!(config.processes.limits.memory_bytes, Some(4 << 30));
    assert_eq!(
        servers("[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\n")[0].1,
        config.processes
    );
}

#[test]
fn a_server_has_what_it_says_and_else_what_all_have() {
    let text = "[processes]\nmax_open_files = 100\nmax_cpu_time = \"2m\"\nread = [\"/opt\"]\nwrite = []\nconnect_ports = [443]\nrequire_landlock = true\n\
                [mcp.own]\ncommand = [\"x\"]\n\
                [mcp.own.process]\nmax_open_files = 50\nwrite = [\"data\"]\nconnect_ports = []\n\
                [mcp.plain]\ncommand = [\"x\"]\n";
    let servers = servers(text);
    let (own, plain) = (&servers[0].1, &servers[1].1);
    assert_eq!(
        (own.limits.open_files, plain.limits.open_files),
        (Some(50), Some(100))
    );
    assert_eq!(
        (own.limits.cpu_seconds, plain.limits.cpu_seconds),
        (Some(120), Some(120))
    );
    assert_eq!(own.access.read, plain.access.read);
    assert_eq!(
        (&own.access.connect_ports, &plain.access.connect_ports),
        (&Some(vec![]), &Some(vec![443]))
    );
    assert!(own.requires_landlock && plain.requires_landlock);
    // The program may run in another folder.
    let written = &own.access.write.as_ref().unwrap()[0];
    assert!(
        written.is_absolute() && written.ends_with(Path::new("data")),
        "{written:?}"
    );
}

#[test]
fn a_program_needs_its_rights_by_name() {
    let server = "[mcp.a]\ncommand = [\"x\"]\n";
    let read = "`read = []` with the files it reads";
    let write = "`write = []` with the files it changes";
    let ports = "`connect_ports = []` with the TCP ports it connects to";
    for (rights, lacking) in [
        ("", &[read, write, ports][..]),
        ("process.user = \"nobody\"", &[read, write, ports]),
        ("process.read = [\"/srv\"]", &[write, ports]),
        ("process.read = []\nprocess.write = []", &[ports]),
        ("process.unconfined = false", &[read, write, ports]),
        ("process.unconfined = true", &[]),
        (
            "process.read = []\nprocess.write = []\nprocess.connect_ports = []",
            &[],
        ),
        (
            "process.connect_ports = []\n[processes]\nread = []\nwrite = []",
            &[],
        ),
    ] {
        let read = parse(&format!("{server}{rights}\n"), &[]);
        match read {
            Ok(_) => assert!(lacking.is_empty(), "{rights}"),
            Err(error) => {
                let whole = format!("Write into [mcp.a.process]: {};", lacking.join(", "));
                let error = error.to_string();
                assert!(!lacking.is_empty() && error.contains(&whole), "{error}");
            }
        }
    }
    // The general rules do not hold for a server without rules of its own.
    let text = "[processes]\nread = []\nwrite = []\nconnect_ports = []\n\
                [mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\n";
    let access = &servers(text)[0].1.access;
    assert_eq!(access, &Access::default());
}

#[test]
fn the_ports_of_the_own_servers_are_closed_to_every_program() {
    let text = "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\n[mcp.web]\nurl = \"https://x/mcp\"\n";
    let mut config = parse(text, &[]).unwrap();
    config.close_ports(&[7233]);
    assert_eq!(config.processes.access.closed_ports, [7233]);
    let ServerLocation::Command { launch, .. } = &config.mcp[0].location else {
        panic!("{config:?}")
    };
    assert_eq!(launch.policy().unwrap().access.closed_ports, [7233]);
}

#[test]
fn what_is_wrong_is_said() {
    assert_errors(&[
        ("[processes]\nuser = \"root\"", "cannot be root"),
        ("[processes]\nuser = \"0\"", "cannot be root"),
        (
            "[processes]\nuser = \"no such user\"",
            "user `no such user` does not exist",
        ),
        (
            "[processes]\nmax_memory_bytes = 1",
            "`max_memory_bytes` must be from 16777216",
        ),
        (
            "[processes]\nmax_cpu_time = \"0s\"",
            "`max_cpu_time` must be from 1s",
        ),
        ("[processes]\nconnect_ports = [70000]", "expected u16"),
        (
            "[processes]\nunconfined = true",
            "write it into [mcp.NAME.process]",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess = { unconfined = true, read = [\"/srv\"] }",
            "remove `read`, `write` and `connect_ports`",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\n[mcp.a.process]\nmax_open_files = 50",
            "`process` belongs to a server with a `command`",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\n[mcp.a.process]\nuser = \"0\"",
            "cannot be root",
        ),
    ]);
}
