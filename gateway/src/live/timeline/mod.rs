//! The timeline of a conversation. It is made from events alone, without I/O.
//!
//! Unknown events are skipped and missing fields are left out: events of every earlier version make a timeline.

mod item;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use everturn_proto::{Json, event::Event, words::EventType};

pub use self::item::{TimelineItem, TimelineItemKind};
use crate::fields::Fields;

/// A timeline under construction: the newest items, and how many there are in all.
#[derive(Debug)]
pub struct Timeline {
    items: VecDeque<TimelineItem>,
    /// Bytes of the items.
    bytes: usize,
    total: usize,
    max_items: usize,
    max_bytes: usize,
    /// The calls that started sub-agents, by the sub-agent's agent execution: one for each sub-agent of the
    /// conversation.
    parents: HashMap<String, String>,
}

impl Timeline {
    /// Makes an empty timeline that keeps the newest items: at most `max_items`, of at most `max_bytes`. It always
    /// keeps one.
    pub fn new(max_items: usize, max_bytes: usize) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            total: 0,
            max_items,
            max_bytes,
            parents: HashMap::new(),
        }
    }

    /// Adds the next event.
    pub fn push(&mut self, event: &Event) {
        let fields = Fields::of_event(event);
        let event_type = event.event_type();
        if event_type == EventType::ApprovalResolved {
            self.show_approved_input(&fields);
        }
        let agent_execution_id: String = fields.get("agent_execution_id").unwrap_or_default();
        if event_type == EventType::SubAgentStart
            && let Some(call_id) = fields.get("call_id")
        {
            self.parents.insert(agent_execution_id.clone(), call_id);
        }
        let Some(mut item) = TimelineItem::of(event) else {
            return;
        };
        if let Some(call_id) = self.parents.get(&agent_execution_id) {
            item.parent_tool_call_id = Some(call_id.clone());
            item.agent_execution_id = Some(agent_execution_id);
        }
        self.total += 1;
        self.bytes += item.bytes();
        self.items.push_back(item);
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        while self.items.len() > self.max_items
            || (self.bytes > self.max_bytes && self.items.len() > 1)
        {
            let Some(oldest) = self.items.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes();
        }
    }

    /// Shows, in a call that was approved with another input, the input that ran.
    fn show_approved_input(&mut self, answer: &Fields<'_>) {
        let input = answer.raw("tool_input");
        let input = input.and_then(|raw| Json::parse(raw).ok());
        let id = answer.get::<String>("execution_id");
        let is_answered = |item: &&mut TimelineItem| {
            item.kind == TimelineItemKind::ToolCall && item.execution_id == id
        };
        let call = self.items.iter_mut().rev().find(is_answered);
        if let (Some(call), Some(input), Some(true)) = (call, input, answer.get("edited")) {
            self.bytes -= call.bytes();
            call.tool_input = Some(input);
            self.bytes += call.bytes();
        }
    }

    /// Returns the number of all items, those included that were dropped.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the items, in order.
    pub fn into_items(self) -> Vec<TimelineItem> {
        self.items.into()
    }
}
