//! Makes a displayable state from frames. A client's knowledge of a conversation follows only from the frames seen. No
//! I/O. The rules are those of `clients/transcripts/README.md`.
//!
//! - `fields`: an event's fields, read without trust
//! - `items`, `calls`, `read`: the displayable items, and their first form when an event arrives
//! - `fold`: changes by later events
//! - `select`: the answer of a turn, and the calls that wait for a person
//! - `texts`: the texts that models are writing now
//! - `progress`: the progress of running tools
//! - `waits`: the calls of models that wait for their provider
//! - `waterfall`: where the time of a turn went

mod calls;
mod fields;
mod fold;
mod items;
mod progress;
mod read;
mod select;
mod texts;
mod waits;
mod waterfall;

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Map, Value};

pub use self::{
    calls::{
        Approval, CallResult, CallState, ClientTool, Question, SubAgent, SubAgentState, ToolCall,
        ToolResult,
    },
    items::{Citation, End, EndKind, Item, ItemKind, PlanStep, WorkPlan},
    progress::ToolProgress,
    texts::OpenText,
    waits::ModelWait,
    waterfall::{Row, RowKind, TurnRows, WaitsFor, turn_rows},
};
use self::{fields::Fields, fold::Fold, progress::Reports, texts::Texts, waits::Waits};
use crate::words::EndReason;
pub use crate::words::{ApprovalState, FinishReason, NoteEvent, PlanStepStatus};

/// The most events of a conversation. Beyond the limit, the client forgets the oldest tenth.
const MAX_EVENTS: usize = 50_000;

/// Whether a turn is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No turn is running.
    Idle,
    /// A turn is running.
    Running,
    /// A turn is running, and one of its calls waits for a person or for a client tool.
    Waiting,
}

/// A conversation, as known from the frames seen.
#[derive(Debug)]
pub struct Conversation {
    /// The cursor and the number of the last event before the known events.
    start: (String, u64),
    events: Vec<KnownEvent>,
    fold: Fold,
    texts: Texts,
    waits: Waits,
    progress: Reports,
    ended: Option<EndReason>,
}

/// An event, unchanged.
#[derive(Debug, Clone)]
struct KnownEvent {
    cursor: String,
    sequence_number: u64,
    data: Map<String, Value>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::behind("0")
    }
}

impl Conversation {
    /// Returns a conversation whose events up to `cursor` are unknown; `"0"` is the beginning.
    pub fn behind(cursor: &str) -> Self {
        let digits = cursor.split(|c: char| !c.is_ascii_digit()).next();
        let number = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        Self {
            start: (cursor.to_owned(), number),
            events: Vec::new(),
            fold: Fold::default(),
            texts: Texts::default(),
            waits: Waits::default(),
            progress: Reports::default(),
            ended: None,
        }
    }

    /// Returns the `id` of the last event, the cursor for reconnecting.
    pub fn cursor(&self) -> &str {
        let last = self.events.last();
        last.map_or(&self.start.0, |event| &event.cursor)
    }

    /// Returns the number of the last event; 0 before the first.
    pub fn last_sequence(&self) -> u64 {
        let last = self.events.last();
        last.map_or(self.start.1, |event| event.sequence_number)
    }

    /// Returns whether a turn is running.
    pub fn status(&self) -> Status {
        match self.turn() {
            None => Status::Idle,
            Some(_) if self.fold.is_waiting() => Status::Waiting,
            Some(_) => Status::Running,
        }
    }

    /// Returns the message id of the running turn.
    pub fn turn(&self) -> Option<&str> {
        self.fold.turn.as_deref()
    }

    /// Returns the gateway's reason for ending the stream for good.
    pub fn ended(&self) -> Option<&EndReason> {
        self.ended.as_ref()
    }

    /// Returns the displayable items, in order.
    pub fn items(&self) -> &[Item] {
        &self.fold.items
    }

    /// Returns the texts that models are writing now, in the order of their start.
    pub fn texts(&self) -> &[OpenText] {
        &self.texts.0
    }

    /// Returns the calls of models that wait for their provider, the newest news last.
    pub fn waits(&self) -> &[ModelWait] {
        &self.waits.0
    }

    /// Returns the latest reports of running tools, the newest last.
    pub fn progress(&self) -> &[ToolProgress] {
        &self.progress.0
    }

    /// Takes the next frame: its `id`, and the value of its `data`. Returns true when the state has changed.
    pub fn apply(&mut self, id: Option<&str>, data: Value) -> bool {
        let Value::Object(data) = data else {
            return false;
        };
        let fields = Fields(&data);
        let event_type = fields.get("type").and_then(Value::as_str);
        let number = fields.count("sequence_number").filter(|it| *it > 0);
        if let (Some(_), Some(sequence_number)) = (event_type, number) {
            let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
            let cursor = id.unwrap_or_else(|| sequence_number.to_string());
            return self.take_event(KnownEvent {
                cursor,
                sequence_number,
                data,
            });
        }
        match event_type {
            Some("replay") => {
                let had_ended = self.ended.take().is_some();
                let had_waits = self.waits.clear();
                let had_progress = self.progress.clear();
                self.texts.clear() || had_ended || had_waits || had_progress
            }
            Some("text_start" | "text_delta" | "text_end") => {
                let agent = fields.text("agent_execution_id");
                let had_wait = self.waits.drop_of(agent);
                let parent = self.fold.parent_of(agent);
                self.texts.apply(fields, parent) || had_wait
            }
            Some("model_waiting") => self.waits.apply(fields),
            Some("tool_progress") => self.progress.apply(fields),
            Some("reset") => self.reset(fields.count("from_sequence").unwrap_or(1)),
            Some("end") => {
                self.ended = Some(fields.text("reason").into());
                true
            }
            _ => false,
        }
    }

    fn take_event(&mut self, event: KnownEvent) -> bool {
        if event.sequence_number <= self.last_sequence() {
            return false;
        }
        let data = Fields(&event.data);
        let event_type = data.text("type");
        let replaces = matches!(event_type, "thought" | "assistant_message");
        if event_type == "observe" {
            self.progress.drop_of(data.text("execution_id"));
        }
        if EndKind::of(event_type).is_some() {
            self.progress.drop_of_agent(data.text("agent_execution_id"));
        }
        if replaces || EndKind::of(event_type).is_some() {
            self.texts.drop_of(data.text("agent_execution_id"));
            self.waits.drop_of(data.text("agent_execution_id"));
        }
        self.fold.apply(data, event.sequence_number);
        self.events.push(event);
        if self.events.len() > MAX_EVENTS {
            self.events.drain(..MAX_EVENTS / 10);
            self.fold_anew();
        }
        true
    }

    /// Forgets the events from the number `from` on, because another log has replaced the events.
    fn reset(&mut self, from: u64) -> bool {
        self.texts.clear();
        self.waits.clear();
        self.progress.clear();
        if from <= self.start.1 {
            let before = from.saturating_sub(1);
            self.start = (before.to_string(), before);
        }
        self.events.retain(|event| event.sequence_number < from);
        self.fold_anew();
        true
    }

    fn fold_anew(&mut self) {
        self.fold = Fold::default();
        for event in &self.events {
            self.fold.apply(Fields(&event.data), event.sequence_number);
        }
    }
}

/// Serializes the state in the format of `clients/transcripts/README.md`.
impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut state = serializer.serialize_struct("Conversation", 8)?;
        state.serialize_field("cursor", self.cursor())?;
        state.serialize_field("status", &self.status())?;
        state.serialize_field("turn", &self.turn())?;
        state.serialize_field("ended", &self.ended())?;
        state.serialize_field("items", self.items())?;
        state.serialize_field("texts", self.texts())?;
        if !self.waits().is_empty() {
            state.serialize_field("waits", self.waits())?;
        }
        if !self.progress().is_empty() {
            state.serialize_field("progress", self.progress())?;
        }
        state.end()
    }
}
