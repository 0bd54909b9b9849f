//! `[mcp]`: MCP servers, whose tools agents may use.
//!
//! - `table`: `[mcp.NAME]`, the table of a server
//! - `import`: the servers of a JSON file with `mcpServers`
//! - `oauth`: `[mcp.NAME.oauth]`, how the worker requests tokens for a server
//! - `per`: who shares a connection, and secrets in files per tenant
//! - `questions`: the tools that may ask people

mod import;
mod oauth;
mod per;
mod questions;
mod table;

use everturn_tools::{mcp::ServerOptions, names as tool_names, skills};
use toml::Spanned;

#[cfg(test)]
pub(crate) use self::import::KEYS;
pub(crate) use self::import::McpTables;
use crate::{checker::Checker, names::Names, processes::ProcessRules};

pub(crate) fn check(
    tables: McpTables,
    processes: &ProcessRules,
    check: &mut Checker<'_>,
    names: &mut Names,
) -> Vec<ServerOptions> {
    let mut servers = Vec::new();
    for (name, table) in tables.with_imported(check) {
        check_name(check, &name);
        names.servers.insert(name.get_ref().clone());
        servers.extend(table.check(&name, processes, check));
    }
    servers
}

fn check_name(check: &mut Checker<'_>, name: &Spanned<String>) {
    if !tool_names::is_valid_source(name.get_ref()) {
        check.wrong(
            name,
            "the name of an MCP server has 1 to 30 letters, digits, `-` or single `_`, none of them at an end",
        );
    }
    if name.get_ref() == skills::SOURCE {
        check.wrong(
            name,
            "an MCP server cannot be called `skill`, because the names of skill tools begin with `skill`",
        );
    }
}
