//! The timeline of a conversation, made from events alone, without I/O. The newest event comes first into a page.
//!
//! Unknown events and missing fields are skipped, so events of every earlier version make a timeline.

mod item;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};

use everturn_proto::{Json, event::Event, ids, words::EventType};
use everturn_store::{ApprovedCall, EventLinks, WantedLinks};

pub use self::item::{TimelineItem, TimelineItemKind};
use crate::fields::Fields;

/// A timeline page under construction. The page grows from its end to its beginning.
#[derive(Debug)]
pub struct Timeline {
    items: VecDeque<TimelineItem>,
    /// The size of the items in bytes.
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
    /// The sequence number of the oldest event in the page.
    oldest: Option<u32>,
    /// The tool calls that started sub-agents, by the sub-agent's agent execution.
    parents: HashMap<String, String>,
    /// The calls with a tool input that a person edited, by tool execution.
    edited: HashMap<String, ApprovedCall>,
    /// The tool executions with a result in the page. An approval comes before the result, so the page has the approval
    /// of a call in the page, too.
    observed: HashSet<String>,
    /// The `complete` event of an agent execution, until the page receives the answer. The answer is the event before.
    completed: Option<Event>,
    /// The agent execution of the tool result that follows the next event to add. The tool's emitted events come
    /// directly before the result.
    emitter: Option<String>,
}

impl Timeline {
    /// Makes an empty page of at most `max_items` items and `max_bytes` bytes. A page takes at least one item.
    pub fn new(max_items: usize, max_bytes: usize) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            max_items,
            max_bytes,
            oldest: None,
            parents: HashMap::new(),
            edited: HashMap::new(),
            observed: HashSet::new(),
            completed: None,
            emitter: None,
        }
    }

    /// Adds the event before the oldest added event. Returns false when the page is full; the event then belongs to the
    /// page before.
    pub fn push_before(&mut self, event: &Event) -> bool {
        if event.event_type() == EventType::Complete {
            // The answer's item shows the end, so the end belongs to the page of the answer.
            self.completed = Some(event.clone());
            return true;
        }
        let mut item = TimelineItem::of(event);
        self.note_end(item.as_mut(), event);
        if let Some(item) = &item
            && !self.has_room(item)
        {
            return false;
        }
        self.oldest = Some(event.sequence_number);
        let fields = Fields::of_event(event);
        match event.event_type() {
            EventType::ApprovalResolved => self.note_answer(&fields),
            EventType::Observe => {
                self.observed.extend(fields.get("execution_id"));
                self.emitter = fields.get("agent_execution_id");
            }
            EventType::SubAgentStart => self.note_start(&fields),
            _ => {}
        }
        if let Some(mut item) = item {
            let own = fields.get("agent_execution_id");
            let agent_execution_id = own.or_else(|| self.emitter_of(&event.event_type()));
            let root = ids::root_agent_execution_id(&event.conversation_id, &event.message_id);
            item.agent_execution_id = agent_execution_id.filter(|id| *id != root);
            self.bytes += item.bytes();
            self.items.push_front(item);
        }
        true
    }

    /// Adds the usage and cost to an answer, from the end of the answer's agent execution. The end is the event after
    /// the answer.
    fn note_end(&mut self, item: Option<&mut TimelineItem>, event: &Event) {
        let Some(end) = self.completed.take() else {
            return;
        };
        let agent = |event: &Event| Fields::of_event(event).get::<String>("agent_execution_id");
        if let Some(item) = item
            && item.kind == TimelineItemKind::AssistantMessage
            && agent(event) == agent(&end)
        {
            item.note_end(&Fields::of_event(&end));
        }
    }

    /// Returns the agent execution of the tool that emitted the event; `None` for events that tools do not emit.
    fn emitter_of(&self, event_type: &EventType) -> Option<String> {
        let is_emitted = event_type.may_be_emitted_by_tools();
        self.emitter.clone().filter(|_| is_emitted)
    }

    fn has_room(&self, item: &TimelineItem) -> bool {
        self.items.is_empty()
            || (self.items.len() < self.max_items && self.bytes + item.bytes() <= self.max_bytes)
    }

    /// Notes the edited input, which ran instead of the model's input.
    fn note_answer(&mut self, answer: &Fields<'_>) {
        let Some(id) = answer.get::<String>("execution_id") else {
            return;
        };
        let input = answer.raw("tool_input");
        let input = input.and_then(|raw| Json::parse(raw).ok());
        if let (Some(tool_input), Some(true)) = (input, answer.get("edited")) {
            let title = answer.get("title");
            self.edited.insert(id, ApprovedCall { tool_input, title });
        }
    }

    fn note_start(&mut self, start: &Fields<'_>) {
        if let (Some(agent), Some(call)) = (start.get("agent_execution_id"), start.get("call_id")) {
            self.parents.insert(agent, call);
        }
    }

    /// Returns the links that the page's items lack, because only events outside the page have the links.
    pub fn wanted_links(&self) -> WantedLinks {
        let agents = self
            .items
            .iter()
            .filter_map(|item| item.agent_execution_id.as_ref());
        let agents: HashSet<_> = agents
            .filter(|id| !self.parents.contains_key(*id))
            .collect();
        let calls = self
            .items
            .iter()
            .filter(|item| item.kind == TimelineItemKind::ToolCall);
        let calls = calls.filter_map(|item| item.execution_id.as_ref());
        WantedLinks {
            agent_executions: agents.into_iter().cloned().collect(),
            tool_executions: calls
                .filter(|id| !self.observed.contains(*id))
                .cloned()
                .collect(),
        }
    }

    /// Returns the items, in order. `links` is the answer to [`Timeline::wanted_links`].
    pub fn into_items(mut self, links: EventLinks) -> Vec<TimelineItem> {
        self.parents.extend(links.parent_calls);
        self.edited.extend(links.approved_calls);
        for item in &mut self.items {
            let agent = item.agent_execution_id.take();
            let call = agent.as_ref().and_then(|id| self.parents.get(id)).cloned();
            // An agent that was not started by a tool call is the turn's own agent.
            item.agent_execution_id = agent.filter(|_| call.is_some());
            item.parent_tool_call_id = call;
            let call = item
                .execution_id
                .as_ref()
                .and_then(|id| self.edited.get(id));
            if let (TimelineItemKind::ToolCall, Some(call)) = (item.kind, call) {
                item.tool_input = Some(call.tool_input.clone());
                item.title.clone_from(&call.title);
            }
        }
        self.items.into()
    }

    /// Returns the sequence number of the page's oldest event; `None` for an empty page.
    pub fn oldest(&self) -> Option<u32> {
        self.oldest
    }
}
