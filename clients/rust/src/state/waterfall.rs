//! Where the time of a turn went: its LLM calls, its tools and its sub-agents as rows on one time axis, from the items that a
//! client has of it. Times are in milliseconds since 1970. The rules are those of `clients/transcripts/README.md`.

use std::collections::HashMap;

use serde::Serialize;

use super::items::{CallState, End, EndKind, Item, ItemKind, ToolCall};

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

/// The items of each agent execution; `None` is the turn's own.
struct Agents<'a>(HashMap<Option<&'a str>, Vec<&'a Item>>);

impl<'a> Agents<'a> {
    fn of(items: &[&'a Item]) -> Self {
        let mut agents: HashMap<_, Vec<_>> = HashMap::new();
        for item in items {
            let agent = item.agent_execution_id.as_deref();
            agents.entry(agent).or_default().push(*item);
        }
        Self(agents)
    }

    /// Adds the rows of an agent execution, and those of its sub-agents under the calls that started them.
    fn rows(
        &mut self,
        agent: Option<&'a str>,
        is_running: bool,
        depth: usize,
        started: i64,
        rows: &mut Vec<Row>,
    ) {
        // Each one is taken once, so that this ends whatever the events say.
        let items = self.0.remove(&agent).unwrap_or_default();
        let mut calls = LlmCalls {
            agent,
            depth,
            free_from: started,
            step_seen: None,
            next_step: 0,
        };
        for item in &items {
            rows.extend(calls.ended_with(item));
            match &item.kind {
                ItemKind::ToolCall(call) => {
                    let row = tool(item, call, depth);
                    calls.free_from = calls.free_from.max(row.ended.unwrap_or(item.timestamp));
                    rows.push(row);
                    if let Some(sub_agent) = &call.sub_agent {
                        let id = Some(sub_agent.agent_execution_id.as_str());
                        let runs = is_running && sub_agent.state == "running";
                        self.rows(id, runs, depth + 1, item.timestamp, rows);
                    }
                }
                ItemKind::Note { event, .. } => rows.push(note(item, event, depth)),
                _ => {}
            }
        }
        if is_running && !has_answered(&items) && !items.iter().any(|item| is_open_call(item)) {
            rows.push(calls.open(None));
        }
    }
}

/// The LLM calls of an agent execution. One begins when the agent has nothing else to wait for.
struct LlmCalls<'a> {
    agent: Option<&'a str>,
    depth: usize,
    free_from: i64,
    step_seen: Option<u64>,
    next_step: u64,
}

impl LlmCalls<'_> {
    /// The LLM call that this item shows the end of.
    fn ended_with(&mut self, item: &Item) -> Option<Row> {
        let step = match &item.kind {
            // A summary is a step of its own.
            ItemKind::Note { event, data } if event == "context_compacted" => {
                let has_summary = data.get("summary").is_some_and(|summary| summary != "");
                data.get("step")?.as_u64().filter(|_| has_summary)?
            }
            ItemKind::End(end) => return self.failed_with(item, end),
            _ => item.step?,
        };
        if self.step_seen == Some(step) {
            return None;
        }
        (self.step_seen, self.next_step) = (Some(step), step.saturating_add(1));
        // The hooks before a turn have a step of their own, which asks no model.
        if matches!(&item.kind, ItemKind::ToolCall(call) if call.hook.is_some()) {
            return None;
        }
        let row = Row {
            step: Some(step),
            ended: Some(item.timestamp),
            state: CallState::Done,
            ..self.open(Some(item))
        };
        self.free_from = item.timestamp;
        Some(row)
    }

    /// The LLM call that an agent execution failed with: the codes of its errors say that a model was called.
    fn failed_with(&self, item: &Item, end: &End) -> Option<Row> {
        let code = end.code.as_deref().unwrap_or_default();
        let has_failed = end.outcome == EndKind::Error && code.starts_with("llm_");
        let has_passed = item.timestamp > self.free_from;
        (has_failed && has_passed).then(|| Row {
            ended: Some(item.timestamp),
            state: CallState::Failed,
            ..self.open(Some(item))
        })
    }

    /// The next LLM call, which has not ended.
    fn open(&self, item: Option<&Item>) -> Row {
        Row {
            kind: RowKind::LlmCall,
            depth: self.depth,
            name: String::new(),
            agent: None,
            step: Some(self.next_step),
            agent_execution_id: self.agent.map(str::to_owned),
            execution_id: None,
            item: item.map(|item| item.id.clone()),
            started: self.free_from,
            ran_from: Some(self.free_from),
            ended: None,
            state: CallState::Running,
            waits_for: None,
        }
    }
}

fn has_answered(items: &[&Item]) -> bool {
    let last = items.last().map(|item| &item.kind);
    matches!(last, Some(ItemKind::AssistantMessage { .. }))
}

fn is_open_call(item: &Item) -> bool {
    matches!(&item.kind, ItemKind::ToolCall(call) if call.state == CallState::Running)
}

fn note(item: &Item, event: &str, depth: usize) -> Row {
    Row {
        kind: RowKind::Note,
        depth,
        name: event.to_owned(),
        agent: None,
        step: None,
        agent_execution_id: item.agent_execution_id.clone(),
        execution_id: None,
        item: Some(item.id.clone()),
        started: item.timestamp,
        ran_from: Some(item.timestamp),
        ended: Some(item.timestamp),
        state: CallState::Done,
        waits_for: None,
    }
}

fn tool(item: &Item, call: &ToolCall, depth: usize) -> Row {
    let ended = call.result.as_ref().map(|result| result.result_timestamp);
    let ran = call.result.as_ref().and_then(|result| result.duration_ms);
    let ran = ran.and_then(|ran| i64::try_from(ran).ok());
    let is_asking = call
        .approval
        .as_ref()
        .is_some_and(|it| it.state == "pending");
    let ran_from = match ended.zip(ran) {
        Some((ended, ran)) => Some(ended.saturating_sub(ran).max(item.timestamp)),
        None if is_asking || call.client_tool.is_some() => None,
        None => Some(item.timestamp),
    };
    let has_waited = ran_from.is_none_or(|from| from > item.timestamp);
    let waits_for = match call {
        _ if !has_waited => None,
        ToolCall {
            approval: Some(_), ..
        } => Some(WaitsFor::Approval),
        ToolCall {
            client_tool: Some(_),
            ..
        } => Some(WaitsFor::Client),
        _ => Some(WaitsFor::Worker),
    };
    Row {
        kind: RowKind::Tool,
        depth,
        name: call.tool_name.clone(),
        agent: call.sub_agent.as_ref().map(|it| it.agent.clone()),
        step: item.step,
        agent_execution_id: item.agent_execution_id.clone(),
        execution_id: call.execution_id.clone(),
        item: Some(item.id.clone()),
        started: item.timestamp,
        ran_from,
        ended,
        state: call.state,
        waits_for,
    }
}
