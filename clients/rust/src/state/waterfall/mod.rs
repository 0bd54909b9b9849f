//! Where the time of a turn went: its LLM calls, its tools and its sub-agents as rows on one time axis, from the items that a
//! client has of it. Times are in milliseconds since 1970. The rules are those of `clients/transcripts/README.md`.
//!
//! - `agents`: the rows of an agent execution, and of its sub-agents

mod agents;

use std::collections::HashMap;

use serde::Serialize;

use self::agents::Agents;
use super::{
    calls::CallState,
    items::{End, Item, ItemKind},
};

/// A turn, or what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRows {
    /// The message id.
    pub id: String,
    /// The number of its first event that is known.
    pub sequence_number: u64,
    /// What the user said; `None` when it came before the events that are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// When it began.
    pub started: i64,
    /// When it ended; `None` while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<i64>,
    /// The item that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Item>,
    /// What took time, in order.
    pub rows: Vec<Row>,
}

impl TurnRows {
    /// How it ended.
    pub fn how_ended(&self) -> Option<&End> {
        match &self.end.as_ref()?.kind {
            ItemKind::End(end) => Some(end),
            _ => None,
        }
    }
}

/// One thing that took time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// What it is.
    pub kind: RowKind,
    /// 0 is the turn's own agent, 1 a sub-agent of it, and so on.
    pub depth: usize,
    /// The tool, or the type of a note's event; empty for an LLM call.
    pub name: String,
    /// The agent that the tool call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The LLM call of its agent execution, from 0: this one, or the one that asked for the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Of a sub-agent: its agent execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_execution_id: Option<String>,
    /// Of a tool call: the tool execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// The item that it is, or that an LLM call ended with; `None` for an LLM call that has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// When it was asked for.
    pub started: i64,
    /// When it began to run; `None` when it has not, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_from: Option<i64>,
    /// When it ended; `None` while it runs, and when nobody said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<i64>,
    /// How it stands. An LLM call that has answered is `done`, as is a note.
    pub state: CallState,
    /// What it waited for before it ran, or waits for now.
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
    /// Something that happened, and took no time.
    Note,
}

/// What a tool call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// A person who allows it.
    Approval,
    /// The client that is to run it.
    Client,
    /// A worker that is free.
    Worker,
}

/// The turns of these items, in order. `running` is the one that runs.
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
