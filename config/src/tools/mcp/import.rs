//! `[mcp] import`: the servers of a JSON file with `mcpServers`, as clients of MCP keep it.
//!
//! The file is taken as it is. A key that Everturn does not know is left out with a warning, because clients have keys of their
//! own. A table `[mcp.NAME]` without `command` and `url` adds keys to the server of the file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use everturn_tools::names;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value};
use toml::Spanned;

use super::table::McpTable;
use crate::{
    checker::Checker,
    forms::{Form, HttpUrl, Written},
    processes::ProcessTable,
};

/// The largest file of servers. The files of people have a few kilobytes.
const MAX_BYTES: u64 = 1 << 20;
/// The most servers of a file.
const MAX_SERVERS: usize = 200;
/// The key of the file's path in `[mcp]`. No server may have the name.
const IMPORT: &str = "import";
/// The key of the names of the imported programs without limits on files and ports. No server may have the name.
const UNCONFINED: &str = "unconfined";
/// The keys of `[mcp]` beside the tables of the servers.
#[cfg(test)]
pub(crate) const KEYS: [&str; 2] = [IMPORT, UNCONFINED];
/// The longest name of a server.
const MAX_NAME: usize = 30;

/// `[mcp]`: the file with further servers, and the tables of the servers.
#[derive(Debug, Default)]
pub(crate) struct McpTables {
    import: Option<Spanned<PathBuf>>,
    unconfined: Vec<Spanned<String>>,
    servers: BTreeMap<Spanned<String>, McpTable>,
}

impl<'de> Deserialize<'de> for McpTables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tables;

        impl<'de> Visitor<'de> for Tables {
            type Value = McpTables;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("tables of MCP servers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<McpTables, A::Error> {
                let mut tables = McpTables::default();
                while let Some(name) = map.next_key::<Spanned<String>>()? {
                    match name.get_ref().as_str() {
                        IMPORT => tables.import = Some(map.next_value()?),
                        UNCONFINED => tables.unconfined = map.next_value()?,
                        _ => drop(tables.servers.insert(name, map.next_value()?)),
                    }
                }
                Ok(tables)
            }
        }

        deserializer.deserialize_map(Tables)
    }
}

impl McpTables {
    /// Returns the tables of all servers.
    pub(super) fn with_imported(
        mut self,
        check: &mut Checker<'_>,
    ) -> BTreeMap<Spanned<String>, McpTable> {
        self.import(check);
        for name in &self.unconfined {
            match self.servers.get_mut(name.get_ref().as_str()) {
                Some(table) if table.process.is_none() => {
                    let process = ProcessTable::of_unconfined(name.span());
                    table.process = Some(Spanned::new(name.span(), process));
                }
                Some(_) => check.wrong(
                    name,
                    "the server has a table `process`; write `unconfined = true` there, or remove the name here",
                ),
                None => check.wrong(name, "no server has this name"),
            }
        }
        self.servers
    }

    /// Adds the servers of the file.
    fn import(&mut self, check: &mut Checker<'_>) {
        let Some(import) = self.import.take() else {
            return;
        };
        let path = check.file_beside(&import);
        let servers = match read(&path) {
            Ok(servers) => servers,
            Err(why) => {
                check.wrong(&import, format!("`import`: {why}"));
                return;
            }
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut names = BTreeSet::new();
        for (written, server) in servers {
            let name = fit_name(&written);
            if !names.insert(name.clone()) {
                check.wrong(
                    &import,
                    format!("`import`: two servers of the file are called `{name}` here; rename one of them"),
                );
                continue;
            }
            let mut reading = Reading {
                check,
                folder,
                server: &name,
                missing: Vec::new(),
            };
            match reading.server(&import, server) {
                Ok(Some(imported)) => self.add(&import, name, imported, check),
                Ok(None) => {}
                Err(why) => {
                    check.wrong(&import, format!("`import`: server `{written}`: {why}"));
                }
            }
        }
    }

    fn add(
        &mut self,
        import: &Spanned<PathBuf>,
        name: String,
        imported: McpTable,
        check: &mut Checker<'_>,
    ) {
        let Some((at, mut table)) = self.servers.remove_entry(name.as_str()) else {
            self.servers
                .insert(Spanned::new(import.span(), name), imported);
            return;
        };
        if table.command.is_some() || table.url.is_some() {
            check.wrong(
                &at,
                format!("the imported file also has a server `{name}`; remove `command` and `url` here, or rename one server"),
            );
        } else {
            table.command = imported.command;
            table.url = imported.url;
            table.cwd = table.cwd.or(imported.cwd);
            table.unusable = imported.unusable;
            for (name, value) in imported.env {
                table.env.entry(name).or_insert(value);
            }
            for (name, value) in imported.headers {
                table.headers.entry(name).or_insert(value);
            }
        }
        self.servers.insert(at, table);
    }
}

/// Returns the servers of the file by name.
fn read(path: &Path) -> Result<Map<String, Value>, String> {
    let shown = path.display();
    let mut text = String::new();
    let file = File::open(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("{shown} has more than {MAX_BYTES} bytes"));
    }
    // Some editors write a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let mut file: Value =
        serde_json::from_str(text).map_err(|error| format!("{shown} is no JSON: {error}"))?;
    // Claude, Cursor and most others; Visual Studio Code; its settings.
    let found = ["/mcpServers", "/servers", "/mcp/servers"]
        .iter()
        .find_map(|pointer| file.pointer_mut(pointer).map(Value::take));
    match found {
        Some(Value::Object(servers)) if servers.len() > MAX_SERVERS => Err(format!(
            "{shown} has more than {MAX_SERVERS} servers; split the file"
        )),
        Some(Value::Object(servers)) => Ok(servers),
        _ => Err(format!(
            "{shown} has no object `mcpServers` with the servers by name"
        )),
    }
}

/// Returns a name that agents can use in `tools`.
fn fit_name(written: &str) -> String {
    let mut name = String::new();
    for next in written.chars() {
        let is_fit = next.is_ascii_alphanumeric() || matches!(next, '_' | '-');
        let next = if is_fit { next } else { '-' };
        let is_repeated = !next.is_ascii_alphanumeric() && name.ends_with(['_', '-']);
        if !is_repeated && name.len() < MAX_NAME {
            name.push(next);
        }
    }
    let name = name.trim_matches(['_', '-']);
    if names::is_valid_source(name) {
        name.to_owned()
    } else {
        written.to_owned()
    }
}

/// The reading of a server.
struct Reading<'r, 'c> {
    check: &'r mut Checker<'c>,
    /// The folder of the file.
    folder: &'r Path,
    server: &'r str,
    /// The values that the server lacks.
    missing: Vec<String>,
}

impl Reading<'_, '_> {
    /// Returns the server's table, or `None` for a server that is switched off.
    fn server(
        &mut self,
        import: &Spanned<PathBuf>,
        written: Value,
    ) -> Result<Option<McpTable>, String> {
        let Value::Object(mut fields) = written else {
            return Err("a server is an object".to_owned());
        };
        let is_off = fields.remove("disabled") == Some(Value::Bool(true))
            || fields.remove("enabled") == Some(Value::Bool(false));
        if is_off {
            return Ok(None);
        }
        let kind = fields.remove("type").or_else(|| fields.remove("transport"));
        check_kind(kind.as_ref())?;
        let mut table = McpTable::default();
        let mut command = Vec::new();
        for part in ["command", "args"] {
            command.extend(self.words(part, fields.remove(part))?);
        }
        // The names of the key in Claude, Windsurf and the Gemini CLI.
        let url = ["url", "serverUrl", "httpUrl"]
            .iter()
            .find_map(|key| fields.remove(*key));
        if let Some(url) = url {
            let url = self.text("url", url)?;
            table.url = Some(Written {
                at: Spanned::new(import.span(), ()),
                value: HttpUrl::read(url),
            });
        }
        if !command.is_empty() {
            table.command = Some(Spanned::new(import.span(), command));
        }
        if let Some(folder) = fields.remove("cwd") {
            let folder = self.folder.join(self.text("cwd", folder)?);
            table.cwd = Some(Spanned::new(import.span(), folder));
        }
        table.env = self.texts(import, "env", fields.remove("env"))?;
        table.headers = self.texts(import, "headers", fields.remove("headers"))?;
        if !fields.is_empty() {
            let keys = fields.keys().cloned().collect::<Vec<_>>().join(", ");
            tracing::warn!(
                server = self.server,
                keys,
                "keys of an imported MCP server are left out; [mcp.NAME] has Everturn's own keys"
            );
        }
        let missing = std::mem::take(&mut self.missing);
        table.unusable = (!missing.is_empty()).then(|| missing.join("; "));
        Ok(Some(table))
    }

    fn words(&mut self, key: &str, value: Option<Value>) -> Result<Vec<String>, String> {
        match value {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                let values = values.into_iter();
                values.map(|value| self.text(key, value)).collect()
            }
            Some(value) => Ok(vec![self.text(key, value)?]),
        }
    }

    fn texts(
        &mut self,
        import: &Spanned<PathBuf>,
        key: &str,
        value: Option<Value>,
    ) -> Result<BTreeMap<Spanned<String>, String>, String> {
        match value {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(values)) => {
                let values = values.into_iter().filter(|(_, value)| !value.is_null());
                values
                    .map(|(name, value)| {
                        Ok((Spanned::new(import.span(), name), self.text(key, value)?))
                    })
                    .collect()
            }
            Some(_) => Err(format!("`{key}` is an object of texts")),
        }
    }

    fn text(&mut self, key: &str, value: Value) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(self.expanded(&text)),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(is_so) => Ok(is_so.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(format!("`{key}` has a value that is no text"))
            }
        }
    }

    /// Puts values in the stead of `${NAME}`, `${env:NAME}` and `${NAME:-default}`.
    fn expanded(&mut self, text: &str) -> String {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else {
                break;
            };
            expanded.push_str(before);
            expanded.push_str(&self.value_of(name));
            rest = behind;
        }
        expanded.push_str(rest);
        expanded
    }

    fn value_of(&mut self, written: &str) -> String {
        if matches!(written, "workspaceFolder" | "workspaceRoot") {
            return self.folder.display().to_string();
        }
        let name = written.strip_prefix("env:").unwrap_or(written);
        let name = if name == "userHome" { "HOME" } else { name };
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (name, None),
        };
        let value = self.check.variable(name).or(default);
        value.unwrap_or_else(|| {
            self.missing.push(if name.starts_with("input:") {
                format!("`${{{written}}}` asks a person at a keyboard: write `${{NAME}}` for a variable of the environment")
            } else {
                format!("the environment variable {name} named by the imported file is not set")
            });
            String::new()
        })
    }
}

fn check_kind(kind: Option<&Value>) -> Result<(), String> {
    const KINDS: [&str; 8] = [
        "stdio",
        "local",
        "http",
        "sse",
        "streamable-http",
        "streamableHttp",
        "streamable_http",
        "remote",
    ];
    match kind {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(kind)) if KINDS.contains(&kind.as_str()) => Ok(()),
        Some(other) => Err(format!(
            "the type {other} is unknown; there are: {}",
            KINDS.join(", ")
        )),
    }
}
