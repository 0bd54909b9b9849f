//! `everturn tools status`: the state of each MCP server.

use std::{process::ExitCode, sync::Arc};

use everturn_terminal::show;
use everturn_tools::mcp::{McpServer, ServerState, ServerStatus};
use futures::future::join_all;
use serde_json::{Value, json};

use super::agent::refuse;
use crate::cli::ToolsStatus;

pub(super) async fn run(
    servers: &[(String, Arc<McpServer>)],
    options: &ToolsStatus,
) -> anyhow::Result<ExitCode> {
    let known = |name: &String| servers.iter().any(|(server, _)| server == name);
    if let Some(unknown) = options.servers.iter().find(|name| !known(name)) {
        let names: Vec<_> = servers.iter().map(|(name, _)| name.as_str()).collect();
        let names = if names.is_empty() {
            "no MCP servers are configured".to_owned()
        } else {
            format!("there are: {}", names.join(", "))
        };
        return Ok(refuse(&format!(
            "there is no MCP server `{unknown}`; {names}"
        )));
    }
    let is_asked = |name: &String| options.servers.is_empty() || options.servers.contains(name);
    let asked = servers.iter().filter(|(name, _)| is_asked(name));
    let asked = asked.map(|(_, server)| server);
    let found = join_all(asked.map(|server| server.status(&options.tenant))).await;
    if options.json {
        let rows: Vec<_> = found.iter().map(to_json).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else if found.is_empty() {
        println!("no MCP servers are configured");
    } else {
        found.iter().for_each(print);
    }
    Ok(if found.iter().all(is_available) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// True for a server whose tools can be used, by everybody or after a consent.
pub(crate) fn is_available(status: &ServerStatus) -> bool {
    match status.state {
        ServerState::Connected { .. } | ServerState::NeedsConsent => true,
        ServerState::Unavailable { .. } => false,
    }
}

/// Returns the state in a line.
pub(crate) fn in_words(status: &ServerStatus) -> String {
    let took = status.took.as_secs_f64();
    match &status.state {
        ServerState::Connected {
            server,
            protocol,
            tools,
            has_instructions,
        } => {
            let instructions = if *has_instructions {
                ", with instructions"
            } else {
                ""
            };
            format!(
                "{tools} tools{instructions}, after {took:.1} s ({}, protocol {protocol})",
                show::shortened(server)
            )
        }
        ServerState::NeedsConsent => {
            "not tried: each person consents, and then has a connection".to_owned()
        }
        ServerState::Unavailable { reason, .. } => {
            let reason = show::printable(reason);
            format!("not available after {took:.1} s: {reason}")
        }
    }
}

/// Returns the last lines on the standard error of a program that is not available.
pub(crate) fn output(status: &ServerStatus) -> &[String] {
    match &status.state {
        ServerState::Connected { .. } | ServerState::NeedsConsent => &[],
        ServerState::Unavailable { output, .. } => output,
    }
}

fn print(status: &ServerStatus) {
    let mark = if is_available(status) { '✓' } else { '✗' };
    println!(
        "{mark} {:<14} {}  {}",
        status.name,
        status.address,
        in_words(status)
    );
    for line in output(status) {
        println!("    {}", show::shortened(line));
    }
}

fn to_json(status: &ServerStatus) -> Value {
    let mut row = json!({
        "name": status.name,
        "address": status.address,
        "available": is_available(status),
        "took_ms": u64::try_from(status.took.as_millis()).unwrap_or(u64::MAX),
    });
    let more = match &status.state {
        ServerState::Connected {
            server,
            protocol,
            tools,
            has_instructions,
        } => json!({
            "server": server, "protocol": protocol, "tools": tools, "has_instructions": has_instructions,
        }),
        ServerState::NeedsConsent => json!({"needs_consent": true}),
        ServerState::Unavailable { reason, output } => json!({"reason": reason, "output": output}),
    };
    if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
    row
}
