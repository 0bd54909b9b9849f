//! An entry of an agent's `tools`: a name, or a table with a name, a time-out and an approval policy.

use std::time::Duration;

use everturn_proto::{
    Json,
    turn::{AgentAsTool, AgentTool, ApprovalPolicy},
    words::{DELEGATE_TOOL, OnDefinitionChange, ToolKind},
};
use everturn_tools::names as tool_names;
use toml::{Spanned, Value};

use super::{approval, delegates};
use crate::{
    checker::{Checker, milliseconds},
    forms::duration,
    names::{Names, Runner},
    tools::checked_schema,
};

/// The time-out of a client tool. It is longer than the time-out of a worker's tool, because a person may have to act
/// first.
const DEFAULT_CLIENT_TIMEOUT: Duration = Duration::from_hours(1);
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_CLIENT_TIMEOUT: Duration = Duration::from_hours(31 * 24);
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

const FORMS: &str =
    r#"write a tool as "name" or { name = "name", timeout = "30s", approval = "always" }"#;
/// The keys of a tool's table.
pub(crate) const KEYS: [&str; 7] = [
    "name",
    "timeout",
    "approval",
    "on_definition_change",
    "agent",
    "description",
    "input",
];

struct Entry {
    name: String,
    timeout: Option<String>,
    approval: Option<ApprovalPolicy>,
    on_definition_change: Option<OnDefinitionChange>,
    of_agent: Option<OfAgent>,
}

/// An agent as a tool.
struct OfAgent {
    agent: String,
    description: String,
    input: Option<Value>,
}

/// Returns the tool of an entry, or `None` when the entry is wrong. `delegates` are the agents that the tool
/// `delegate` may start, if the agent has `delegates`.
pub(super) fn tool(
    check: &mut Checker<'_>,
    written: &Spanned<Value>,
    names: &Names,
    agent_timeout: Duration,
    delegates: Option<&[String]>,
) -> Option<AgentTool> {
    let entry = Entry::read(written.get_ref())
        .map_err(|message| check.wrong(written, message))
        .ok()?;
    if entry.name == DELEGATE_TOOL {
        check_change(check, written, &entry, &ToolKind::Delegate);
        return Some(delegate(check, written, entry, delegates));
    }
    if entry.of_agent.is_some() {
        check_change(check, written, &entry, &ToolKind::Delegate);
        return agent_tool(check, written, entry, names);
    }
    let runner = runner(check, written, &entry.name, names)?;
    let (kind, default_timeout, max_timeout, remote) = match runner {
        Runner::Worker => (ToolKind::Worker, agent_timeout, MAX_TIMEOUT, None),
        Runner::Client => (
            ToolKind::Client,
            DEFAULT_CLIENT_TIMEOUT,
            MAX_CLIENT_TIMEOUT,
            None,
        ),
        Runner::Remote { worker, timeout } => {
            let timeout = timeout.unwrap_or(agent_timeout);
            (ToolKind::Remote, timeout, MAX_TIMEOUT, Some(worker))
        }
    };
    check_change(check, written, &entry, &kind);
    let timeout = entry.timeout.and_then(|text| {
        let timeout = duration(&text, MIN_TIMEOUT..=max_timeout);
        check.right(written, "timeout", timeout)
    });
    let timeout = timeout.unwrap_or(default_timeout);
    Some(AgentTool {
        name: entry.name,
        timeout_ms: milliseconds(timeout),
        approval: entry.approval,
        kind: kind.into(),
        on_definition_change: entry.on_definition_change.map(String::from),
        remote,
        ..AgentTool::default()
    })
}

/// Refuses `on_definition_change` for a tool that no worker runs, because only a worker reads the definition again
/// before a call.
fn check_change(check: &mut Checker<'_>, written: &Spanned<Value>, entry: &Entry, kind: &ToolKind) {
    if entry.on_definition_change.is_some() && *kind != ToolKind::Worker {
        check.wrong(
            written,
            "`on_definition_change` is for tools that a worker runs itself, for example tools of MCP servers",
        );
    }
}

/// Returns the tool `delegate`. An agent lists it among its tools only to set an approval policy.
fn delegate(
    check: &mut Checker<'_>,
    written: &Spanned<Value>,
    entry: Entry,
    delegates: Option<&[String]>,
) -> AgentTool {
    if delegates.is_none() {
        check.wrong(
            written,
            "tool `delegate` needs `delegates`, the list of agents for sub-agents",
        );
    }
    if entry.timeout.is_some() {
        check.wrong(
            written,
            "tool `delegate` has no `timeout`; set `turn_timeout` of the agents in `delegates`",
        );
    }
    delegates::tool(delegates.unwrap_or_default().to_vec(), entry.approval)
}

/// Returns the tool that stands for an agent.
fn agent_tool(
    check: &mut Checker<'_>,
    written: &Spanned<Value>,
    entry: Entry,
    names: &Names,
) -> Option<AgentTool> {
    let of_agent = entry.of_agent?;
    if !names.agents.contains(&of_agent.agent) {
        let known = names.agents.iter().map(String::as_str);
        check.unknown(written, "agent", &of_agent.agent, known);
    }
    let name = &entry.name;
    if !tool_names::is_valid(name) || tool_names::source_of(name).is_some() {
        check.wrong(
            written,
            "the name of a tool with `agent` has 1 to 64 letters, digits, `_` or `-`, and no `__`",
        );
    }
    if names.tools().any(|known| known == name) {
        check.wrong(written, format!("there already is a tool `{name}`"));
    }
    if entry.timeout.is_some() {
        check.wrong(
            written,
            "a tool with `agent` has no `timeout`; set `turn_timeout` of the agent",
        );
    }
    let parameters = of_agent.input.map(|input| {
        let schema = checked_schema(check, written, Json::of(&input).to_value());
        Json::of(&schema)
    });
    Some(AgentTool {
        name: entry.name,
        kind: ToolKind::Delegate.into(),
        approval: entry.approval,
        delegates: vec![of_agent.agent],
        as_tool: Some(AgentAsTool {
            description: of_agent.description,
            parameters,
        }),
        ..AgentTool::default()
    })
}

/// Returns who runs the tool. Any tool name of a known MCP server is accepted, because only the server knows its
/// tools.
fn runner(
    check: &mut Checker<'_>,
    written: &Spanned<Value>,
    name: &str,
    names: &Names,
) -> Option<Runner> {
    let Some(server) = tool_names::source_of(name) else {
        let runner = names.runner(name);
        if runner.is_none() {
            check.unknown(written, "tool", name, names.tools());
        }
        return runner;
    };
    if !names.servers.contains(server) {
        let known = names.servers.iter().map(String::as_str);
        check.unknown(written, "MCP server", server, known);
        return None;
    }
    if !tool_names::is_listable(name) {
        check.wrong(
            written,
            format!(
                "write `{server}__<tool>` for one tool of a server, or `{server}__*` for every tool"
            ),
        );
        return None;
    }
    Some(Runner::Worker)
}

impl Entry {
    /// Reads an entry by hand, because serde's error for an untagged enum says only: no variant matched.
    fn read(value: &Value) -> Result<Self, String> {
        let table = match value {
            Value::String(name) => {
                return Ok(Self {
                    name: name.clone(),
                    timeout: None,
                    approval: None,
                    on_definition_change: None,
                    of_agent: None,
                });
            }
            Value::Table(table) => table,
            _ => return Err(FORMS.to_owned()),
        };
        if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("a tool has no `{unknown}`; {FORMS}"));
        }
        let text = |key: &str| {
            table
                .get(key)
                .map(|value| value.as_str().map(str::to_owned).ok_or(FORMS))
        };
        let of_agent = text("agent").transpose()?.map(|agent| {
            Ok::<_, &str>(OfAgent {
                agent,
                description: text("description").transpose()?.unwrap_or_default(),
                input: table.get("input").cloned(),
            })
        });
        let of_agent = of_agent.transpose()?;
        if of_agent.is_none()
            && ["description", "input"]
                .iter()
                .any(|key| table.contains_key(*key))
        {
            return Err("`description` and `input` belong to a tool with `agent`".to_owned());
        }
        Ok(Self {
            of_agent,
            name: text("name").ok_or(FORMS)??,
            timeout: text("timeout").transpose()?,
            approval: match table.get("approval") {
                Some(value) => approval::policy(value)?,
                None => None,
            },
            on_definition_change: match table.get("on_definition_change") {
                Some(value) => on_definition_change(value)?,
                None => None,
            },
        })
    }
}

/// Reads what happens to a call after its tool's definition has changed. The default has no word in the agent's
/// definition.
fn on_definition_change(value: &Value) -> Result<Option<OnDefinitionChange>, String> {
    match value.as_str().map(OnDefinitionChange::from) {
        Some(OnDefinitionChange::Run) => Ok(None),
        Some(policy @ (OnDefinitionChange::Ask | OnDefinitionChange::Refuse)) => Ok(Some(policy)),
        Some(OnDefinitionChange::Unknown(_)) | None => {
            Err(r#"`on_definition_change` is "run", "ask" or "refuse""#.to_owned())
        }
    }
}
