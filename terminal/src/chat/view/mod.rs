//! Turns a conversation into rows. No I/O.
//!
//! Finished items are printed once, in order, and scroll away. Unfinished items (running calls, live texts, plans)
//! form the live part, which is drawn again below. Items after a running call wait for the call, because the printed
//! items keep the order of the log. The items of a sub-agent appear below the sub-agent's call.
//!
//! - `line`: styled text and rows
//! - `look`: the settings of the display
//! - `markdown`, `table`: texts of models
//! - `items`: each item as rows
//! - `written`: live texts

mod items;
mod line;
mod look;
mod markdown;
mod table;
#[cfg(test)]
mod tests;
mod written;

use std::collections::{BTreeSet, HashMap, HashSet};

use everturn_client::state::{CallState, Conversation, EndKind, Item, ItemKind};

use self::written::Written;
pub(super) use self::{
    items::{Now, note},
    line::{Line, Style},
    look::Look,
};

/// The record of printed items.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The sequence number up to which all items are printed.
    printed: u64,
    /// Printed items with a higher sequence number.
    early: BTreeSet<u64>,
    written: Written,
    /// The turns on display; `None` means all turns.
    only: Option<HashSet<String>>,
    /// True when the user's messages are not printed.
    silent: bool,
}

/// An item, and its nesting depth of sub-agents.
type Indexed<'a> = (usize, &'a Item);

impl View {
    /// Returns a view without the user's messages, for the turns of [`View::show_turn`] only.
    pub(super) fn of_own_turns() -> Self {
        Self {
            only: Some(HashSet::new()),
            silent: true,
            ..Self::default()
        }
    }

    /// Adds a turn to the display.
    pub(super) fn show_turn(&mut self, message_id: &str) {
        if let Some(only) = &mut self.only {
            only.insert(message_id.to_owned());
        }
    }

    /// Marks items from this number on as not printed, because other items have replaced them.
    pub(super) fn reset(&mut self, from: u64) {
        self.printed = self.printed.min(from.saturating_sub(1));
        self.early.retain(|number| *number < from);
        self.written.forget();
    }

    /// Returns the rows that can be printed permanently now.
    pub(super) fn settle(&mut self, state: &Conversation, look: &Look) -> Vec<Line> {
        let mut lines = Vec::new();
        for group in self.groups(state) {
            let (_, root) = group[0];
            let is_settled = is_settled(root, state);
            if !is_settled && matches!(root.kind, ItemKind::WorkPlan(_)) {
                continue;
            }
            if !is_settled {
                break;
            }
            for (depth, item) in group {
                lines.extend(self.print(item, depth, state, look));
                self.early.insert(item.sequence_number);
            }
        }
        self.advance(state);
        lines
    }

    fn print(&mut self, item: &Item, depth: usize, state: &Conversation, look: &Look) -> Vec<Line> {
        let is_hidden = self.silent && matches!(item.kind, ItemKind::UserMessage { .. });
        if !self.is_shown(item) || is_hidden {
            return Vec::new();
        }
        let started = started(item, state.items());
        let content = match &item.kind {
            ItemKind::AssistantMessage { content, .. } => content,
            // A reasoning without a text comes before the answer, and ends no live text.
            ItemKind::Thought { content, .. } if !content.trim().is_empty() => content,
            ItemKind::UserMessage { .. } if depth == 0 && look.is_live => {
                let mut rows = vec![Line::default()];
                rows.extend(items::rows(item, depth, look, Now::default(), started));
                return rows;
            }
            _ => return items::rows(item, depth, look, Now::default(), started),
        };
        if item.agent_execution_id.is_some() {
            return items::rows(item, depth, look, Now::default(), started);
        }
        // A part of the text may already be on the terminal, as a live text.
        let (mut rows, rest) = self.written.end(content, look);
        if rest.trim().is_empty() && !content.trim().is_empty() {
            rows.extend(items::sources(&item.kind, look));
            return rows;
        }
        let has_begun = rest.len() < content.len();
        let mut item = item.clone();
        match &mut item.kind {
            ItemKind::AssistantMessage { content, .. } => *content = rest,
            ItemKind::Thought {
                content, reasoning, ..
            } => {
                *content = rest;
                // A reasoning in the middle of a text would tear the text apart.
                reasoning.take_if(|_| has_begun);
            }
            _ => {}
        }
        rows.extend(items::rows(&item, depth, look, Now::default(), started));
        rows
    }

    /// Returns the permanent rows and the live rows, at most `height` live rows. If the live text needs more space,
    /// its beginning becomes permanent, as the first part of the answer.
    pub(super) fn live(
        &mut self,
        state: &Conversation,
        look: &Look,
        now: Now,
        height: usize,
    ) -> (Vec<Line>, Vec<Line>) {
        let mut rows = Vec::new();
        let mut plans = Vec::new();
        let is_held = {
            let groups = self.groups(state);
            // The live texts of sub-agents, which appear below the sub-agents' other items.
            let mut open: Vec<(usize, Vec<Line>)> = Vec::new();
            for (depth, item) in groups.iter().flatten() {
                if !self.is_shown(item) {
                    continue;
                }
                while let Some((_, text)) = open.pop_if(|(of, _)| *of >= *depth) {
                    rows.extend(text);
                }
                open.push((*depth, written::of_sub_agent(item, *depth, state, look)));
                let part = match item.kind {
                    ItemKind::WorkPlan(_) => &mut plans,
                    _ => &mut rows,
                };
                part.extend(items::rows(item, *depth, look, now, None));
            }
            rows.extend(open.into_iter().rev().flat_map(|(_, text)| text));
            !rows.is_empty()
        };
        let room = height.saturating_sub(rows.len() + plans.len());
        let (settled, text) = self.written.live(state, look, room, !is_held);
        rows.extend(text);
        rows.extend(plans);
        if rows.len() > height {
            let hidden = rows.len() - height.saturating_sub(1);
            rows.drain(..hidden);
            let rows_hidden = format!("… {hidden} more rows above");
            rows.insert(0, Line::of(&rows_hidden, Style::Dim));
        }
        (settled, rows)
    }

    /// Returns the unprinted items, each followed by the items of its sub-agents.
    fn groups<'a>(&self, state: &'a Conversation) -> Vec<Vec<Indexed<'a>>> {
        let items = state.items();
        let from = items.partition_point(|item| item.sequence_number <= self.printed);
        let tail = items[from..].iter();
        let tail = tail.filter(|item| !self.early.contains(&item.sequence_number));
        let tail: Vec<_> = tail.collect();
        let agent_of = |item: &'a Item| match &item.kind {
            ItemKind::ToolCall(call) => {
                let agent = call.sub_agent.as_ref()?;
                Some(agent.agent_execution_id.as_str())
            }
            _ => None,
        };
        let started: HashSet<_> = tail.iter().filter_map(|item| agent_of(item)).collect();
        let mut children: HashMap<&str, Vec<&Item>> = HashMap::new();
        let mut roots = Vec::new();
        for item in tail {
            match item.agent_execution_id.as_deref() {
                Some(agent) if started.contains(agent) => {
                    children.entry(agent).or_default().push(item);
                }
                _ => roots.push(item),
            }
        }
        let group = |root: &'a Item| {
            let depth = usize::from(root.agent_execution_id.is_some());
            let mut group = Vec::new();
            let mut open = vec![(depth, root)];
            while let Some((depth, item)) = open.pop() {
                group.push((depth, item));
                let own = agent_of(item).and_then(|agent| children.remove(agent));
                let own = own.into_iter().flatten().rev();
                open.extend(own.map(|child| (depth + 1, child)));
            }
            group
        };
        roots.into_iter().map(group).collect()
    }

    /// Advances the number up to which all items are printed.
    fn advance(&mut self, state: &Conversation) {
        let items = state.items();
        let from = items.partition_point(|item| item.sequence_number <= self.printed);
        for item in &items[from..] {
            if !self.early.remove(&item.sequence_number) {
                break;
            }
            self.printed = item.sequence_number;
        }
    }

    fn is_shown(&self, item: &Item) -> bool {
        let turn = item.turn.as_deref();
        let only = self.only.as_ref();
        only.is_none_or(|only| turn.is_some_and(|turn| only.contains(turn)))
    }
}

/// True when an item cannot change any more.
fn is_settled(item: &Item, state: &Conversation) -> bool {
    match &item.kind {
        ItemKind::ToolCall(call) => call.state != CallState::Running,
        ItemKind::WorkPlan(plan) => {
            let is_over = plan.steps.iter().all(|step| step.status.is_over());
            item.turn.as_deref() != state.turn() || is_over
        }
        ItemKind::UserMessage { .. }
        | ItemKind::Thought { .. }
        | ItemKind::ToolResult(_)
        | ItemKind::AssistantMessage { .. }
        | ItemKind::Note { .. }
        | ItemKind::End(_) => true,
    }
}

/// Returns the start of an item's turn, if the items contain it.
fn started(item: &Item, items: &[Item]) -> Option<i64> {
    let turn = item.turn.as_deref()?;
    let ItemKind::End(_) = item.kind else {
        return None;
    };
    let first = items.iter().find(|item| item.turn.as_deref() == Some(turn));
    let is_first = |first: &&Item| matches!(first.kind, ItemKind::UserMessage { .. });
    Some(first.filter(is_first)?.timestamp)
}

/// Returns the outcome of a turn, if the turn has ended.
pub(super) fn outcome(state: &Conversation, turn: &str) -> Option<EndKind> {
    let mut items = state.items().iter().rev();
    items.find_map(|item| match &item.kind {
        ItemKind::End(end)
            if item.turn.as_deref() == Some(turn) && item.agent_execution_id.is_none() =>
        {
            Some(end.outcome)
        }
        _ => None,
    })
}
