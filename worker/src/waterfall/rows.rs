//! What happened in a turn, and when, from the items that a client has of it. Times are in milliseconds since 1970.

use std::collections::HashMap;

use everturn_client::state::{CallState, End, EndKind, Item, ItemKind, ToolCall};

/// A turn, or what is known of it.
#[derive(Debug)]
pub(super) struct Turn {
    /// The message id.
    pub(super) id: String,
    /// What the user said; `None` when it came before the events that were read.
    pub(super) said: Option<String>,
    pub(super) started: i64,
    /// `None` while it runs.
    pub(super) ended: Option<i64>,
    /// `running`, or how it ended.
    pub(super) outcome: String,
    pub(super) end: Option<End>,
    pub(super) rows: Vec<Row>,
}

/// One thing that took time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: RowKind,
    /// 0 is the turn's own agent, 1 a sub-agent of it, and so on.
    pub(super) depth: usize,
    pub(super) label: String,
    pub(super) started: i64,
    /// When it began to run, after it had waited for a worker or a person.
    pub(super) ran_from: i64,
    /// `None` while it runs.
    pub(super) ended: Option<i64>,
    /// What else is to be said, like `failed`.
    pub(super) remark: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    LlmCall,
    Tool,
    Note,
}

/// The turns of these items, in order. `running` is the one that runs.
pub(super) fn turns(items: &[Item], running: Option<&str>) -> Vec<Turn> {
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

fn turn(id: &str, items: &[&Item], is_running: bool) -> Turn {
    let said = items.iter().find_map(|item| match &item.kind {
        ItemKind::UserMessage { content, .. } => Some(content.clone()),
        _ => None,
    });
    let of_turn = |item: &&&Item| item.agent_execution_id.is_none();
    let end = items
        .iter()
        .filter(of_turn)
        .find_map(|item| match &item.kind {
            ItemKind::End(end) => Some((item.timestamp, end.as_ref().clone())),
            _ => None,
        });
    let started = items.first().map_or(0, |item| item.timestamp);
    let mut agents = Agents::of(items);
    let mut rows = Vec::new();
    agents.rows(None, 0, started, &mut rows);
    Turn {
        id: id.to_owned(),
        said,
        started,
        ended: match &end {
            Some((ended, _)) => Some(*ended),
            None if is_running => None,
            None => items.last().map(|item| item.timestamp),
        },
        outcome: match &end {
            Some((_, end)) => outcome(end),
            None if is_running => "running".to_owned(),
            None => "end not read".to_owned(),
        },
        end: end.map(|(_, end)| end),
        rows,
    }
}

fn outcome(end: &End) -> String {
    match (end.outcome, &end.code) {
        (EndKind::Error, Some(code)) => code.clone(),
        (outcome, _) => outcome.as_str().to_owned(),
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
    fn rows(&mut self, agent: Option<&'a str>, depth: usize, started: i64, rows: &mut Vec<Row>) {
        // Each one is taken once, so that this ends whatever the events say.
        let items = self.0.remove(&agent).unwrap_or_default();
        let (mut free_from, mut step_seen) = (started, None);
        for item in items {
            if item.step.is_some() && item.step != step_seen {
                step_seen = item.step;
                // The hooks before a turn have a step of their own, which asks no model.
                if !is_of_hook(item) {
                    rows.push(llm_call(item, depth, free_from));
                    free_from = item.timestamp;
                }
            }
            match &item.kind {
                ItemKind::ToolCall(call) => {
                    let row = tool(item, call, depth);
                    free_from = free_from.max(row.ended.unwrap_or(item.timestamp));
                    rows.push(row);
                    if let Some(sub_agent) = &call.sub_agent {
                        let id = Some(sub_agent.agent_execution_id.as_str());
                        self.rows(id, depth + 1, item.timestamp, rows);
                    }
                }
                ItemKind::Note { event, .. } => rows.push(Row {
                    kind: RowKind::Note,
                    depth,
                    label: event.replace('_', " "),
                    started: item.timestamp,
                    ran_from: item.timestamp,
                    ended: Some(item.timestamp),
                    remark: "",
                }),
                _ => {}
            }
        }
    }
}

fn is_of_hook(item: &Item) -> bool {
    matches!(&item.kind, ItemKind::ToolCall(call) if call.hook.is_some())
}

/// The call of a model whose reply begins with this item. It began when the agent had nothing else to wait for.
fn llm_call(item: &Item, depth: usize, free_from: i64) -> Row {
    Row {
        kind: RowKind::LlmCall,
        depth,
        label: format!("LLM call {}", item.step.unwrap_or_default()),
        started: free_from,
        ran_from: free_from,
        ended: Some(item.timestamp),
        remark: "",
    }
}

fn tool(item: &Item, call: &ToolCall, depth: usize) -> Row {
    let ended = call.result.as_ref().map(|result| result.result_timestamp);
    let ran = call.result.as_ref().and_then(|result| result.duration_ms);
    let ran = ran.and_then(|ran| i64::try_from(ran).ok());
    let ran_from = ended.zip(ran).map(|(ended, ran)| ended.saturating_sub(ran));
    let label = match &call.sub_agent {
        Some(sub_agent) => format!("{} → {}", call.tool_name, sub_agent.agent),
        None => call.tool_name.clone(),
    };
    let is_waiting = call
        .approval
        .as_ref()
        .is_some_and(|it| it.state == "pending");
    Row {
        kind: RowKind::Tool,
        depth,
        label,
        started: item.timestamp,
        ran_from: ran_from.unwrap_or(item.timestamp).max(item.timestamp),
        // A call that never ended lasts as long as its turn.
        ended,
        remark: match call.state {
            CallState::Running if is_waiting => "waits for approval",
            CallState::Running if call.client_tool.is_some() => "waits for a client",
            CallState::Running => "running",
            CallState::Done => "",
            CallState::Failed => "failed",
            CallState::Unknown => "outcome unknown",
        },
    }
}
