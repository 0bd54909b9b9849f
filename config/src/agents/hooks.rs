//! `[agents.NAME.hooks]`: tools that run around each turn of an agent.

use std::time::Duration;

use everturn_proto::{
    Json,
    limits::TOOL_RESULT_INLINE_BYTES,
    turn::{AgentHook, AgentHooks, AgentTool},
    words::{DELEGATE_TOOL, Hook, ToolKind},
};
use everturn_tools::names as tool_names;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::entries;
use crate::{
    checker::{Checker, is_json, milliseconds},
    forms::{Number, SECOND, Time, Written},
    names::Names,
};

/// A turn waits for its hooks. A hook that hangs must cost no more than some seconds.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
type Timeout = Time<SECOND, { MAX_TIMEOUT.as_secs() * SECOND }>;
/// The limit exists because all hooks of a turn run in parallel.
const MAX_HOOKS: usize = 8;
/// Eight results of this size are about 20,000 tokens. Every context window has room for them.
const DEFAULT_RESULT_BYTES: u32 = 8 * 1024;
type ResultBytes = Number<256, { TOOL_RESULT_INLINE_BYTES as u64 }>;
/// The limit exists because the input is a part of the agent's definition.
const MAX_INPUT_BYTES: usize = 16 * 1024;

const FORMS: &str = r#"write a hook as "tool" or { name = "tool", timeout = "5s", input = { query = "{message}" } }"#;
const KEYS: [&str; 3] = ["name", "timeout", "input"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HooksTable {
    #[serde(default)]
    before_turn: Vec<Spanned<Value>>,
    #[serde(default)]
    after_turn: Vec<Spanned<Value>>,
    timeout: Option<Written<Timeout>>,
    max_result_bytes: Option<Written<ResultBytes>>,
}

impl HooksTable {
    /// Returns the hooks, or `None` for an empty table. `tools` are the agent's tools.
    pub(super) fn check(
        &self,
        check: &mut Checker<'_>,
        names: &Names,
        tools: &[AgentTool],
    ) -> Option<AgentHooks> {
        let timeout = check.value_or(&self.timeout, DEFAULT_TIMEOUT);
        let max_result_bytes = check.value_or(&self.max_result_bytes, DEFAULT_RESULT_BYTES);
        let mut hooks = |hook: &Hook, written: &[Spanned<Value>]| -> Vec<AgentHook> {
            if let Some(one_more) = written.get(MAX_HOOKS) {
                check.wrong(one_more, format!("`{hook}` has at most {MAX_HOOKS} hooks"));
            }
            let hooks = written.iter();
            hooks
                .filter_map(|written| one(check, hook, written, names, tools, timeout))
                .collect()
        };
        let before_turn = hooks(&Hook::BeforeTurn, &self.before_turn);
        let after_turn = hooks(&Hook::AfterTurn, &self.after_turn);
        let is_empty = before_turn.is_empty() && after_turn.is_empty();
        (!is_empty).then_some(AgentHooks {
            before_turn,
            after_turn,
            max_result_bytes,
        })
    }
}

/// Returns the hook of an entry, or `None` when the entry is wrong.
fn one(
    check: &mut Checker<'_>,
    hook: &Hook,
    written: &Spanned<Value>,
    names: &Names,
    tools: &[AgentTool],
    timeout: Duration,
) -> Option<AgentHook> {
    let (tool, input) = read(written.get_ref())
        .map_err(|message| check.wrong(written, message))
        .ok()?;
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    if name == DELEGATE_TOOL || tool_names::all_of(name).is_some() {
        check.wrong(
            written,
            "a hook is one tool, and not `delegate` or all tools of a server",
        );
        return None;
    }
    let asks = |tool: &AgentTool| tool.approval.is_some() && tool_names::covers(&tool.name, name);
    if tools.iter().any(asks) {
        let message = format!(
            "tool `{name}` needs an approval in this agent, but a hook cannot wait for a person; remove the approval or the hook"
        );
        check.wrong(written, message);
        return None;
    }
    let written = &Spanned::new(written.span(), Value::Table(tool));
    let tool = entries::tool(check, written, names, timeout, None)?;
    if tool.timeout_ms > milliseconds(MAX_TIMEOUT) {
        check.wrong(written, "a hook has at most 10m; lower its `timeout`");
    }
    let refused = match tool.kind() {
        ToolKind::Client => {
            "the client runs this tool, but only workers run hooks; name a tool that a worker runs"
        }
        ToolKind::Remote if *hook == Hook::AfterTurn => {
            "a remote tool cannot run after the turn; name it in `before_turn`, or a tool that a worker runs itself"
        }
        _ => {
            return Some(AgentHook {
                tool: Some(tool),
                input,
            });
        }
    };
    check.wrong(written, refused);
    None
}

/// Reads a hook as an entry of `tools` and the hook's input.
fn read(value: &Value) -> Result<(Table, Option<Json>), String> {
    let mut table = match value {
        Value::String(name) => {
            return Ok((
                [("name".to_owned(), name.clone().into())]
                    .into_iter()
                    .collect(),
                None,
            ));
        }
        Value::Table(table) => table.clone(),
        _ => return Err(FORMS.to_owned()),
    };
    if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("a hook has no `{unknown}`; {FORMS}"));
    }
    let input = match table.remove("input") {
        None => None,
        Some(input) if input.is_table() && is_json(&input) => Some(Json::of(&input)),
        Some(_) => return Err(format!("`input` of a hook is a table; {FORMS}")),
    };
    if input
        .as_ref()
        .is_some_and(|input| input.as_str().len() > MAX_INPUT_BYTES)
    {
        return Err(format!(
            "`input` of a hook is longer than {MAX_INPUT_BYTES} bytes"
        ));
    }
    Ok((table, input))
}
