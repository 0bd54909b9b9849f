//! The builder of batches: code shared by every kind of batch.

use everturn_proto::{
    Json, Thread,
    event::{AssistantMessage, UserMessage},
    ids,
    turn::{Citation, ToolCall},
    words::{EventType, FinishReason},
};
use serde::Serialize;

use super::{AssistantRow, Batch, BatchRequest, NewEvent, Snapshot, TakenMessage, event_id, key};
use crate::{
    api::{Result, StepKey},
    error::{Missing, StoreError},
};

/// Builds one batch: numbers the events and collects the rows.
pub(super) struct Builder<'a> {
    request: &'a BatchRequest,
    pub(super) snapshot: &'a Snapshot,
    pub(super) batch: Batch,
}

impl<'a> Builder<'a> {
    pub(super) fn new(request: &'a BatchRequest, snapshot: &'a Snapshot) -> Self {
        let batch = Batch {
            key: key(request),
            last_sequence: snapshot.last_sequence,
            steps: snapshot.steps,
            ..Batch::default()
        };
        Self {
            request,
            snapshot,
            batch,
        }
    }

    pub(super) fn finish(self) -> Batch {
        self.batch
    }

    /// Returns the step that saves the batch.
    pub(super) fn step(&self) -> &'a StepKey {
        &self.request.step
    }

    /// Returns the thread of the agent execution that saves the batch.
    pub(super) fn thread(&self) -> Thread {
        self.request.thread()
    }

    /// Returns the id of the agent execution that saves the batch, as used in events.
    pub(super) fn agent_execution_id(&self) -> String {
        self.request.step.agent_execution_id.clone()
    }

    /// Appends an event of the turn, and returns its sequence number.
    pub(super) fn event(&mut self, event_type: EventType, data: &impl Serialize) -> u32 {
        self.append(&self.request.step.message_id, event_type, Json::of(data))
    }

    /// Appends an event of a message, and returns its sequence number.
    pub(super) fn append(&mut self, message_id: &str, event_type: EventType, data: Json) -> u32 {
        let batch = &mut self.batch;
        // After the largest 32-bit number the number repeats, and the unique key refuses the repetition.
        batch.last_sequence = batch.last_sequence.saturating_add(1);
        let conversation_id = &self.request.step.conversation_id;
        batch.events.push(NewEvent {
            id: event_id(conversation_id, &batch.key, batch.events.len()),
            message_id: message_id.to_owned(),
            event_type,
            data,
            sequence_number: batch.last_sequence,
        });
        batch.last_sequence
    }

    /// Counts the request's step among the agent execution's saved steps.
    pub(super) fn step_done(&mut self) {
        let steps = self.request.step.step.saturating_add(1);
        self.batch.steps = self.batch.steps.max(steps);
    }

    /// Takes a user message into the timeline, unless a turn has taken the message already. The stored text wins over
    /// `content`.
    pub(super) fn user_message(&mut self, message_id: &str, content: Option<&str>) -> Result<()> {
        let stored = self.snapshot.message.as_ref();
        let attachments = stored.map(|stored| stored.attachments.as_slice());
        let attachments = attachments.filter(|attachments| !attachments.is_empty());
        let (text, new_content) = match (stored, content) {
            (Some(stored), _) if !stored.is_waiting => return Ok(()),
            (Some(stored), _) => (stored.content.clone(), None),
            (None, Some(content)) => (content.to_owned(), Some(content.to_owned())),
            (None, None) => return Err(StoreError::not_found(Missing::Message, message_id)),
        };
        // A message that joins a running turn does not change the turn's model.
        let begins = self.step().message_id == message_id;
        let model = stored
            .and_then(|stored| stored.model.clone())
            .filter(|_| begins);
        let is_retry = stored.is_some_and(|stored| stored.is_retry);
        let (content, retry_of) = if is_retry {
            (String::new(), Some(text))
        } else {
            (text, None)
        };
        let data = UserMessage {
            content,
            model,
            message_id: message_id.to_owned(),
            attachments: attachments.map(|attachments| Json::of(&attachments)),
            retry_of,
        };
        let sequence_number = self.append(message_id, EventType::UserMessage, Json::of(&data));
        self.batch.taken = Some(TakenMessage {
            id: message_id.to_owned(),
            new_content,
            sequence_number,
        });
        self.batch.new_messages += u32::from(!is_retry);
        Ok(())
    }

    /// Adds the assistant's final text, as an event and as a row. Only the text of the turn's own agent counts as a
    /// message.
    pub(super) fn assistant_message(
        &mut self,
        text: &str,
        citations: &[Citation],
        finish: FinishReason,
    ) {
        let StepKey {
            agent_execution_id,
            step,
            ..
        } = self.step();
        let data = AssistantMessage {
            content: text.to_owned(),
            message_id: ids::assistant_message_id(agent_execution_id, *step),
            agent_execution_id: agent_execution_id.clone(),
            step: *step,
            partial: finish == FinishReason::Cancelled,
            finish: finish.into(),
            citations: cited(citations),
        };
        let sequence = self.event(EventType::AssistantMessage, &data);
        self.assistant_row(text, Vec::new(), sequence);
        self.batch.new_messages += u32::from(!self.request.thread().is_sub_agents());
    }

    /// Adds the assistant's row in `messages` for the request's step.
    pub(super) fn assistant_row(
        &mut self,
        text: &str,
        tool_calls: Vec<ToolCall>,
        sequence_number: u32,
    ) {
        let StepKey {
            agent_execution_id,
            step,
            ..
        } = self.step();
        self.batch.assistant = Some(AssistantRow {
            id: ids::assistant_message_id(agent_execution_id, *step),
            step: *step,
            content: text.to_owned(),
            tool_calls,
            sequence_number,
        });
    }
}

/// Returns the citations of a text for an event; `None` for a text that cites nothing.
pub(super) fn cited(citations: &[Citation]) -> Option<Json> {
    (!citations.is_empty()).then(|| Json::of(&citations))
}
