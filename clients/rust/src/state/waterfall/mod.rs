//! Shows where the time of a turn went: LLM calls, tools and sub-agents as rows on one time axis, made from a client's
//! items. Times are in milliseconds since 1970. The rules are those of `clients/transcripts/README.md`.
//!
//! - `agents`: the rows of an agent execution and of its sub-agents

mod agents;

use std::collections::HashMap;

use serde::Serialize;

use self::agents::Agents;
use super::{
    calls::CallState,
    items::{End, Item, ItemKind},
};

/// The known part of a turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRows {
    /// The message id.
    pub id: String,
    /// The number of the turn's first known event.
    pub sequence_number: u64,
    /// The user's message; `None` if the message came before the known events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Start of the turn.
    pub started: i64,
    /// End of the turn; `None` while running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<i64>,
    /// The item that ended the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Item>,
    /// The rows, in order.
    pub rows: Vec<Row>,
}

impl TurnRows {
    /// Returns the end of the turn.
    pub fn how_ended(&self) -> Option<&End> {
        match &self.end.as_ref()?.kind {
            ItemKind::End(end) => Some(end),
            _ => None,
        }
    }
}

/// One row of the waterfall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The kind of row.
    pub kind: RowKind,
    /// 0 for the turn's own agent, 1 for its sub-agent, and so on.
    pub depth: usize,
    /// The tool's name, or the type of a note's event; empty for an LLM call.
    pub name: String,
    /// The agent that the tool call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The number of the LLM call in its agent execution, from 0. For a tool, the LLM call that asked for the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The agent execution, only for a sub-agent's row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_execution_id: Option<String>,
    /// The tool execution, only for a tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// The id of the row's item, or of the item that ended an LLM call; `None` for an unfinished LLM call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Time of the request.
    pub started: i64,
    /// Start of the run; `None` if not started, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_from: Option<i64>,
    /// End of the run; `None` while running, or when the end is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<i64>,
    /// The state. An answered LLM call is `done`, as is a note.
    pub state: CallState,
    /// The reason for waiting before the run, or now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
}

/// The kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// A call of a model.
    LlmCall,
    /// A tool call.
    Tool,
    /// An event without a duration.
    Note,
}

/// The reason for a tool call's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// A person must approve the call.
    Approval,
    /// A client must run the call.
    Client,
    /// No worker is free.
    Worker,
}

/// Returns the turns of the items, in order. `running` is the message id of the running turn.
pub fn turn_rows(items: &[Item], running: Option<&str>) -> Vec<TurnRows> {
    let mut ids: Vec<&str> = Vec::new();
    let mut by_turn: HashMap<&str, Vec<&Item>> = HashMap::new();
    for item in items {
        let Some(turn) = item.turn.as_deref() else {
            continue;
        };
        let of_turn = by_turn.entry(turn).or_insert_with(|| {
            ids.push(turn);
            Vec::new()
        });
        of_turn.push(item);
    }
    let turn = |id: &&str| {
        let items = by_turn.get(id)?;
        Some(turn(id, items, running == Some(*id)))
    };
    ids.iter().filter_map(turn).collect()
}

fn turn(id: &str, items: &[&Item], is_running: bool) -> TurnRows {
    let said = items.iter().find_map(|item| match &item.kind {
        ItemKind::UserMessage { content, .. } => Some(content.clone()),
        _ => None,
    });
    let of_turn = |item: &&&Item| item.agent_execution_id.is_none();
    let is_end = |item: &&&Item| matches!(item.kind, ItemKind::End(_));
    let end = items.iter().filter(of_turn).find(is_end);
    let started = items.first().map_or(0, |item| item.timestamp);
    let mut agents = Agents::of(items);
    let mut rows = Vec::new();
    agents.rows(None, is_running, 0, started, &mut rows);
    TurnRows {
        id: id.to_owned(),
        sequence_number: items.first().map_or(0, |item| item.sequence_number),
        said,
        started,
        ended: match &end {
            Some(item) => Some(item.timestamp),
            None if is_running => None,
            None => items.last().map(|item| item.timestamp),
        },
        end: end.map(|item| (*item).clone()),
        rows,
    }
}
